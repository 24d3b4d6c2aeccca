//! State that modules store per session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_core::EventData;

#[derive(Debug)]
pub(crate) struct PerSession<T> {
    // A std lock: nothing awaits while it is held.
    states: Mutex<HashMap<String, T>>,
}

impl<T> Default for PerSession<T> {
    fn default() -> Self {
        Self { states: Mutex::default() }
    }
}

impl<T: Default> PerSession<T> {
    /// Calls `act` with the state of the event's session.
    pub(crate) fn with<R>(&self, data: &EventData, act: impl FnOnce(&mut T) -> R) -> R {
        act(self.lock().entry(id(data).to_owned()).or_default())
    }

    pub(crate) fn forget(&self, data: &EventData) {
        self.lock().remove(id(data));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, T>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the session id; events outside of sessions share one state.
fn id(data: &EventData) -> &str {
    data.session_id().unwrap_or_default()
}
