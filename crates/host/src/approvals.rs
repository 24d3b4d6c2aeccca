//! Approval systems that work together.

use std::sync::Arc;

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, OpenRequest};

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
                Err(_) => std::future::pending().await,
            }
        };
        self.first.request_beside(request.clone(), elsewhere).await
    }
}
