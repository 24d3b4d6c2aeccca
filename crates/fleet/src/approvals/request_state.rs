//! The states of approval requests in their stream.

use amplifier_core::text::truncate_bytes;
use amplifier_core::{ActionPreview, ApprovalDecision};
use amplifier_link::OpenApproval;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::FleetError;

/// The last message about an approval request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum RequestState {
    /// The request waits for an answer.
    Open {
        /// The number of answers that were refused. Each next answer has its own subject, because a subject takes one message.
        refused: u32,
        /// The request.
        approval: Box<OpenApproval>,
    },
    /// The kernel has decided.
    Closed {
        /// The decision.
        decision: ApprovalDecision,
    },
}

impl RequestState {
    /// Creates the state of a decided request, with a text of limited length.
    pub(super) fn closed(mut decision: ApprovalDecision) -> Self {
        decision.reason = truncate_bytes(&decision.reason, ActionPreview::LARGEST_TEXT).into_owned();
        Self::Closed { decision }
    }

    pub(super) fn read(subject: &str, payload: &[u8]) -> Result<Self, FleetError> {
        serde_json::from_slice(payload)
            .map_err(|error| FleetError::Invalid { subject: subject.to_owned(), cause: error.to_string() })
    }

    pub(super) fn to_payload(&self, subject: &str) -> Result<Bytes, FleetError> {
        let payload = serde_json::to_vec(self)
            .map_err(|error| FleetError::Invalid { subject: subject.to_owned(), cause: error.to_string() })?;
        Ok(payload.into())
    }
}
