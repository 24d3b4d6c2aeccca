//! Approval requests.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{ApprovalAnswer, ApprovalDecision, RuleOffer};
use crate::audit::{AuditEntry, FailureEntry, LateAnswerEntry};
use crate::event::{Digest, EventData, EventName};
use crate::ports::preview::ActionPreview;
use crate::result::{ApprovalOption, DefaultDecision};
use crate::text::{as_seconds, from_seconds};

/// A hook's request to a user to allow an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalRequest {
    /// The number of the request in its session. Sub-agents count with the session that they work for.
    pub number: u64,
    /// The hook that asks.
    pub hook: String,
    /// The event at which it asks.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub event: EventName,
    /// The text of the request.
    pub prompt: String,
    /// The reason that the hook gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The kernel's own warning to the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The possible answers.
    pub options: Vec<ApprovalOption>,
    /// The time that the kernel waits for an answer, in seconds.
    #[serde(rename = "timeout_s", serialize_with = "as_seconds", deserialize_with = "from_seconds")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub timeout: Duration,
    /// The decision when the time is up.
    pub default: DefaultDecision,
    /// The digest of the data that will run.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub digest: Digest,
    /// The time of the request.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// The effect of the operation. If the preview compares with a file, [`COMPARED_WITH`](crate::COMPARED_WITH) in the data names its version;
    /// the operation does not run if the file has changed since.
    pub preview: ActionPreview,
    /// The rules that an answer may create, from narrow to wide, for each scope. An option that always allows then allows by one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<RuleOffer>,
}

impl ApprovalRequest {
    /// Returns the option that an approver means by typed text: its number, counted from 1, or its label in any case.
    pub fn option(&self, typed: &str) -> Option<&ApprovalOption> {
        ApprovalOption::resolve(&self.options, typed)
    }
}

/// A request that waits for an answer, with the data that will run, and the decision once it is made.
#[derive(Debug)]
pub struct OpenRequest {
    /// The request.
    pub request: ApprovalRequest,
    /// The data that will run if the approver agrees, after all modifications.
    pub data: EventData,
    // The coordinator holds the other end while the request is open.
    pub(crate) open: watch::Receiver<Option<ApprovalDecision>>,
    pub(crate) log: RequestLog,
}

/// The records of the request's session.
#[derive(Clone)]
pub(crate) struct RequestLog(pub(crate) Arc<dyn Fn(AuditEntry) + Send + Sync>);

impl std::fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestLog")
    }
}

impl Deref for OpenRequest {
    type Target = ApprovalRequest;

    fn deref(&self) -> &ApprovalRequest {
        &self.request
    }
}

impl OpenRequest {
    /// Records an answer to a closed request: after the time limit, or after another approver's answer. The decision stays. Call it for answers
    /// after the end of the request's future; the kernel itself records later answers of a pending one.
    pub fn record_late_answer(&self, answer: impl Into<ApprovalAnswer>) {
        (self.log.0)(late_answer(self.number, &self.hook, answer.into()));
    }

    /// Records a failure of the approval system, such as a forged answer. The request stays open.
    pub fn record_failure(&self, error: impl Into<String>) {
        let error = error.into();
        tracing::warn!({ hook.name = %self.hook, error }, "the approval system failed");
        (self.log.0)(AuditEntry::Failure(FailureEntry { part: "approvals".into(), error }));
    }

    /// Waits until the request is closed, and returns the decision: by an answer, by the time limit, or cancelled.
    pub async fn closed(&self) -> ApprovalDecision {
        let mut open = self.open.clone();
        while open.changed().await.is_ok() {}
        let decision = open.borrow().clone();
        decision.unwrap_or_else(|| ApprovalDecision::cancelled(&self.prompt))
    }
}

/// Returns the record of an answer that came too late.
pub(crate) fn late_answer(id: u64, hook: &str, answer: ApprovalAnswer) -> AuditEntry {
    tracing::warn!({ hook.name = %hook }, "an approval was answered too late");
    let ApprovalAnswer { label: answer, by, .. } = answer;
    AuditEntry::LateAnswer(LateAnswerEntry { id, hook: hook.to_owned(), answer, by })
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ApprovalKey {
    pub(crate) hook: Arc<str>,
    pub(crate) event: EventName,
    pub(crate) prompt: String,
}
