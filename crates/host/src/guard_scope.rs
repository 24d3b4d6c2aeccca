//! The sessions to which built-in hooks apply.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Sessions that share a registry, each with built-in hooks of its own. Cheap to clone; clones share state.
#[derive(Clone, Debug, Default)]
pub struct GuardedSessions {
    // A std lock: nothing awaits while it is held.
    ids: Arc<Mutex<BTreeSet<String>>>,
}

impl GuardedSessions {
    /// Returns the scope of the built-in hooks of one session. They apply to all events until [`GuardScope::begin`].
    pub fn scope(&self) -> GuardScope {
        GuardScope { sessions: self.clone(), own: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The scope of the built-in hooks of one session: all events but those of other guarded sessions. An unknown session, such as that of a
/// sub-agent, is in the scope, so that no event is without a guard.
#[derive(Clone, Debug, Default)]
pub struct GuardScope {
    sessions: GuardedSessions,
    own: Arc<OnceLock<String>>,
}

impl GuardScope {
    /// Leaves the events of this session to its own hooks.
    pub fn begin(&self, session: &str) {
        if self.own.set(session.to_owned()).is_ok() {
            self.sessions.lock().insert(session.to_owned());
        }
    }

    /// Ends the session.
    pub fn end(&self) {
        if let Some(own) = self.own.get() {
            self.sessions.lock().remove(own);
        }
    }

    pub(crate) fn contains(&self, session: Option<&str>) -> bool {
        let Some(session) = session else { return true };
        self.own.get().is_some_and(|own| own == session) || !self.sessions.lock().contains(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_apply_to_all_but_other_guarded_sessions() {
        let sessions = GuardedSessions::default();
        let (one, two) = (sessions.scope(), sessions.scope());
        one.begin("one");
        two.begin("two");
        assert!(one.contains(Some("one")) && !one.contains(Some("two")));
        assert!(two.contains(Some("two")) && !two.contains(Some("one")));
        assert!(one.contains(Some("a sub-agent")) && one.contains(None));
        two.end();
        assert!(one.contains(Some("two")));
    }
}
