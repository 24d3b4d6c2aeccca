//! Keeping a record.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::approval::Answerer;
use super::preview::ComparedWith;
use super::{BoxFuture, PortError};
use crate::event::{Digest, EventData, EventName};
use crate::result::{ApprovalOption, DefaultDecision, Level, Placement, Role};
use crate::sync::{Mutex, lock};
use crate::text::{as_seconds, as_text};

/// Where everything is recorded.
pub trait AuditLog: Send + Sync + 'static {
    /// Takes a record. Must not wait: what is slow belongs into [`flush`](AuditLog::flush).
    ///
    /// # Errors
    /// If the record is not taken.
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError>;

    /// Returns when every record taken so far is as safe as the log promises. Awaited before a gated operation begins.
    ///
    /// # Errors
    /// If a record could not be kept that was taken since that receipt was given, with the record it was given for.
    fn flush(&self, since: Receipt) -> impl Future<Output = Result<(), PortError>> + Send {
        let _ = since;
        async { Ok(()) }
    }
}

/// Says when a record was taken: later records have larger numbers. The log chooses them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Receipt(pub u64);

impl<T: AuditLog> AuditLog for Arc<T> {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        T::record(self, record)
    }

    fn flush(&self, since: Receipt) -> impl Future<Output = Result<(), PortError>> + Send {
        T::flush(self, since)
    }
}

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
pub struct AuditRecord {
    /// When.
    #[serde(serialize_with = "as_rfc3339")]
    pub at: SystemTime,
    /// In which session.
    pub session: Option<String>,
    /// In which turn of it.
    pub turn: u64,
    /// At which event.
    #[serde(serialize_with = "as_text")]
    pub event: EventName,
    /// What.
    #[serde(flatten)]
    pub entry: AuditEntry,
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditEntry {
    /// An event was emitted, and hooks decided.
    Event {
        /// The data as the hooks left it.
        data: EventData,
        /// What they decided.
        decision: &'static str,
        /// Who denied it.
        #[serde(skip_serializing_if = "Option::is_none")]
        denied_by: Option<String>,
        /// Why it was denied.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A hook answered, or failed.
    HookReport {
        /// The hook.
        hook: String,
        /// What it answered, or how it failed.
        answer: &'static str,
        /// How long it took.
        #[serde(rename = "took_ns", serialize_with = "as_nanos")]
        took: Duration,
        /// Why it answered so.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Whether it kept its output out of the transcript.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        suppressed_output: bool,
    },
    /// A person is asked.
    ApprovalRequest {
        /// The question.
        id: u64,
        /// The hook that asks.
        hook: String,
        /// What it asks.
        prompt: String,
        /// What the person can answer.
        options: Vec<ApprovalOption>,
        /// How long is waited.
        #[serde(rename = "timeout_s", serialize_with = "as_seconds")]
        timeout: Duration,
        /// What counts when nobody answers.
        default: DefaultDecision,
        /// The digest of what will run.
        #[serde(serialize_with = "as_text")]
        digest: Digest,
        /// `true` if another hook changed the data after this one asked, so that no allow given in advance counted.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        changed_after_asking: bool,
        /// The file that the person was shown a change of. It is a part of what has the digest, beside the data of the event.
        #[serde(skip_serializing_if = "Option::is_none")]
        compared_with: Option<ComparedWith>,
    },
    /// What a hook asked for was granted or refused.
    ApprovalDecision {
        /// The question; none if nobody had to be asked.
        id: Option<u64>,
        /// The hook that asked.
        hook: String,
        /// Whether the operation may run.
        granted: bool,
        /// What the decision rests on.
        basis: &'static str,
        /// The reason, in words.
        reason: String,
        /// Who answered, where somebody did and that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<Answerer>,
    },
    /// An answer came when the question was no longer open. It changed nothing.
    LateAnswer {
        /// The question.
        id: u64,
        /// The hook that asked.
        hook: String,
        /// The answer.
        answer: String,
        /// Who gave it, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<Answerer>,
    },
    /// A hook added to what the agent knows, or tried to.
    Injection {
        /// The hook.
        hook: String,
        /// As whom it speaks.
        role: Role,
        /// Where it lands.
        placement: Placement,
        /// How large it is.
        bytes: usize,
        /// How many tokens it takes.
        tokens: usize,
        /// What became of it.
        fate: &'static str,
        /// What it says.
        text: String,
    },
    /// There was a message for the person.
    Message {
        /// Whether there is a display to show it.
        shown: bool,
        /// Who said it.
        source: String,
        /// How urgent it is.
        level: Level,
        /// What it says.
        text: String,
    },
    /// A gated operation may begin.
    Intent {
        /// The digest of what will run; none if the data is too deep to have one.
        #[serde(serialize_with = "as_optional_text", skip_serializing_if = "Option::is_none")]
        digest: Option<Digest>,
        /// Pairs it with its outcome.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<String>,
    },
    /// A gated operation has ended.
    Outcome {
        /// Whether it succeeded, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        success: Option<bool>,
        /// Pairs it with its intent.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<String>,
    },
    /// A part of the system failed.
    Failure {
        /// The part.
        part: &'static str,
        /// What went wrong.
        error: String,
    },
}

impl AuditEntry {
    /// The word for what happened.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Event { .. } => "event",
            Self::HookReport { .. } => "hook_report",
            Self::ApprovalRequest { .. } => "approval_request",
            Self::ApprovalDecision { .. } => "approval_decision",
            Self::LateAnswer { .. } => "late_answer",
            Self::Injection { .. } => "injection",
            Self::Message { .. } => "message",
            Self::Intent { .. } => "intent",
            Self::Outcome { .. } => "outcome",
            Self::Failure { .. } => "failure",
        }
    }
}

fn as_rfc3339<S: serde::Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&crate::event::rfc3339(*at))
}

fn as_optional_text<S: serde::Serializer>(
    value: &Option<impl std::fmt::Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(serializer)
}

fn as_nanos<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_nanos().try_into().unwrap_or(u64::MAX))
}

pub(crate) trait AnyAuditLog: Send + Sync {
    fn take(&self, record: AuditRecord) -> Result<Receipt, PortError>;
    fn flushed(&self, since: Receipt) -> BoxFuture<'_, Result<(), PortError>>;
}

impl<T: AuditLog> AnyAuditLog for T {
    fn take(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        self.record(record)
    }

    fn flushed(&self, since: Receipt) -> BoxFuture<'_, Result<(), PortError>> {
        Box::pin(async move { self.flush(since).await })
    }
}

/// An audit log in memory. A handle: clones share the same records.
#[derive(Clone, Debug, Default)]
pub struct MemoryAudit {
    // A std lock: nothing awaits while it is held.
    records: Arc<Mutex<Vec<AuditRecord>>>,
}

impl MemoryAudit {
    /// A log without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// All records so far.
    pub fn records(&self) -> Vec<AuditRecord> {
        lock(&self.records).clone()
    }
}

impl AuditLog for MemoryAudit {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        let mut records = lock(&self.records);
        records.push(record);
        Ok(Receipt(records.len() as u64))
    }
}
