//! Errors of the hub.

use amplifier_core::{Actor, DecisionBasis};
use amplifier_link::{ApprovalId, DecidedApproval};

/// The reason why a request to the hub failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HubError {
    /// The kind of error.
    pub code: HubErrorCode,
    /// The problem, and what to do.
    pub message: String,
    /// The approver who was faster.
    pub by: Option<Actor>,
    /// `true` if no session has got the answer, so that none has recorded it.
    pub undelivered: bool,
}

/// The kinds of errors of the hub. The API has each as a word and a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubErrorCode {
    /// The approval request, session or rule was not found.
    NotFound,
    /// The nonce does not belong to the request.
    Nonce,
    /// Another approver has answered.
    Answered,
    /// The time limit has passed.
    Late,
    /// The request is closed for another reason.
    Closed,
    /// The option does not exist, or is not allowed for that scope.
    InvalidOption,
    /// The rule is invalid.
    InvalidRule,
    /// The session takes no prompts.
    NoPrompts,
    /// The session is in the middle of a turn.
    Busy,
    /// Too many requests of the same kind run.
    TooMany,
    /// The session, or the machine, is not connected.
    Offline,
    /// The session, or the machine, has not replied in time.
    TimedOut,
    /// The machine refuses the request.
    Refused,
    /// The request failed.
    Failed,
}

impl HubError {
    pub(crate) fn new(code: HubErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), by: None, undelivered: false }
    }

    /// Marks an answer that no session has recorded.
    pub(super) fn undelivered(self) -> Self {
        Self { undelivered: true, ..self }
    }

    pub(super) fn unknown(id: &ApprovalId) -> Self {
        Self::new(HubErrorCode::NotFound, format!("unknown approval request `{id}`"))
    }

    pub(super) fn offline(session: &str) -> Self {
        Self::new(HubErrorCode::Offline, format!("session `{session}` is not connected"))
    }

    /// The requesting process has ended, because another one has taken over the session.
    pub(super) fn run_replaced(session: &str) -> Self {
        let message = format!(
            "the run of session `{session}` that sent this request has ended; a new run continues the session, and sends its own requests"
        );
        Self::new(HubErrorCode::Closed, message)
    }

    pub(super) fn late() -> Self {
        Self::new(HubErrorCode::Late, "the approval request has expired; the answer is recorded and has no effect")
    }

    /// The machine of the request has not confirmed the answer.
    pub(super) fn sent() -> Self {
        let message = "the answer is on its way, but the machine has not confirmed it; it counts if it arrives within the time limit";
        Self::new(HubErrorCode::TimedOut, message)
    }

    pub(super) fn already_answered(by: Option<Actor>) -> Self {
        let who = by.as_ref().map_or_else(|| "another approver".to_owned(), |by| format!("{} ({})", by.name, by.via));
        Self { by, ..Self::new(HubErrorCode::Answered, format!("{who} has already answered")) }
    }

    /// Returns the error for an answer to a decided request.
    pub(crate) fn already_decided(decided: &DecidedApproval) -> Self {
        match decided.basis {
            DecisionBasis::Answer | DecisionBasis::InvalidOption => Self::already_answered(decided.by.clone()),
            // No session confirmed a record of the answer.
            DecisionBasis::Timeout => {
                Self::new(HubErrorCode::Late, "the approval request has expired; the answer has no effect")
            }
            DecisionBasis::Disconnected => Self::offline(&decided.session),
            _ => Self::new(HubErrorCode::Closed, format!("the approval request is no longer open: {}", decided.reason)),
        }
    }
}
