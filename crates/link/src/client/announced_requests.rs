//! The approval requests of a session: announced to the server, and answered once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use amplifier_core::{ApprovalAnswer, ApprovalDecision, DecisionBasis, Digest, OpenRequest};
use tokio::sync::oneshot;

use super::ClientState;
use crate::approval::{AnswerScope, ApprovalAsker, ApprovalId, OpenApproval};
use crate::session_message::{AnswerStatus, SessionMessage};
use crate::transport::MAX_LINE_BYTES;
use crate::truncate::truncate_request;

/// The number of remembered closed requests, and their age. The session records late answers to these itself; for older ones, the server finds the
/// decision in the log.
const CLOSED_LIMIT: (usize, Duration) = (256, Duration::from_secs(3600));

pub(super) struct PendingRequest {
    request: Arc<OpenRequest>,
    pub(super) approval: OpenApproval,
    /// The channel for the first answer to the kernel.
    answer: Option<oneshot::Sender<ApprovalAnswer>>,
    /// `true` if the kernel received the answer.
    is_delivered: Arc<AtomicBool>,
}

pub(super) struct ClosedRequest {
    id: ApprovalId,
    request: Arc<OpenRequest>,
    decision: ApprovalDecision,
    at: Instant,
}

enum AnswerTarget {
    /// Open: the answer goes to the kernel.
    Open(oneshot::Sender<ApprovalAnswer>, Arc<OpenRequest>, Arc<AtomicBool>),
    /// Open, but answered already.
    Answered(Arc<OpenRequest>),
    Closed(Arc<OpenRequest>, ApprovalDecision),
    NotOffered,
    Unknown,
}

impl ClientState {
    pub(super) async fn announce_request(
        self: Arc<Self>,
        request: Arc<OpenRequest>,
        answer: oneshot::Sender<ApprovalAnswer>,
        is_delivered: Arc<AtomicBool>,
    ) {
        let approval = truncate_request(self.approval(&request), MAX_LINE_BYTES / 2);
        let id = approval.id.clone();
        {
            let mut state = self.state();
            state.send(SessionMessage::ApprovalRequested { approval: Box::new(approval.clone()) });
            let pending = PendingRequest { request: request.clone(), approval, answer: Some(answer), is_delivered };
            state.open.insert(request.number, pending);
        }
        let decision = request.closed().await;
        {
            let mut state = self.state();
            state.open.remove(&request.number);
            state.send(SessionMessage::ApprovalClosed { id: id.clone(), decision: decision.clone() });
            let now = Instant::now();
            state.closed.push_back(ClosedRequest { id, request, decision, at: now });
            let is_old = |closed: &ClosedRequest| now.duration_since(closed.at) > CLOSED_LIMIT.1;
            while state.closed.len() > CLOSED_LIMIT.0 || state.closed.front().is_some_and(is_old) {
                state.closed.pop_front();
            }
        }
        // The decision may have created a rule.
        self.send_rules();
    }

    fn approval(&self, open: &OpenRequest) -> OpenApproval {
        let session = self.session.borrow().clone().unwrap_or_default();
        let run = self.options.run.as_str();
        let asker =
            ApprovalAsker { session: &session, name: self.options.name.as_deref(), run, workspace: &self.workspace };
        OpenApproval::from_request(open, &asker)
    }

    /// Passes an answer to the kernel, and returns the result.
    pub(super) async fn deliver_answer(
        self: &Arc<Self>,
        id: &ApprovalId,
        digest: Digest,
        answer: ApprovalAnswer,
    ) -> (AnswerStatus, Option<ApprovalDecision>) {
        let (request, decision) = match self.target(id, digest, &answer) {
            AnswerTarget::Open(kernel, request, is_delivered) => {
                // If this fails, another answer was first, and the request closes.
                let _ = kernel.send(answer.clone());
                let decision = request.closed().await;
                let is_delivered = is_delivered.load(Ordering::SeqCst);
                if is_delivered && decision.basis == DecisionBasis::Answer && decision.by == answer.by {
                    return (AnswerStatus::Taken, Some(decision));
                }
                // The kernel records late answers that it received itself.
                if !(is_delivered && decision.basis == DecisionBasis::Timeout) {
                    request.record_late_answer(answer);
                }
                (request, decision)
            }
            AnswerTarget::Answered(request) => {
                let decision = request.closed().await;
                request.record_late_answer(answer);
                (request, decision)
            }
            AnswerTarget::Closed(request, decision) => {
                request.record_late_answer(answer);
                (request, decision)
            }
            AnswerTarget::NotOffered => return (AnswerStatus::NotOffered, None),
            AnswerTarget::Unknown => return (AnswerStatus::Closed, None),
        };
        tracing::debug!(hook.name = %request.hook, basis = decision.basis.as_str(), "an answer does not count");
        (AnswerStatus::of_ignored_answer(&decision), Some(decision))
    }

    fn target(&self, id: &ApprovalId, digest: Digest, answer: &ApprovalAnswer) -> AnswerTarget {
        let mut state = self.state();
        let is_open = |pending: &&mut PendingRequest| pending.approval.id == *id && pending.request.digest == digest;
        if let Some(pending) = state.open.get_mut(&id.number).filter(is_open) {
            let request = pending.request.clone();
            if pending.approval.rejection(&answer.label, AnswerScope::Once, answer.rule.as_ref()).is_some() {
                return AnswerTarget::NotOffered;
            }
            return match pending.answer.take() {
                Some(kernel) => AnswerTarget::Open(kernel, request, pending.is_delivered.clone()),
                None => AnswerTarget::Answered(request),
            };
        }
        let closed = state.closed.iter().find(|closed| closed.id == *id && closed.request.digest == digest);
        closed.map_or(AnswerTarget::Unknown, |closed| {
            AnswerTarget::Closed(closed.request.clone(), closed.decision.clone())
        })
    }
}
