//! What modules remember about each session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_core::EventData;

/// A state for each session, from the first event that needs one until it is forgotten.
#[derive(Debug)]
pub(crate) struct SessionStates<T> {
    // A std lock: nothing awaits while it is held.
    states: Mutex<HashMap<String, T>>,
}

impl<T> Default for SessionStates<T> {
    fn default() -> Self {
        Self { states: Mutex::default() }
    }
}

impl<T: Default> SessionStates<T> {
    /// Works with the state of the session that the event belongs to.
    pub(crate) fn with<R>(&self, data: &EventData, act: impl FnOnce(&mut T) -> R) -> R {
        act(self.lock().entry(id(data).to_owned()).or_default())
    }

    /// Forgets the session that the event belongs to.
    pub(crate) fn forget(&self, data: &EventData) {
        self.lock().remove(id(data));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, T>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events outside of sessions share one state.
fn id(data: &EventData) -> &str {
    data.session_id().unwrap_or_default()
}
