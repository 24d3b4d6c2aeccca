//! Approval systems: of two at once, of the fleet, of a session's mode, and one that denies everything.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, OpenRequest};
use amplifier_modules::bundle::ApprovalMode;
use futures::FutureExt;
use futures::future::FusedFuture;

use crate::fleet::FleetAsker;
use crate::mode::ModeSwitch;

/// Sends each approval request to two systems at once; the first answer counts. Nest fan-outs for more systems.
#[derive(Clone, Debug)]
pub struct ApprovalFanOut<A, B> {
    first: A,
    second: B,
}

impl<A, B> ApprovalFanOut<A, B> {
    /// A fan-out to two systems. The first one is notified of answers of the second.
    pub fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: ApprovalSystem, B: ApprovalSystem> ApprovalSystem for ApprovalFanOut<A, B> {
    /// # Cancel safety
    /// As that of both systems.
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let elsewhere = async {
            match self.second.request_approval(request.clone()).await {
                Ok(answer) => answer,
                // The first system may still answer, and sees for itself when the request closes.
                Err(_) => pending().await,
            }
        };
        self.first.request_beside(request.clone(), elsewhere).await
    }
}

/// Sends approval requests also to the consoles of the fleet, if this machine belongs to one; the first answer counts.
#[derive(Clone)]
pub(crate) struct FleetFanOut<A> {
    pub(crate) system: A,
    pub(crate) fleet: Option<FleetAsker>,
}

impl<A: ApprovalSystem> ApprovalSystem for FleetFanOut<A> {
    /// # Cancel safety
    /// As that of both systems.
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let Some(fleet) = &self.fleet else { return self.system.request_approval(request).await };
        let mut consoles = pin!(fleet.request_approval(request.clone()).fuse());
        let elsewhere = async {
            match consoles.as_mut().await {
                Ok(answer) => answer,
                // The other system may still answer.
                Err(_) => pending().await,
            }
        };
        match self.system.request_beside(request.clone(), elsewhere).await {
            // Nobody can be asked here, but somebody at a console can.
            Err(ApprovalError::Unavailable(_)) if !consoles.is_terminated() => consoles.await,
            answered => answered,
        }
    }
}

/// Denies all approval requests without asking.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAllApprovals;

impl ApprovalSystem for DenyAllApprovals {
    async fn request_approval(&self, _request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        Err(ApprovalError::Failed("requests are denied, because the mode is `deny`".into()))
    }
}

/// Sends approval requests to a system, except in the mode `deny`.
#[derive(Clone)]
pub(crate) struct ModeApprovals<A> {
    pub(crate) system: A,
    pub(crate) mode: ModeSwitch,
}

impl<A: ApprovalSystem> ApprovalSystem for ModeApprovals<A> {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        match self.mode.current() {
            ApprovalMode::Deny => DenyAllApprovals.request_approval(request).await,
            ApprovalMode::Ask | ApprovalMode::AcceptEdits | ApprovalMode::Plan => {
                self.system.request_approval(request).await
            }
        }
    }
}
