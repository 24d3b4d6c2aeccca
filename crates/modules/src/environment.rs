//! What hooks from configuration find around them.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{HookRegistry, Registration};
use amplifier_process::sandbox::Sandbox;

use crate::builtin::PendingTasks;
use crate::bundle::SandboxConfig;
use crate::condition::Scope;

/// What hooks from configuration find around them: what rules can ask about, and what modules can do beyond an answer.
#[derive(Clone)]
pub struct HookEnvironment {
    pub(crate) scope: Arc<Scope>,
    pub(crate) name_session: Option<NameSession>,
    /// What modules began to do and have not done yet, in whichever version of a bundle.
    pub(crate) unfinished: Arc<PendingTasks>,
    make_sandbox: Option<MakeSandbox>,
    /// Folders that no program in the sandbox can change.
    protected: Option<Arc<[PathBuf]>>,
    /// What modules count, by who they are: a new version of a bundle goes on counting. A std lock: nothing awaits while it is held.
    module_states: Arc<Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>>,
}

type MakeSandbox = Arc<dyn Fn(&SandboxRequest<'_>) -> Result<Sandbox, String> + Send + Sync>;

/// Which sandbox the program of a hook is to run in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxRequest<'a> {
    /// What the program may do, if the bundle says so: it gets exactly that, or does not run. Otherwise it runs in the sandbox of the agent's commands, as
    /// far as the system has one.
    pub confine: Option<&'a SandboxConfig>,
    /// Files that its command line writes to, which it can therefore change unless they are in a protected folder.
    pub outputs: &'a [PathBuf],
}

type NameSession = Arc<dyn Fn(&str, &str) + Send + Sync>;

impl HookEnvironment {
    /// One with that scope, where sessions have no names.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope: Arc::new(scope),
            name_session: None,
            unfinished: Arc::default(),
            make_sandbox: None,
            protected: None,
            module_states: Arc::default(),
        }
    }

    /// Where the name of a session goes, which is called with its id and the name.
    #[must_use]
    pub fn name_session(mut self, name: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.name_session = Some(Arc::new(name));
        self
    }

    /// Makes the sandboxes that programs run in, or says why that is not possible. Without this, programs run with the rights of the user, and hooks with `confine`
    /// cannot be registered.
    #[must_use]
    pub fn sandbox(
        mut self,
        make: impl Fn(&SandboxRequest<'_>) -> Result<Sandbox, String> + Send + Sync + 'static,
    ) -> Self {
        self.make_sandbox = Some(Arc::new(make));
        self
    }

    /// Names the folders that programs in the sandbox cannot change, and has the files of the user's own hooks pinned. A file that changes in one of these
    /// folders was changed by the user, so its new version is used; a hook with a file that changes elsewhere does not run. Python hooks import from these
    /// folders.
    #[must_use]
    pub fn protected(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected = Some(folders.into_iter().collect());
        self
    }

    /// What a module has counted so far, also in earlier versions of its bundle.
    pub(crate) fn module_state<T: Any + Default + Send + Sync>(&self, who: &str) -> Arc<T> {
        let mut states = self.module_states.lock().unwrap_or_else(PoisonError::into_inner);
        let before = states.get(who).and_then(|before| before.clone().downcast().ok());
        before.unwrap_or_else(|| {
            let new = Arc::<T>::default();
            states.insert(who.to_owned(), new.clone());
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
    pub(crate) fn can_confine(&self) -> bool {
        self.make_sandbox.is_some()
    }

    /// The sandbox of a program that is to be confined.
    pub(crate) fn sandbox_for(&self, confine: &SandboxConfig) -> Result<Sandbox, String> {
        match &self.make_sandbox {
            Some(make) => make(&SandboxRequest { confine: Some(confine), outputs: &[] }),
            None => Err("nothing here can do that".to_owned()),
        }
    }

    /// The sandbox of a program of which the bundle says nothing: it runs as the agent's commands do.
    pub(crate) fn default_sandbox(&self, outputs: &[PathBuf]) -> Result<Sandbox, String> {
        self.make_sandbox
            .as_ref()
            .map_or(Ok(Sandbox::default()), |make| make(&SandboxRequest { confine: None, outputs }))
    }

    /// The folders that programs in the sandbox cannot change; none if files of hooks are not pinned.
    pub(crate) fn protected_folders(&self) -> Option<&[PathBuf]> {
        self.protected.as_deref()
    }
}

impl fmt::Debug for HookEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookEnvironment").field("scope", &self.scope).finish_non_exhaustive()
    }
}
