//! The environment of hooks that come from configuration.

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
use crate::transport::RemoteHooks;

/// The environment of hooks that come from configuration: the scope of their expressions, sandboxes for their programs, and state that modules keep
/// across versions of a bundle.
#[derive(Clone)]
pub struct HookEnvironment {
    pub(crate) scope: Arc<Scope>,
    pub(crate) name_session: Option<NameSession>,
    /// Tasks that modules have started and not finished, in any version of a bundle.
    pub(crate) unfinished: Arc<PendingTasks>,
    /// `true` if nothing outside of the hooks may change.
    pub(crate) is_trial: bool,
    pub(crate) remote_hooks: Option<Arc<dyn RemoteHooks>>,
    make_sandbox: Option<MakeSandbox>,
    protected: Option<Arc<[PathBuf]>>,
    /// State of modules by hook key: a new version of a bundle continues with it. A std lock: nothing awaits while it is held.
    module_states: Arc<Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>>,
}

type MakeSandbox = Arc<dyn Fn(&SandboxRequest<'_>) -> Result<Sandbox, String> + Send + Sync>;

/// A request for the sandbox of a hook's program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxRequest<'a> {
    /// The limits that the bundle sets: the program gets exactly these, or does not run. Without them, it runs in the sandbox of the agent's
    /// commands, as far as the system has one.
    pub confine: Option<&'a SandboxConfig>,
    /// Files that its command line writes to. The program can change these unless they are in a protected folder.
    pub outputs: &'a [PathBuf],
}

type NameSession = Arc<dyn Fn(&str, &str) + Send + Sync>;

impl HookEnvironment {
    /// Creates an environment without session names and sandboxes.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope: Arc::new(scope),
            name_session: None,
            unfinished: Arc::default(),
            is_trial: false,
            remote_hooks: None,
            make_sandbox: None,
            protected: None,
            module_states: Arc::default(),
        }
    }

    /// Sets the function that receives the id of a session and its new name.
    #[must_use]
    pub fn name_session(mut self, name: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.name_session = Some(Arc::new(name));
        self
    }

    /// Sets the client of the fleet's services. Without it, hooks of the kind `nats` cannot be registered.
    #[must_use]
    pub fn remote_hooks(mut self, services: Arc<dyn RemoteHooks>) -> Self {
        self.remote_hooks = Some(services);
        self
    }

    /// Marks the hooks as a trial: modules write no log, send no notification and export no metrics. Programs of the bundle run.
    #[must_use]
    pub fn trial(mut self) -> Self {
        self.is_trial = true;
        self
    }

    /// Sets the function that creates the sandboxes of programs, or returns the reason for which it cannot. Without this, programs run with the
    /// rights of the user, and hooks with `confine` cannot be registered.
    #[must_use]
    pub fn sandbox(
        mut self,
        make: impl Fn(&SandboxRequest<'_>) -> Result<Sandbox, String> + Send + Sync + 'static,
    ) -> Self {
        self.make_sandbox = Some(Arc::new(make));
        self
    }

    /// Sets the folders that programs in the sandbox cannot change, and pins the files of the user's own hooks. A file that changes in one of these
    /// folders was changed by the user, so its new version is used; a hook with a file that changes elsewhere does not run. Python hooks import from
    /// these folders.
    #[must_use]
    pub fn protected(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected = Some(folders.into_iter().collect());
        self
    }

    /// Returns the state of a module, also from earlier versions of its bundle.
    pub(crate) fn module_state<T: Any + Default + Send + Sync>(&self, who: &str) -> Arc<T> {
        let mut states = self.module_states.lock().unwrap_or_else(PoisonError::into_inner);
        let before = states.get(who).and_then(|before| before.clone().downcast().ok());
        before.unwrap_or_else(|| {
            let new = Arc::<T>::default();
            states.insert(who.to_owned(), new.clone());
            new
        })
    }

    /// Waits for background tasks of hooks, such as notifications, for at most five seconds. The end of a session does so by itself.
    pub async fn settle(&self) {
        self.unfinished.settle().await;
    }

    /// Makes the end of sessions wait for background tasks of hooks that a new version of their bundle no longer has. Returns the registration of the
    /// hook that waits, if one is needed and was missing: it stays for as long as the others, unless it is unregistered.
    pub fn outlast(&self, hooks: &HookRegistry) -> Option<Registration> {
        self.unfinished.outlast(hooks)
    }

    pub(crate) fn can_confine(&self) -> bool {
        self.make_sandbox.is_some()
    }

    /// Returns the sandbox of a program with limits from its bundle.
    pub(crate) fn sandbox_for(&self, confine: &SandboxConfig) -> Result<Sandbox, String> {
        match &self.make_sandbox {
            Some(make) => make(&SandboxRequest { confine: Some(confine), outputs: &[] }),
            None => Err("sandboxing is not available in this program".to_owned()),
        }
    }

    /// Returns the sandbox of a program without limits from its bundle: that of the agent's commands.
    pub(crate) fn default_sandbox(&self, outputs: &[PathBuf]) -> Result<Sandbox, String> {
        self.make_sandbox
            .as_ref()
            .map_or(Ok(Sandbox::default()), |make| make(&SandboxRequest { confine: None, outputs }))
    }

    /// Returns the protected folders; `None` if files of hooks are not pinned.
    pub(crate) fn protected_folders(&self) -> Option<&[PathBuf]> {
        self.protected.as_deref()
    }
}

impl fmt::Debug for HookEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookEnvironment").field("scope", &self.scope).finish_non_exhaustive()
    }
}
