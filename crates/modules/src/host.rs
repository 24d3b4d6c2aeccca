//! What hooks from configuration find around them.

use std::fmt;
use std::sync::Arc;

use crate::condition::Scope;

/// What hooks from configuration find around them: what rules can ask about, and what modules can do beyond an answer.
#[derive(Clone)]
pub struct Host {
    pub(crate) scope: Arc<Scope>,
    pub(crate) name_session: Option<NameSession>,
}

type NameSession = Arc<dyn Fn(&str, &str) + Send + Sync>;

impl Host {
    /// One with that scope, where sessions have no names.
    pub fn new(scope: Scope) -> Self {
        Self { scope: Arc::new(scope), name_session: None }
    }

    /// Where the name of a session goes, which is called with its id and the name.
    #[must_use]
    pub fn name_session(mut self, name: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.name_session = Some(Arc::new(name));
        self
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("scope", &self.scope).finish_non_exhaustive()
    }
}
