//! The open approval requests of all machines, as a console knows them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amplifier_audit::SigningKey;
use amplifier_core::{Actor, ApprovalDecision, DecisionBasis};
use amplifier_link::{ApprovalId, OpenApproval};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{broadcast, mpsc};

use super::console::ConsoleEvent;
use super::request_feed::RequestChange;
use super::request_state::RequestState;
use crate::{Connection, FleetError, FleetName, subjects};

/// The number of changes that wait for a subscriber. One that misses some reads everything again.
const EVENTS: usize = 4096;

/// The time after its time limit for which a request is shown without a decision of its machine. Clocks differ.
const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// The time in which an older copy of a state may still arrive.
const DELAY: Duration = Duration::from_secs(120);

/// The interval of the checks for such requests.
pub(super) const TICK: Duration = Duration::from_secs(1);

pub(super) struct ConsoleState {
    pub(super) connection: Connection,
    pub(super) key: SigningKey,
    // A std lock: nothing awaits while it is held.
    requests: Mutex<Requests>,
    pub(super) events: broadcast::Sender<ConsoleEvent>,
}

#[derive(Default)]
pub(super) struct Requests {
    pub(super) open: BTreeMap<RequestKey, OpenState>,
    /// The positions of the last states, so that an older copy is ignored, and the time at which each was read.
    positions: HashMap<RequestKey, (u64, Instant)>,
}

pub(super) type RequestKey = (FleetName, ApprovalId);

#[derive(Clone)]
pub(super) struct OpenState {
    pub(super) approval: Arc<OpenApproval>,
    pub(super) refused: u32,
}

/// The reason why an answer was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Another answer was stored first.
    #[error("{} has already answered", name_of(.0.as_ref()))]
    Answered(Option<Actor>),
    /// The request is closed.
    #[error("the approval request is no longer open: {}", .0.reason)]
    Closed(ApprovalDecision),
    /// The request is not known at the centre.
    #[error("unknown approval request `{id}` of the machine `{machine}`")]
    Unknown {
        /// The machine.
        machine: FleetName,
        /// The request.
        id: ApprovalId,
    },
    /// The request does not offer this answer.
    #[error("{0}")]
    NotOffered(String),
    /// The centre did not store the answer in time. It may have stored it without a reply.
    #[error("the answer may not be stored: {0}")]
    Fleet(#[from] FleetError),
}

impl AnswerError {
    fn of_decision(decision: ApprovalDecision) -> Self {
        match decision.basis {
            DecisionBasis::Answer => Self::Answered(decision.by),
            _ => Self::Closed(decision),
        }
    }
}

fn name_of(actor: Option<&Actor>) -> String {
    actor.map_or_else(|| "another approver".to_owned(), |by| format!("{} ({})", by.name, by.via))
}

impl ConsoleState {
    pub(super) fn new(connection: Connection, key: SigningKey) -> Self {
        let (events, _) = broadcast::channel(EVENTS);
        Self { connection, key, requests: Mutex::default(), events }
    }

    pub(super) fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the last state of a request from the centre.
    pub(super) async fn read_state(&self, (machine, id): &RequestKey) -> Result<Option<RequestState>, FleetError> {
        let subject = subjects::ask(machine, id);
        let stored = self.connection.last_message(subjects::ASK, &subject).await?;
        stored.map(|stored| RequestState::read(&subject, &stored.payload)).transpose()
    }

    /// Reads an open request from the centre.
    pub(super) async fn read(&self, key: &RequestKey) -> Result<OpenState, AnswerError> {
        match self.read_state(key).await? {
            Some(RequestState::Open { refused, approval }) => Ok(OpenState { approval: Arc::from(approval), refused }),
            Some(RequestState::Closed { decision }) => Err(AnswerError::of_decision(decision)),
            None => Err(AnswerError::Unknown { machine: key.0.clone(), id: key.1.clone() }),
        }
    }

    pub(super) async fn apply_changes(self: Arc<Self>, mut changes: mpsc::Receiver<RequestChange>) {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    Some(change) => self.apply(change),
                    None => return,
                },
                _ = ticks.tick() => self.drop_expired(Timestamp::now()),
            }
        }
    }

    fn apply(&self, RequestChange { subject, sequence, state }: RequestChange) {
        let Some(key) = subjects::approval(&subject) else { return };
        let mut requests = self.requests();
        if requests.positions.get(&key).is_some_and(|(known, _)| *known >= sequence) {
            return;
        }
        requests.positions.insert(key.clone(), (sequence, Instant::now()));
        let event = match state {
            RequestState::Open { approval, .. } if approval.id != key.1 || is_expired(&approval, Timestamp::now()) => {
                return;
            }
            RequestState::Open { refused, approval } => {
                // The subject names the machine: the message could name any.
                let machine = Some(key.0.to_string());
                let approval = Arc::new(OpenApproval { machine, ..*approval });
                requests.open.insert(key, OpenState { approval: approval.clone(), refused });
                ConsoleEvent::Opened(approval)
            }
            RequestState::Closed { decision } => {
                if requests.open.remove(&key).is_none() {
                    return;
                }
                let (machine, id) = key;
                ConsoleEvent::Closed { machine, id, decision }
            }
        };
        drop(requests);
        // There may be no subscribers.
        let _ = self.events.send(event);
    }

    /// Closes the requests whose machine has not reported a decision, because it is gone or not connected.
    fn drop_expired(&self, now: Timestamp) {
        let mut requests = self.requests();
        let Requests { open, positions } = &mut *requests;
        let expired: Vec<RequestKey> =
            open.iter().filter(|(_, open)| is_expired(&open.approval, now)).map(|(key, _)| key.clone()).collect();
        for key in expired {
            open.remove(&key);
            let reason = "the time limit has passed, and the machine has not reported its decision";
            let decision = ApprovalDecision::new(false, DecisionBasis::Disconnected, reason);
            let (machine, id) = key;
            let _ = self.events.send(ConsoleEvent::Closed { machine, id, decision });
        }
        positions.retain(|key, (_, at)| open.contains_key(key) || at.elapsed() < DELAY);
    }
}

fn is_expired(approval: &OpenApproval, now: Timestamp) -> bool {
    approval.deadline.checked_add(GRACE).is_ok_and(|end| end < now)
}
