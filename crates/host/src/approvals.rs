//! Approval systems that work together.

use std::sync::Arc;

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, OpenRequest};

/// Sends each approval request to two systems at once. The first answer counts. For more than two, one of them is a fan-out, too.
#[derive(Clone, Debug)]
pub struct ApprovalFanOut<A, B> {
    first: A,
    second: B,
}

impl<A, B> ApprovalFanOut<A, B> {
    /// Sends requests to both. The first one is told of answers of the second.
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
                // The first system may still answer. When the request is closed, it sees that for itself.
                Err(_) => std::future::pending().await,
            }
        };
        self.first.request_beside(request.clone(), elsewhere).await
    }
}
