//! Messages of the stream, in both directions.

use amplifier_core::ChosenRule;
use amplifier_link::{AnswerScope, ApprovalId, DecidedApproval, OpenApproval};
use axum::extract::ws::Utf8Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api_types::{ApprovalFlood, AuditStatus, ErrorDetails, Me, Session};

/// A message of the server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "each is written at once, and none is kept")]
pub(super) enum StreamMessage {
    /// The current state.
    Hello {
        /// The authenticated user.
        me: Me,
        /// Number of the first record that follows.
        cursor: u64,
        /// Server time.
        #[schema(value_type = String, format = DateTime)]
        now: Timestamp,
        /// The sessions updated last, and all that are active.
        sessions: Vec<Session>,
        /// Number of all sessions.
        known: u64,
        /// The open approval requests, the oldest first; limited in number.
        approvals: Vec<OpenApproval>,
        /// Number of open approval requests.
        pending: u64,
        /// Report about too many requests, if there are.
        #[serde(skip_serializing_if = "Option::is_none")]
        busy: Option<ApprovalFlood>,
        /// Verification status of the audit log.
        audit: AuditStatus,
    },
    /// A session has changed.
    Session {
        /// The session.
        session: Session,
    },
    /// An approval request is open.
    ApprovalRequested {
        /// The request.
        approval: OpenApproval,
    },
    /// An approval request is closed.
    ApprovalClosed {
        /// The id of the request.
        #[schema(value_type = String)]
        id: ApprovalId,
        /// The decision.
        decided: DecidedApproval,
    },
    /// The report about too many approval requests has changed.
    ApprovalFlood {
        /// The report; `None` if there are not too many any more.
        busy: Option<ApprovalFlood>,
    },
    /// The approval rules have changed.
    Rules {},
    /// The verification status of the audit log has changed.
    Audit {
        /// The status.
        audit: AuditStatus,
    },
    /// The result of an answer.
    Answered {
        /// The id of the request.
        id: String,
        /// `true` if the answer counts.
        ok: bool,
        /// The reason if it does not count.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorDetails>,
    },
}

/// A message of a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ClientMessage {
    /// An answer to an approval request.
    Answer {
        id: String,
        option: String,
        #[serde(default)]
        reason: Option<String>,
        nonce: String,
        #[serde(default)]
        scope: AnswerScope,
        #[serde(default)]
        rule: Option<ChosenRule>,
    },
    /// Changes the filter of records.
    Watch {
        #[serde(default)]
        session: Option<String>,
        #[serde(default)]
        event: Option<String>,
        #[serde(default)]
        kind: Option<String>,
        #[serde(default)]
        hook: Option<String>,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        after: Option<u64>,
    },
}

impl StreamMessage {
    /// Returns the JSON; `None` after a logged error.
    pub(super) fn text(&self) -> Option<Utf8Bytes> {
        let text = serde_json::to_string(self);
        text.inspect_err(|error| tracing::error!(%error, "a message of the stream cannot be written"))
            .ok()
            .map(Into::into)
    }
}
