//! What is said on the stream, in both directions.

use amplifier_link::{AnswerScope, ApprovalId, DecidedApproval, OpenApproval};
use axum::extract::ws::Utf8Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::wire::{ApprovalFlood, AuditStatus, ErrorDetails, Me, Session};

/// What the server sends.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "each is written at once, and none is kept")]
pub(super) enum StreamMessage {
    /// How things are.
    Hello {
        /// Who the server takes the client for.
        me: Me,
        /// The number of the first record that will come.
        cursor: u64,
        /// The time at the server.
        #[schema(value_type = String, format = DateTime)]
        now: Timestamp,
        /// The sessions last heard of, and all that are not over.
        sessions: Vec<Session>,
        /// How many sessions there are.
        known: u64,
        /// The questions that are open, the oldest first; not all if there are very many.
        approvals: Vec<OpenApproval>,
        /// How many questions are open.
        pending: u64,
        /// Whether there are too many.
        #[serde(skip_serializing_if = "Option::is_none")]
        busy: Option<ApprovalFlood>,
        /// What is proven about the audit log.
        audit: AuditStatus,
    },
    /// Something about a session has changed.
    Session {
        /// How it is now.
        session: Session,
    },
    /// An approval request is open.
    ApprovalRequested {
        /// The request.
        approval: OpenApproval,
    },
    /// An approval request is closed.
    ApprovalClosed {
        /// Its id.
        #[schema(value_type = String)]
        id: ApprovalId,
        /// The decision.
        decided: DecidedApproval,
    },
    /// There are too many approval requests, or no longer.
    ApprovalFlood {
        /// How many; none if there are not too many any more.
        busy: Option<ApprovalFlood>,
    },
    /// The standing answers have changed.
    Rules {},
    /// What is proven about the audit log has changed.
    Audit {
        /// What is proven.
        audit: AuditStatus,
    },
    /// What became of an answer.
    Answered {
        /// Of the answer to which question.
        id: String,
        /// Whether it counts.
        ok: bool,
        /// Why not.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorDetails>,
    },
}

/// What a client sends.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ClientMessage {
    /// An answer to a question.
    Answer {
        id: String,
        option: String,
        nonce: String,
        #[serde(default)]
        scope: AnswerScope,
    },
    /// Other records are wanted from now on.
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
    /// As it is sent; none if it cannot be written, which the log says.
    pub(super) fn text(&self) -> Option<Utf8Bytes> {
        let text = serde_json::to_string(self);
        text.inspect_err(|error| tracing::error!(%error, "a message of the stream cannot be written"))
            .ok()
            .map(Into::into)
    }
}
