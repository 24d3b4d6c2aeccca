//! The answering side: the open approval requests of all machines, and signed answers to them.

use std::sync::Arc;
use std::time::Duration;

use amplifier_audit::SigningKey;
use amplifier_core::{Actor, ApprovalAnswer, ApprovalDecision, DecisionBasis};
use amplifier_link::{AnswerScope, AnswerStatus, ApprovalId, OpenApproval};
use async_nats::HeaderMap;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;

use super::console_state::{AnswerError, ConsoleState, TICK};
use super::request_feed;
use super::request_state::RequestState;
use super::signed_answer::SignedAnswer;
use crate::{Connection, FleetError, FleetName, subjects};

/// The number of states that wait to be applied.
const CHANGES: usize = 256;

/// The time in which an answer is stored, which is longer than an election.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// The pause before an answer is stored again, doubled each time up to the second value.
const PAUSE: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];

/// A console: shows the open approval requests of all machines, and signs answers. Cheap to clone; clones share state.
///
/// It keeps nothing that it cannot read from the centre again, so any number of consoles can run.
#[derive(Clone)]
pub struct Console {
    state: Arc<ConsoleState>,
    _following: Arc<AbortOnDrop>,
}

/// A change that subscribers are notified of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConsoleEvent {
    /// A request is open. Its `machine` is set.
    Opened(Arc<OpenApproval>),
    /// A request is closed.
    Closed {
        /// The machine.
        machine: FleetName,
        /// The request.
        id: ApprovalId,
        /// The decision.
        decision: ApprovalDecision,
    },
}

impl Console {
    /// Starts to follow the requests of all machines. The name of the connection is the name of the console.
    pub fn start(connection: Connection, key: SigningKey) -> Self {
        let state = Arc::new(ConsoleState::new(connection.clone(), key));
        let (send, changes) = mpsc::channel(CHANGES);
        let (own, follower) = (state.clone(), request_feed::follow(connection, send));
        let task = tokio::spawn(async move {
            tokio::join!(follower, own.apply_changes(changes));
        });
        Self { state, _following: Arc::new(AbortOnDrop(task)) }
    }

    /// Returns the console's name.
    pub fn name(&self) -> &FleetName {
        self.state.connection.name()
    }

    /// Returns the open requests of all machines, by machine.
    pub fn open_requests(&self) -> Vec<Arc<OpenApproval>> {
        self.state.requests().open.values().map(|open| open.approval.clone()).collect()
    }

    /// Subscribes to changes. A subscriber that lags receives an error, and reads everything again.
    pub fn subscribe(&self) -> broadcast::Receiver<ConsoleEvent> {
        self.state.events.subscribe()
    }

    /// Signs an answer, and stores it at the centre if it is the first one.
    ///
    /// # Errors
    /// If another answer was first, the request is closed or does not offer the answer, or the centre does not reply.
    ///
    /// # Cancel safety
    /// When the future is dropped, the answer may be stored, and counts.
    pub async fn answer(
        &self,
        machine: &FleetName,
        id: &ApprovalId,
        answer: ApprovalAnswer,
    ) -> Result<(), AnswerError> {
        let Self { state, .. } = self;
        let connection = &state.connection;
        let key = (machine.clone(), id.clone());
        let mut retries = Retries::new();
        let known = state.requests().open.get(&key).cloned();
        let mut open = match known {
            Some(open) => open,
            None => loop {
                match state.read(&key).await {
                    Err(AnswerError::Fleet(error)) => retries.wait(error).await?,
                    read => break read?,
                }
            },
        };
        if let Some(reason) = open.approval.rejection(&answer.label, AnswerScope::Once, answer.rule.as_ref()) {
            return Err(AnswerError::NotOffered(reason));
        }
        let signed = SignedAnswer {
            machine: machine.clone(),
            id: id.clone(),
            digest: open.approval.digest,
            answer,
            console: connection.name().clone(),
            reference: connection.client().new_inbox(),
        };
        let invalid = |error: serde_json::Error| FleetError::Invalid {
            subject: subjects::answer(machine, id),
            cause: error.to_string(),
        };
        let payload = signed.sign(&state.key).map_err(invalid)?.into_bytes();
        loop {
            let subject = subjects::answer_after(machine, id, open.refused);
            let failure = match connection.publish(&subject, HeaderMap::new(), payload.clone().into()).await {
                Ok(_) => return Ok(()),
                Err(conflict @ FleetError::Conflict { .. }) => {
                    match connection.last_message(subjects::ANSWER, &subject).await {
                        // Stored by an attempt whose reply was lost.
                        Ok(Some(first)) if first.payload == payload => return Ok(()),
                        Ok(Some(first)) => match state.read(&key).await {
                            // The machine has refused the first answer, and waits for another one.
                            Ok(newer) if newer.refused > open.refused => {
                                open = newer;
                                continue;
                            }
                            Err(decided @ AnswerError::Answered(_)) => return Err(decided),
                            _ => {
                                let first = SignedAnswer::read(&first.payload).ok();
                                return Err(AnswerError::Answered(first.and_then(|first| first.answer.by)));
                            }
                        },
                        // The server that replied does not have it yet.
                        Ok(None) => conflict,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            retries.wait(failure).await?;
        }
    }

    /// Waits for the decision on a request for a limited time, and returns the status of an answer by this approver.
    pub async fn status(
        &self,
        machine: &FleetName,
        id: &ApprovalId,
        by: Option<&Actor>,
        limit: Duration,
    ) -> (AnswerStatus, Option<ApprovalDecision>) {
        let Ok(decision) = tokio::time::timeout(limit, self.decision(machine, id)).await else {
            return (AnswerStatus::Sent, None);
        };
        let is_taken = decision.basis == DecisionBasis::Answer && decision.by.as_ref() == by;
        let status = if is_taken { AnswerStatus::Taken } else { AnswerStatus::of_ignored_answer(&decision) };
        (status, Some(decision))
    }

    async fn decision(&self, machine: &FleetName, id: &ApprovalId) -> ApprovalDecision {
        let key = (machine.clone(), id.clone());
        loop {
            let mut events = self.subscribe();
            if let Ok(Some(RequestState::Closed { decision })) = self.state.read_state(&key).await {
                return decision;
            }
            let next = async {
                while let Ok(event) = events.recv().await {
                    match event {
                        ConsoleEvent::Closed { machine, id, decision } if (&machine, &id) == (&key.0, &key.1) => {
                            return Some(decision);
                        }
                        _ => {}
                    }
                }
                None
            };
            // Without a notification, the stream is read again.
            if let Ok(Some(decision)) = tokio::time::timeout(TICK, next).await {
                return decision;
            }
        }
    }
}

/// The attempts to store an answer, during an election or without a network.
struct Retries {
    until: tokio::time::Instant,
    pause: Duration,
}

impl Retries {
    fn new() -> Self {
        Self { until: tokio::time::Instant::now() + ANSWER_LIMIT, pause: PAUSE[0] }
    }

    /// Waits before the next attempt, or returns the failure of the last one.
    async fn wait(&mut self, failure: FleetError) -> Result<(), FleetError> {
        if tokio::time::Instant::now() + self.pause > self.until {
            return Err(failure);
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE[1]);
        Ok(())
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
