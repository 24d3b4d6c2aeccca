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

/// The number of open requests of one machine, and their size in bytes. Beyond the size, requests are kept without details.
const MAX_OPEN: usize = 10_000;
const MAX_OPEN_BYTES: usize = 16 << 20;

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
    usage: HashMap<FleetName, Usage>,
    /// The positions of the last states, so that an older copy is ignored, and the time at which each was read.
    positions: HashMap<RequestKey, (u64, Instant)>,
}

/// The open requests of one machine.
#[derive(Default)]
struct Usage {
    count: usize,
    bytes: usize,
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

impl Requests {
    /// Adds an open request in the place of an earlier state. None if its machine has too many.
    fn insert(&mut self, key: RequestKey, approval: OpenApproval, refused: u32) -> Option<Arc<OpenApproval>> {
        self.remove(&key);
        let usage = self.usage.entry(key.0.clone()).or_default();
        if usage.count >= MAX_OPEN {
            tracing::warn!(machine = %key.0, "an approval request is ignored: the machine has too many");
            return None;
        }
        let has_room = usage.bytes + approval.weight() <= MAX_OPEN_BYTES;
        let approval = Arc::new(if has_room { approval } else { approval.withheld() });
        usage.count += 1;
        usage.bytes += approval.weight();
        self.open.insert(key, OpenState { approval: approval.clone(), refused });
        Some(approval)
    }

    /// Removes an open request, and returns `true` if there was one.
    fn remove(&mut self, key: &RequestKey) -> bool {
        let Some(OpenState { approval, .. }) = self.open.remove(key) else { return false };
        if let Some(usage) = self.usage.get_mut(&key.0) {
            usage.count -= 1;
            usage.bytes = usage.bytes.saturating_sub(approval.weight());
            if usage.count == 0 {
                self.usage.remove(&key.0);
            }
        }
        true
    }
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
                let approval = OpenApproval { machine, ..*approval };
                let Some(approval) = requests.insert(key, approval, refused) else { return };
                ConsoleEvent::Opened(approval)
            }
            RequestState::Closed { decision } => {
                if !requests.remove(&key) {
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
        let expired = requests.open.iter().filter(|(_, open)| is_expired(&open.approval, now));
        let expired: Vec<RequestKey> = expired.map(|(key, _)| key.clone()).collect();
        for key in expired {
            requests.remove(&key);
            let reason = "the time limit has passed, and the machine has not reported its decision";
            let decision = ApprovalDecision::new(false, DecisionBasis::Disconnected, reason);
            let (machine, id) = key;
            let _ = self.events.send(ConsoleEvent::Closed { machine, id, decision });
        }
        let Requests { open, positions, .. } = &mut *requests;
        positions.retain(|key, (_, at)| open.contains_key(key) || at.elapsed() < DELAY);
    }
}

fn is_expired(approval: &OpenApproval, now: Timestamp) -> bool {
    approval.deadline.checked_add(GRACE).is_ok_and(|end| end < now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_with_too_many_requests_does_not_fill_the_memory_of_a_console() {
        let approval = json!({
            "id": "s.r.1", "number": 1, "session": "s", "workspace": "/", "hook": "guard", "event": "tool:pre", "prompt": "x".repeat(16 << 10),
            "options": [], "created_at": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:05:00Z", "timeout_s": 300.0, "default": "deny",
            "digest": "0".repeat(64), "preview": { "title": "Deploy" },
        });
        let approval: OpenApproval = serde_json::from_value(approval).unwrap();
        let mut requests = Requests::default();
        let key = |machine: &str, number| (machine.parse().unwrap(), ApprovalId::new("s", "r", number));
        for number in 0..MAX_OPEN as u64 {
            let kept = requests.insert(key("m1", number), approval.clone(), 0).unwrap();
            assert!(kept.prompt.len() > 1000 || number > 900, "{number}");
        }
        assert!(requests.insert(key("m1", MAX_OPEN as u64), approval.clone(), 0).is_none());
        assert_eq!(requests.insert(key("m2", 0), approval, 0).unwrap().prompt.len(), 16 << 10);
        assert!(requests.usage.values().all(|usage| usage.bytes < 2 * MAX_OPEN_BYTES));
        for number in 0..MAX_OPEN as u64 {
            assert!(requests.remove(&key("m1", number)));
        }
        assert!(!requests.remove(&key("m1", 0)) && requests.usage.len() == 1);
    }
}
