//! One decision for a call that arrives twice: some clients also run the hooks of others.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};
use sha2::{Digest, Sha256};

use crate::answer::GuardAnswer;
use crate::event::{ClientEvent, EventKind};

/// The most decisions that are remembered.
const MAX_REMEMBERED: usize = 4096;

/// The identity of a call: its session, id and content. The id alone would let a call with other content take over a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallKey([u8; 32]);

impl CallKey {
    /// Returns the key of an event; none for an event without the id of a call.
    pub(super) fn from_event(event: &ClientEvent) -> Option<Self> {
        let call = event.call.as_deref()?;
        let (tool, moment, result) = match &event.kind {
            EventKind::ToolPre(tool) => (tool, "pre", None),
            EventKind::ToolPost { tool, result, .. } => (tool, "post", Some(result)),
            _ => return None,
        };
        let content = serde_json::json!([event.session, call, moment, tool.name, tool.input, result]);
        Some(Self(Sha256::digest(content.to_string()).into()))
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
    order: VecDeque<CallKey>,
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
        self.order.push_back(key);
        while self.order.len() > MAX_REMEMBERED {
            self.order.pop_front().map(|oldest| self.done.remove(&oldest));
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
