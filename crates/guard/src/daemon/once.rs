//! One decision for a call that arrives twice: some clients also run the hooks of others.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::answer::GuardAnswer;
use crate::event::{ClientEvent, EventKind};

/// The most decisions that are remembered.
const MAX_REMEMBERED: usize = 4096;
/// The time for the second arrival of a call. Later, the same id is another call: some models count their calls from 0 again.
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
        let (tool, result) = match &event.kind {
            EventKind::ToolPre(tool) => (tool, None),
            EventKind::ToolPost { tool, result, .. } => (tool, Some(result)),
            _ => return None,
        };
        let digest = |value: Value| Sha256::digest(value.to_string()).into();
        let call = digest(json!([event.client.as_str(), session, event.agent, call]));
        let content = digest(json!([event.folder, tool.name, tool.input, result]));
        Some(Self { call, content, is_end: result.is_some() })
    }
}

/// The decisions on recent calls.
#[derive(Default)]
pub(super) struct Decisions {
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    open: HashMap<CallKey, WeakShared<BoxFuture<'static, GuardAnswer>>>,
    done: HashMap<CallKey, GuardAnswer>,
    order: VecDeque<(Instant, CallKey)>,
}

impl Decisions {
    /// Decides once: a second arrival waits for the decision of the first, or gets it.
    ///
    /// # Cancel safety
    /// The decision is given up when every arrival has been dropped.
    pub(super) async fn decide(
        &self,
        key: CallKey,
        decide: impl Future<Output = GuardAnswer> + Send + 'static,
    ) -> GuardAnswer {
        let shared = {
            let mut state = lock(&self.state);
            state.expire();
            if key.is_end {
                state.forget_start(key);
            }
            if let Some(answer) = state.done.get(&key) {
                return answer.clone();
            }
            match state.open.get(&key).and_then(WeakShared::upgrade) {
                Some(shared) => shared,
                None => {
                    let own = self.state.clone();
                    let decide = async move {
                        let answer = decide.await;
                        lock(&own).finish(key, answer.clone());
                        answer
                    };
                    let shared = decide.boxed().shared();
                    state.open.retain(|_, open| open.upgrade().is_some());
                    state.open.extend(shared.downgrade().map(|weak| (key, weak)));
                    shared
                }
            }
        };
        shared.await
    }
}

impl State {
    fn finish(&mut self, key: CallKey, answer: GuardAnswer) {
        self.done.insert(key, answer);
        self.order.push_back((Instant::now(), key));
        self.expire();
    }

    /// Forgets decisions that are too old or too many.
    fn expire(&mut self) {
        let is_over = |order: &VecDeque<(Instant, CallKey)>| {
            let is_late = order.front().is_some_and(|(decided, _)| decided.elapsed() >= ARRIVAL_LIMIT);
            is_late || order.len() > MAX_REMEMBERED
        };
        while is_over(&self.order) {
            self.order.pop_front().map(|(_, oldest)| self.done.remove(&oldest));
        }
    }

    /// Forgets the decisions before a tool that has run.
    fn forget_start(&mut self, end: CallKey) {
        let is_start = |key: &CallKey| key.call == end.call && !key.is_end;
        self.done.retain(|key, _| !is_start(key));
        self.order.retain(|(_, key)| !is_start(key));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
