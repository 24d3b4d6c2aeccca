//! Asking a person.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

use super::BoxFuture;
use super::preview::ActionPreview;
use crate::event::{Digest, EventData, EventName};
use crate::result::{ApprovalOption, DefaultDecision};

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
    /// late answer can be recorded; [`ApprovalRequest::closed`] says when the question is no longer open.
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> impl Future<Output = Result<Answer, ApprovalError>> + Send;
}

impl<T: ApprovalSystem> ApprovalSystem for Arc<T> {
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> impl Future<Output = Result<Answer, ApprovalError>> + Send {
        T::request_approval(self, request)
    }
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The label of an option.
    pub label: String,
    /// Who answered, where that is known. It is recorded.
    pub by: Option<Answerer>,
}

/// Who answered a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answerer {
    /// The name that the approval system knows the person by.
    pub name: String,
    /// From where: `terminal`, `console`, `api`, …
    pub via: String,
}

impl Answer {
    /// That label, chosen by somebody.
    pub fn by(label: impl Into<String>, name: impl Into<String>, via: impl Into<String>) -> Self {
        Self { label: label.into(), by: Some(Answerer { name: name.into(), via: via.into() }) }
    }
}

impl From<String> for Answer {
    fn from(label: String) -> Self {
        Self { label, by: None }
    }
}

impl From<&str> for Answer {
    fn from(label: &str) -> Self {
        label.to_owned().into()
    }
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Whether the operation may run.
    pub granted: bool,
    /// What that rests on, in a word: `answer`, `timeout`, `not_offered`, `failed`, `cancelled`.
    pub basis: &'static str,
    /// The reason, in words.
    pub reason: String,
    /// Who answered, where somebody did and that is known.
    pub by: Option<Answerer>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// The person is gone.
    #[error("the connection to the person is closed")]
    Closed,
    /// The system itself stopped waiting.
    #[error("nobody answered in time")]
    TimedOut,
    /// Something else.
    #[error("{0}")]
    Failed(String),
}

impl From<std::io::Error> for ApprovalError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<tokio::task::JoinError> for ApprovalError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A question that is open.
#[derive(Debug)]
pub struct ApprovalRequest {
    /// Tells this question from every other one of the session.
    pub id: u64,
    /// The hook that asks.
    pub hook: Arc<str>,
    /// The event at which it asks.
    pub event: EventName,
    /// The question.
    pub prompt: String,
    /// What the hook gives as its reason.
    pub reason: Option<String>,
    /// What the kernel wants the person to know before an answer.
    pub warning: Option<String>,
    /// What the person can answer.
    pub options: Vec<ApprovalOption>,
    /// How long the kernel waits.
    pub timeout: Duration,
    /// What counts when nobody answered in time.
    pub default: DefaultDecision,
    /// What will run if the person agrees: the data after all modifications.
    pub data: EventData,
    /// The digest of that data.
    pub digest: Digest,
    /// The effect of the operation. If it was compared with a file, the data says in [`COMPARED_WITH`](crate::COMPARED_WITH) which version of it,
    /// and nothing is run if the file has another one by then.
    pub preview: Arc<ActionPreview>,
    // The coordinator holds the other end while the question is open.
    pub(crate) open: watch::Receiver<Option<Settled>>,
    pub(crate) late: Late,
}

/// Records an answer that came too late.
pub(crate) struct Late(pub(crate) Box<dyn Fn(Answer) + Send + Sync>);

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Late")
    }
}

impl ApprovalRequest {
    /// The option that a person means by what was typed: its number, counted from 1, or its label in any case.
    pub fn option(&self, typed: &str) -> Option<&ApprovalOption> {
        ApprovalOption::meant(&self.options, typed)
    }

    /// Records an answer to a question that is no longer open: it came after the time limit, or somebody else was faster. It changes
    /// nothing. For systems that are told of such an answer when the future of the question has ended already; one that is still
    /// waited for is recorded by the kernel.
    pub fn too_late(&self, answer: impl Into<Answer>) {
        (self.late.0)(answer.into());
    }

    /// Returns when the question is no longer open, with what became of it: answered, out of time, or cancelled. Whoever shows it can
    /// then take it away.
    pub async fn closed(&self) -> Settled {
        let mut open = self.open.clone();
        while open.changed().await.is_ok() {}
        let settled = open.borrow().clone();
        settled.unwrap_or_else(|| Settled {
            granted: false,
            basis: "cancelled",
            reason: format!("Cancelled: {}", self.prompt),
            by: None,
        })
    }
}

pub(crate) trait AnyApprovalSystem: Send + Sync {
    fn request(self: Arc<Self>, request: Arc<ApprovalRequest>) -> BoxFuture<'static, Result<Answer, ApprovalError>>;
}

impl<T: ApprovalSystem> AnyApprovalSystem for T {
    fn request(self: Arc<Self>, request: Arc<ApprovalRequest>) -> BoxFuture<'static, Result<Answer, ApprovalError>> {
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
    pub request: Arc<ApprovalRequest>,
    answer: oneshot::Sender<Answer>,
}

/// An answer to a question that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the question is closed: it was cancelled, or its time ran out long ago")]
pub struct TooLate;

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
    pub fn answer(self, answer: impl Into<Answer>) -> Result<(), TooLate> {
        self.answer.send(answer.into()).map_err(|_| TooLate)
    }
}

impl ApprovalSystem for ChannelApprovals {
    async fn request_approval(&self, request: Arc<ApprovalRequest>) -> Result<Answer, ApprovalError> {
        let (answer, answered) = oneshot::channel();
        self.questions.send(PendingApproval { request, answer }).map_err(|_| ApprovalError::Closed)?;
        answered.await.map_err(|_| ApprovalError::Closed)
    }
}
