//! Values shared by a session and its sub-agents, so that delegation does not circumvent a limit.

use std::collections::HashMap;
use std::sync::Mutex;

use amplifier_core::{EventData, Hook, HookError, HookResult};

use super::settings::lock;

/// One value for each root session; sub-agents share the value of their root session.
#[derive(Debug, Default)]
pub(crate) struct SessionTree<T> {
    // A std lock: nothing awaits while it is held.
    state: Mutex<State<T>>,
}

#[derive(Debug, Default)]
struct State<T> {
    roots: HashMap<String, String>,
    values: HashMap<String, T>,
}

impl<T: Default> SessionTree<T> {
    /// Records the start of a session, and its parent if the session is a sub-agent.
    pub(crate) fn begin(&self, data: &EventData) {
        let Some((parent, child)) = data.text_at("/mount_plan/parent_session_id").zip(data.session_id()) else {
            return;
        };
        let mut state = lock(&self.state);
        let root = state.roots.get(parent).map_or(parent, String::as_str).to_owned();
        // A session that is its own parent could never be resolved.
        if root != child {
            state.roots.insert(child.to_owned(), root);
        }
    }

    /// Calls `work` with the value of the event's session.
    pub(crate) fn with<R>(&self, data: &EventData, work: impl FnOnce(&mut T) -> R) -> R {
        let mut state = lock(&self.state);
        let State { roots, values } = &mut *state;
        let session = data.session_id().unwrap_or_default();
        let root = roots.get(session).map_or(session, String::as_str);
        work(values.entry(root.to_owned()).or_default())
    }

    pub(crate) fn is_child(&self, data: &EventData) -> bool {
        data.session_id().is_some_and(|session| lock(&self.state).roots.contains_key(session))
    }

    /// Records the end of a session and returns its value; `None` for a sub-agent.
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

/// Records starts and ends of sessions, for modules without another hook at these events.
pub(crate) struct SessionTreeObserver<T>(pub(crate) std::sync::Arc<SessionTree<T>>);

/// The events of [`SessionTreeObserver`].
pub(crate) const SESSION_EVENTS: [&str; 2] = ["session:start", "session:end"];

impl<T: Default + Send + 'static> Hook for SessionTreeObserver<T> {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        match event {
            "session:start" => self.0.begin(data),
            _ => drop(self.0.end(data)),
        }
        Ok(HookResult::proceed())
    }
}
