//! The port for approval requests.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use tokio::sync::{mpsc, oneshot};

use super::BoxFuture;
use crate::approval::{ApprovalAnswer, ApprovalError, OpenRequest};

/// Presents approval requests to a user and returns the answers: a terminal, a web page, an API.
///
/// Hooks request, the user answers, the kernel decides: it owns the effect of each option, the time limit and the remembered
/// answers, independent of the approval system.
pub trait ApprovalSystem: Send + Sync + 'static {
    /// Presents the request, and returns the label of the chosen option and, if known, the approver. Any other label denies.
    ///
    /// # Errors
    /// If there is no answer; the operation is then denied.
    ///
    /// # Cancel safety
    /// The future is dropped when the operation is cancelled. After the time limit it is polled for a while longer, so that a
    /// late answer can be recorded; [`OpenRequest::closed`] returns when the request is closed.
    fn request_approval(
        &self,
        request: Arc<OpenRequest>,
    ) -> impl Future<Output = Result<ApprovalAnswer, ApprovalError>> + Send;

    /// Presents a request that another system presents, too. The first answer counts. A system can override this to show an answer that came
    /// from `elsewhere`.
    ///
    /// # Errors
    /// As [`request_approval`](Self::request_approval).
    fn request_beside(
        &self,
        request: Arc<OpenRequest>,
        elsewhere: impl Future<Output = ApprovalAnswer> + Send,
    ) -> impl Future<Output = Result<ApprovalAnswer, ApprovalError>> + Send {
        async move {
            let (here, elsewhere) = (pin!(self.request_approval(request)), pin!(elsewhere));
            // The other system is polled first, because this one may block the thread.
            match select(elsewhere, here).await {
                Either::Left((answer, _)) => Ok(answer),
                Either::Right((answer, _)) => answer,
            }
        }
    }
}

impl<T: ApprovalSystem> ApprovalSystem for Arc<T> {
    fn request_approval(
        &self,
        request: Arc<OpenRequest>,
    ) -> impl Future<Output = Result<ApprovalAnswer, ApprovalError>> + Send {
        T::request_approval(self, request)
    }
}

pub(crate) trait AnyApprovalSystem: Send + Sync {
    fn request(self: Arc<Self>, request: Arc<OpenRequest>)
    -> BoxFuture<'static, Result<ApprovalAnswer, ApprovalError>>;
}

impl<T: ApprovalSystem> AnyApprovalSystem for T {
    fn request(
        self: Arc<Self>,
        request: Arc<OpenRequest>,
    ) -> BoxFuture<'static, Result<ApprovalAnswer, ApprovalError>> {
        Box::pin(async move { self.request_approval(request).await })
    }
}

/// Creates an approval system over a channel, and the inbox that receives its requests.
///
/// ```
/// # use amplifier_core::*;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (approvals, mut inbox) = approval_channel();
/// tokio::spawn(async move {
///     while let Some(pending) = inbox.next().await {
///         println!("{}", pending.request.prompt);
///         let _ = pending.answer("Allow");
///     }
/// });
///
/// let hooks = HookRegistry::new();
/// hooks.on(TOOL_PRE, |_| HookResult::ask("Really?"));
/// let session = Coordinator::builder(hooks).approvals(approvals).build();
/// assert!(session.emit(TOOL_PRE, ToolPre::new("Bash", Map::new())).await.is_proceed());
/// # }
/// ```
pub fn approval_channel() -> (ChannelApprovals, ApprovalInbox) {
    let (questions, inbox) = mpsc::unbounded_channel();
    (ChannelApprovals { questions }, ApprovalInbox { inbox })
}

/// The sending end of an [`approval_channel`].
#[derive(Clone, Debug)]
pub struct ChannelApprovals {
    questions: mpsc::UnboundedSender<PendingApproval>,
}

/// The receiving end of an [`approval_channel`]. When it is dropped, every request is denied.
#[derive(Debug)]
pub struct ApprovalInbox {
    inbox: mpsc::UnboundedReceiver<PendingApproval>,
}

/// A request that waits for an answer. It is denied when it is dropped without one.
#[derive(Debug)]
pub struct PendingApproval {
    /// The request.
    pub request: Arc<OpenRequest>,
    answer: oneshot::Sender<ApprovalAnswer>,
}

/// An answer to a closed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the approval request is closed: it was cancelled, or has expired")]
pub struct ApprovalClosed;

impl ApprovalInbox {
    /// Returns the next request; `None` when the session is gone.
    pub async fn next(&mut self) -> Option<PendingApproval> {
        self.inbox.recv().await
    }
}

impl PendingApproval {
    /// Answers with the label of an option. An answer after the time limit changes nothing and is recorded as late.
    ///
    /// # Errors
    /// If the request is closed.
    pub fn answer(self, answer: impl Into<ApprovalAnswer>) -> Result<(), ApprovalClosed> {
        self.answer.send(answer.into()).map_err(|_| ApprovalClosed)
    }
}

impl ApprovalSystem for ChannelApprovals {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let (answer, answered) = oneshot::channel();
        self.questions.send(PendingApproval { request, answer }).map_err(|_| ApprovalError::Closed)?;
        answered.await.map_err(|_| ApprovalError::Closed)
    }
}
