//! What is kept for a session together with its sub-agents: delegating gets nobody around a limit.

use std::collections::HashMap;
use std::sync::Mutex;

use amplifier_core::{EventData, Hook, HookError, HookResult};

use super::settings::lock;

/// Something for each session; sub-agents share that of the session that they work for.
#[derive(Debug, Default)]
pub(crate) struct SessionTree<T> {
    // A std lock: nothing awaits while it is held.
    state: Mutex<State<T>>,
}

#[derive(Debug, Default)]
struct State<T> {
    /// The session that a sub-agent works for in the end.
    roots: HashMap<String, String>,
    values: HashMap<String, T>,
}

impl<T: Default> SessionTree<T> {
    /// Takes note of a session that begins: a sub-agent says which session delegated to it.
    pub(crate) fn begin(&self, data: &EventData) {
        let Some((parent, child)) = data.text_at("/mount_plan/parent_session_id").zip(data.session_id()) else {
            return;
        };
        let mut state = lock(&self.state);
        let root = state.roots.get(parent).map_or(parent, String::as_str).to_owned();
        // A session that names itself would never be found again.
        if root != child {
            state.roots.insert(child.to_owned(), root);
        }
    }

    /// Works with what is kept for the session of an event.
    pub(crate) fn with<R>(&self, data: &EventData, work: impl FnOnce(&mut T) -> R) -> R {
        let mut state = lock(&self.state);
        let State { roots, values } = &mut *state;
        let session = data.session_id().unwrap_or_default();
        let root = roots.get(session).map_or(session, String::as_str);
        work(values.entry(root.to_owned()).or_default())
    }

    /// Whether the event is one of a sub-agent.
    pub(crate) fn is_child(&self, data: &EventData) -> bool {
        data.session_id().is_some_and(|session| lock(&self.state).roots.contains_key(session))
    }

    /// Takes note of a session that ends, and gives back what was kept for it. A sub-agent leaves nothing.
    pub(crate) fn end(&self, data: &EventData) -> Option<T> {
        let session = data.session_id().unwrap_or_default();
        let mut state = lock(&self.state);
        if state.roots.remove(session).is_some() {
            return None;
        }
        state.roots.retain(|_, root| root != session);
        state.values.remove(session)
    }
}

/// Hears which sessions begin and end, for modules that do nothing else then.
pub(super) struct SessionTreeObserver<T>(pub(super) std::sync::Arc<SessionTree<T>>);

/// When it hears.
pub(super) const SESSION_EVENTS: [&str; 2] = ["session:start", "session:end"];

impl<T: Default + Send + 'static> Hook for SessionTreeObserver<T> {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        match event {
            "session:start" => self.0.begin(data),
            _ => drop(self.0.end(data)),
        }
        Ok(HookResult::proceed())
    }
}
