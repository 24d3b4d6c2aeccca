//! Asking a person.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use tokio::sync::{mpsc, oneshot};

use super::BoxFuture;
use crate::approval::{ApprovalAnswer, ApprovalError, OpenRequest};

/// Puts a question to a person and brings back the answer: a terminal, a web page, an API.
///
/// Hooks ask, the person answers, the kernel decides: it owns what each option does, the time limit and the memory of
/// lasting answers, whatever a system does.
pub trait ApprovalSystem: Send + Sync + 'static {
    /// Asks, and gives back the label of the option that the person chose, with who that was if it is known. Any other label
    /// denies.
    ///
    /// # Errors
    /// If no answer can be had; the operation is then denied.
    ///
    /// # Cancel safety
    /// The future is dropped when the operation is cancelled. After the time limit it is kept for a while, so that a
    /// late answer can be recorded; [`OpenRequest::closed`] says when the question is no longer open.
    fn request_approval(
        &self,
        request: Arc<OpenRequest>,
    ) -> impl Future<Output = Result<ApprovalAnswer, ApprovalError>> + Send;

    /// Asks while another system is asked about the same request. The first answer counts. A system that shows requests can override this to show an
    /// answer that came from `elsewhere`.
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
            // The other system is asked first, because this one may block the thread while it asks.
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

/// Approvals over a channel: the session asks at one end, whoever shows questions answers at the other.
///
/// ```
/// # use amplifier_core::*;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (approvals, mut inbox) = approval_channel();
/// tokio::spawn(async move {
///     while let Some(question) = inbox.next().await {
///         println!("{}", question.request.prompt);
///         let _ = question.answer("Allow");
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

/// The asking end of an [`approval_channel`].
#[derive(Clone, Debug)]
pub struct ChannelApprovals {
    questions: mpsc::UnboundedSender<PendingApproval>,
}

/// The answering end of an [`approval_channel`]. When it is dropped, every question is denied.
#[derive(Debug)]
pub struct ApprovalInbox {
    inbox: mpsc::UnboundedReceiver<PendingApproval>,
}

/// A question that waits for an answer. When it is dropped unanswered, it is denied.
#[derive(Debug)]
pub struct PendingApproval {
    /// The question.
    pub request: Arc<OpenRequest>,
    answer: oneshot::Sender<ApprovalAnswer>,
}

/// An answer to a question that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the question is closed: it was cancelled, or its time ran out long ago")]
pub struct ApprovalClosed;

impl ApprovalInbox {
    /// The next question; `None` when the session is gone.
    pub async fn next(&mut self) -> Option<PendingApproval> {
        self.inbox.recv().await
    }
}

impl PendingApproval {
    /// Answers with the label of an option. An answer after the time limit changes nothing and is recorded as late.
    ///
    /// # Errors
    /// If the question is closed.
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
