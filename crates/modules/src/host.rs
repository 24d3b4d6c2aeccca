//! What hooks from configuration find around them.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{HookRegistry, Registration};

use crate::builtin::Unfinished;
use crate::bundle::Confine;
use crate::condition::Scope;

/// What hooks from configuration find around them: what rules can ask about, and what modules can do beyond an answer.
#[derive(Clone)]
pub struct Host {
    pub(crate) scope: Arc<Scope>,
    pub(crate) name_session: Option<NameSession>,
    /// What modules began to do and have not done yet, in whichever version of a bundle.
    pub(crate) unfinished: Arc<Unfinished>,
    confine: Option<Launcher>,
    /// What modules count, by who they are: a new version of a bundle goes on counting. A std lock: nothing awaits while it is held.
    counted: Arc<Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>>,
}

/// Says what to put before the command of a program that is to be confined.
type Launcher = Arc<dyn Fn(&Confine) -> Result<Vec<OsString>, String> + Send + Sync>;

type NameSession = Arc<dyn Fn(&str, &str) + Send + Sync>;

impl Host {
    /// One with that scope, where sessions have no names.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope: Arc::new(scope),
            name_session: None,
            unfinished: Arc::default(),
            confine: None,
            counted: Arc::default(),
        }
    }

    /// Where the name of a session goes, which is called with its id and the name.
    #[must_use]
    pub fn name_session(mut self, name: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.name_session = Some(Arc::new(name));
        self
    }

    /// How programs are confined that are to be: the words to put before their commands, or why it is not possible. Without this, hooks that are to be
    /// confined cannot be registered, and programs of modules that are confined wherever it is possible are not.
    #[must_use]
    pub fn confine(
        mut self,
        launcher: impl Fn(&Confine) -> Result<Vec<OsString>, String> + Send + Sync + 'static,
    ) -> Self {
        self.confine = Some(Arc::new(launcher));
        self
    }

    /// What a module has counted so far, also in earlier versions of its bundle.
    pub(crate) fn counted<T: Any + Default + Send + Sync>(&self, who: &str) -> Arc<T> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = counted.get(who).and_then(|before| before.clone().downcast().ok());
        before.unwrap_or_else(|| {
            let new = Arc::<T>::default();
            counted.insert(who.to_owned(), new.clone());
            new
        })
    }

    /// Waits for what hooks do beside the agent, such as notifications, for five seconds at most. The end of a session does that by itself.
    pub async fn settle(&self) {
        self.unfinished.settle().await;
    }

    /// Has the end of sessions wait as well for what hooks began that a new version of their bundle does not have. Gives the hook that does, if one
    /// is needed and was not there: it stays for as long as the others are there, unless it is unregistered.
    pub fn outlast(&self, hooks: &HookRegistry) -> Option<Registration> {
        self.unfinished.outlast(hooks)
    }

    /// Whether programs can be confined at all.
    pub(crate) fn confines(&self) -> bool {
        self.confine.is_some()
    }

    /// What to put before the command of a program that is to be confined.
    pub(crate) fn launcher(&self, confine: &Confine) -> Result<Vec<OsString>, String> {
        match &self.confine {
            Some(launcher) => launcher(confine),
            None => Err("nothing here can do that".to_owned()),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("scope", &self.scope).finish_non_exhaustive()
    }
}
