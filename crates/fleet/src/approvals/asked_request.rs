//! One approval request of this machine: its states at the centre, and its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use amplifier_core::{ApprovalAnswer, ApprovalDecision, DecisionBasis, OpenRequest};
use amplifier_link::OpenApproval;
use async_nats::HeaderMap;
use tokio::sync::{oneshot, watch};

use super::answer_reader::AnswerSubject;
use super::asker::AskerState;
use super::request_state::RequestState;
use super::signed_answer::SignedAnswer;
use crate::{FleetError, StoredMessage, subjects};

/// The pause before a state is published again, doubled each time up to the second value.
const PAUSE: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// The time in which a closed request is still published, and its late answers are recorded.
const LATE: Duration = Duration::from_secs(3600);

/// The longest pause between two reads of the answer to an open request, and to a closed one. Notifications can be lost with a connection.
const POLL: Duration = Duration::from_secs(2);
const LATE_POLL: Duration = Duration::from_secs(300);

/// The largest number of refused answers. Beyond it, the consoles cannot answer.
const MAX_REFUSED: u32 = 16;

/// A request, as the consoles see it.
struct AskedRequest<'a> {
    asker: &'a AskerState,
    request: &'a OpenRequest,
    approval: OpenApproval,
    subject: String,
}

/// The answer that the kernel was given.
#[derive(Default)]
struct PassedAnswer {
    /// The number of refused answers before it.
    refused: u32,
    answer: Option<ApprovalAnswer>,
}

impl AskerState {
    /// Publishes a request until it is closed, passes the first valid answer to the kernel, and records late ones.
    pub(super) async fn ask(
        self: Arc<Self>,
        request: Arc<OpenRequest>,
        kernel: oneshot::Sender<ApprovalAnswer>,
        is_delivered: Arc<AtomicBool>,
    ) {
        let unstored = UnstoredGuard::new(&self.unstored);
        let approval = self.approval(&request);
        let subject = subjects::ask(self.connection.name(), &approval.id);
        let asked = AskedRequest { asker: &self, request: &request, approval, subject };
        let mut passed = PassedAnswer::default();
        let decision = tokio::select! {
            decision = request.closed() => decision,
            () = asked.pass_answer(&mut passed, kernel) => request.closed().await,
        };
        asked.close(passed, decision, &is_delivered, unstored).await;
    }
}

impl AskedRequest<'_> {
    /// Publishes the request, and passes the first valid answer to the kernel. Returns early if no answer can come.
    async fn pass_answer(&self, passed: &mut PassedAnswer, kernel: oneshot::Sender<ApprovalAnswer>) {
        // A delayed copy of the request must not follow a later state.
        let mut last = 0;
        for refused in 0..MAX_REFUSED {
            passed.refused = refused;
            // Before the request is known, so that no notification is missed.
            let answers = self.answers(refused);
            let state = RequestState::Open { refused, approval: Box::new(self.approval.clone()) };
            match self.publish(&state, Some(last)).await {
                Ok(sequence) => last = sequence,
                Err(error) => return self.request.record_failure(format!("consoles cannot see the request: {error}")),
            }
            let message = answers.wait(POLL).await;
            if let Some(answer) = self.verified(&message) {
                passed.answer = Some(answer.clone());
                // Fails if the kernel has decided meanwhile.
                let _ = kernel.send(answer);
                return;
            }
        }
    }

    /// Publishes the decision, and records an answer that came too late.
    async fn close(
        &self,
        passed: PassedAnswer,
        decision: ApprovalDecision,
        is_delivered: &AtomicBool,
        unstored: UnstoredGuard<'_>,
    ) {
        let answers = self.answers(passed.refused);
        let state = RequestState::closed(decision.clone());
        let published = tokio::time::timeout(LATE, self.publish(&state, None)).await;
        drop(unstored);
        if let Ok(Err(error)) = published {
            tracing::warn!(%error, "a decision cannot be stored at the centre");
        }
        if let Some(answer) = passed.answer {
            let is_delivered = is_delivered.load(Ordering::SeqCst);
            let counts = is_delivered && decision.basis == DecisionBasis::Answer && decision.by == answer.by;
            // The kernel records late answers that it received itself.
            let is_recorded = is_delivered && decision.basis == DecisionBasis::Timeout;
            if !(counts || is_recorded) {
                self.request.record_late_answer(answer);
            }
            return;
        }
        let late = match self.asker.late_watches.try_acquire() {
            Ok(_watch) => tokio::time::timeout(LATE, answers.wait(LATE_POLL)).await.ok(),
            Err(_) => answers.read().await.ok().flatten(),
        };
        if let Some(answer) = late.and_then(|message| self.verified(&message)) {
            self.request.record_late_answer(answer);
        }
    }

    fn answers(&self, refused: u32) -> AnswerSubject<'_> {
        let machine = self.asker.connection.name();
        self.asker.answers.listen(subjects::answer_after(machine, &self.approval.id, refused))
    }

    /// Returns the answer if it counts, and records why if not.
    fn verified(&self, message: &StoredMessage) -> Option<ApprovalAnswer> {
        let keys = self.asker.options.consoles.borrow().clone();
        let machine = self.asker.connection.name();
        SignedAnswer::verify(&message.payload, machine, &self.approval, &keys)
            .inspect_err(|invalid| self.request.record_failure(invalid.to_string()))
            .ok()
    }

    /// Stores a state after the message `expected`, and tries again while the centre does not reply: during an election, or without a network.
    /// Returns the position of the stored message.
    async fn publish(&self, state: &RequestState, expected: Option<u64>) -> Result<u64, FleetError> {
        let (subject, connection) = (&self.subject, &self.asker.connection);
        let payload = state.to_payload(subject)?;
        let most = connection.client().max_payload();
        if payload.len() > most {
            let cause = format!("the request has {} bytes, and the centre takes {most}", payload.len());
            return Err(FleetError::Invalid { subject: subject.clone(), cause });
        }
        let mut headers = HeaderMap::new();
        if let Some(expected) = expected {
            headers.insert("Nats-Expected-Last-Subject-Sequence", expected.to_string().as_str());
        }
        let mut pause = PAUSE[0];
        loop {
            let failure = match connection.publish(subject, headers.clone(), payload.clone()).await {
                Ok(sequence) => return Ok(sequence),
                // Only this machine writes here, so it was stored by an attempt whose reply was lost.
                Err(conflict @ FleetError::Conflict { .. }) => {
                    match connection.last_message(subjects::ASK, subject).await {
                        Ok(Some(stored)) => return Ok(stored.sequence),
                        Ok(None) => conflict,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            tracing::debug!(error = %failure, "an approval request is not stored yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE[1]);
        }
    }
}

/// Counts a request until its last state is stored.
struct UnstoredGuard<'a>(&'a watch::Sender<usize>);

impl<'a> UnstoredGuard<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for UnstoredGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
