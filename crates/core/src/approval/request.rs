//! Approval requests that are open.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{ApprovalAnswer, ApprovalDecision};
use crate::event::{Digest, EventData, EventName};
use crate::ports::preview::ActionPreview;
use crate::result::{ApprovalOption, DefaultDecision};

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
    pub(crate) open: watch::Receiver<Option<ApprovalDecision>>,
    pub(crate) late: Late,
}

/// Records an answer that came too late.
pub(crate) struct Late(pub(crate) Box<dyn Fn(ApprovalAnswer) + Send + Sync>);

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
    pub fn too_late(&self, answer: impl Into<ApprovalAnswer>) {
        (self.late.0)(answer.into());
    }

    /// Returns when the question is no longer open, with what became of it: answered, out of time, or cancelled. Whoever shows it can
    /// then take it away.
    pub async fn closed(&self) -> ApprovalDecision {
        let mut open = self.open.clone();
        while open.changed().await.is_ok() {}
        let decision = open.borrow().clone();
        decision.unwrap_or_else(|| ApprovalDecision::cancelled(&self.prompt))
    }
}

/// The key of a remembered answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ApprovalKey {
    pub(crate) hook: Arc<str>,
    pub(crate) event: EventName,
    pub(crate) prompt: String,
}
