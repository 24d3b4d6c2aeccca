//! One decision for a call that arrives twice: some clients also run the hooks of others.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::answer::GuardAnswer;
use crate::client::Client;
use crate::event::{ClientEvent, EventKind};

/// The most decisions that are remembered.
const MAX_REMEMBERED: usize = 4096;
/// The time for the arrival of a call by another hook. Later, the same id is another call: some models count their calls from 0 again.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(10);

/// The identity of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallKey {
    /// The client, session, agent and id of the call.
    call: [u8; 32],
    /// The folder and content. The id alone would let a call with other content take over a decision.
    content: [u8; 32],
    /// `true` after the tool has run.
    is_end: bool,
}

impl CallKey {
    /// Returns the key of an event in a session of the log; none for an event without the id of a call.
    pub(super) fn from_event(event: &ClientEvent, session: &str) -> Option<Self> {
        let call = event.call.as_deref()?;
        let content = match &event.kind {
            EventKind::ToolPre(tool) => json!([tool.name, tool.input]),
            EventKind::ToolPost { tool, result, .. } => json!([tool.name, tool.input, result]),
            EventKind::Prompt { text } => json!([text]),
            EventKind::Spawn { agent, task } => json!(["agent", agent, task]),
            _ => return None,
        };
        let digest = |value: Value| Sha256::digest(value.to_string()).into();
        let call = digest(json!([event.client.as_str(), session, event.agent, call]));
        let content = digest(json!([event.folder, content]));
        Some(Self { call, content, is_end: matches!(event.kind, EventKind::ToolPost { .. }) })
    }
}

/// The hook that brings an event: the client of its command line, and its event. The same hook brings a call once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) client: Client,
    pub(super) event: String,
}

/// The decisions on recent calls.
#[derive(Default)]
pub(super) struct Decisions {
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    decisions: HashMap<CallKey, Decision>,
    order: VecDeque<(Instant, CallKey, u64)>,
    next: u64,
}

struct Decision {
    number: u64,
    arrivals: Vec<Arrival>,
    open: WeakShared<BoxFuture<'static, GuardAnswer>>,
    answer: Option<GuardAnswer>,
}

/// A decision that is made, or about to be.
enum KnownDecision {
    Answer(GuardAnswer),
    Open(Shared<BoxFuture<'static, GuardAnswer>>),
}

impl Decisions {
    /// Decides once for all hooks of a client that bring the same call. A call that the same hook brings again is another call.
    ///
    /// # Cancel safety
    /// The decision is given up when every arrival has been dropped.
    pub(super) async fn decide(
        &self,
        key: CallKey,
        arrival: Arrival,
        decide: impl Future<Output = GuardAnswer> + Send + 'static,
    ) -> GuardAnswer {
        let known = {
            let mut state = lock(&self.state);
            state.expire();
            if key.is_end {
                state.forget_start(key);
            }
            match state.join(key, &arrival) {
                Some(known) => known,
                None => KnownDecision::Open(state.begin(key, arrival, self.state.clone(), decide)),
            }
        };
        match known {
            KnownDecision::Answer(answer) => answer,
            KnownDecision::Open(shared) => shared.await,
        }
    }
}

impl State {
    /// Returns the decision that another hook has caused.
    fn join(&mut self, key: CallKey, arrival: &Arrival) -> Option<KnownDecision> {
        let decision = self.decisions.get_mut(&key).filter(|decision| !decision.arrivals.contains(arrival))?;
        let known = match &decision.answer {
            Some(answer) => KnownDecision::Answer(answer.clone()),
            None => KnownDecision::Open(decision.open.upgrade()?),
        };
        decision.arrivals.push(arrival.clone());
        Some(known)
    }

    fn begin(
        &mut self,
        key: CallKey,
        arrival: Arrival,
        own: Arc<Mutex<Self>>,
        decide: impl Future<Output = GuardAnswer> + Send + 'static,
    ) -> Shared<BoxFuture<'static, GuardAnswer>> {
        self.next += 1;
        let number = self.next;
        let decide = async move {
            let answer = decide.await;
            lock(&own).finish(key, number, answer.clone());
            answer
        };
        let shared = decide.boxed().shared();
        self.decisions.retain(|_, decision| decision.answer.is_some() || decision.open.upgrade().is_some());
        if let Some(open) = shared.downgrade() {
            let decision = Decision { number, arrivals: vec![arrival], open, answer: None };
            self.decisions.insert(key, decision);
        }
        shared
    }

    fn finish(&mut self, key: CallKey, number: u64, answer: GuardAnswer) {
        let decision = self.decisions.get_mut(&key).filter(|decision| decision.number == number);
        if let Some(decision) = decision {
            decision.answer = Some(answer);
            self.order.push_back((Instant::now(), key, number));
        }
        self.expire();
    }

    /// Forgets decisions that are too old or too many.
    fn expire(&mut self) {
        while let Some((decided, key, number)) = self.order.front().copied() {
            if decided.elapsed() < ARRIVAL_LIMIT && self.order.len() <= MAX_REMEMBERED {
                return;
            }
            self.order.pop_front();
            if self.decisions.get(&key).is_some_and(|decision| decision.number == number) {
                self.decisions.remove(&key);
            }
        }
    }

    /// Forgets the decisions before a tool that has run.
    fn forget_start(&mut self, end: CallKey) {
        self.decisions.retain(|key, _| key.call != end.call || key.is_end);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
