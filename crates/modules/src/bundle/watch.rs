//! Reloading of bundles while a session runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amplifier_core::{
    EXECUTION_START, EventData, EventName, Hook, HookError, HookRegistry, HookResult, Level, PROVIDER_REQUEST,
    Registration,
};
use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::load::{FileContent, are_current, refuse_emptied};
use super::register::{CompiledHook, RegistrationGuard};
use super::{BundleError, BundleStack};
use crate::environment::HookEnvironment;

/// Name of the hooks that check for changes.
pub const RELOAD_HOOK: &str = "session-bundles";

/// Time limit for reading the files of bundles. These are small, so only an unresponsive disk takes so long.
pub const RELOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the events that trigger a check for changes: the start of a turn, and each call to the model.
pub fn reload_events() -> [EventName; 2] {
    [EXECUTION_START.name(), PROVIDER_REQUEST.name()]
}

/// Loads the bundles of a session. Implemented for functions.
pub trait BundleSource: Send + Sync + 'static {
    /// Loads the current version.
    ///
    /// # Errors
    /// If a bundle has an error.
    fn load(&self) -> Result<BundleStack, BundleError>;

    /// Returns the absolute paths of bundles that may not exist yet.
    fn expected(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Called when a new version becomes active.
    fn changed(&self, _stack: &BundleStack) {}
}

impl<F: Fn() -> Result<BundleStack, BundleError> + Send + Sync + 'static> BundleSource for F {
    fn load(&self) -> Result<BundleStack, BundleError> {
        self()
    }
}

/// Registered bundles, reloaded when a file changes. Cheap to clone; clones share state.
///
/// A version with an error changes nothing: the hooks of the last good version stay active. A hook with the same settings and files in both versions
/// keeps running: its worker is not restarted, and its counts are not lost.
///
/// A reload has two steps, so that a host can register modules of its own: a version is [read](Self::read), which compiles its hooks, and
/// [activated](PreparedVersion::commit).
#[derive(Clone)]
pub struct BundleWatcher(Arc<WatcherState>);

struct WatcherState {
    hooks: HookRegistry,
    host: HookEnvironment,
    source: Box<dyn BundleSource>,
    // A std lock: nothing awaits while it is held.
    active: Mutex<ActiveVersion>,
    /// Locked while a version is prepared. An unresponsive disk blocks its own thread only.
    background_read: Arc<tokio::sync::Mutex<Option<BackgroundRead>>>,
}

#[derive(Default)]
struct ActiveVersion {
    hooks: Vec<Arc<CompiledHook>>,
    registrations: Vec<Registration>,
    /// The hooks that check for changes, and the one that waits for tasks of removed hooks.
    watch_hooks: Vec<Registration>,
    contents: Vec<FileContent>,
    error: Option<String>,
    has_ended: bool,
}

struct BackgroundRead {
    started: Instant,
    found: oneshot::Receiver<Result<PreparedVersion, Reload>>,
}

impl BundleWatcher {
    /// Creates a watcher without registering hooks.
    pub fn new(hooks: &HookRegistry, host: HookEnvironment, source: impl BundleSource) -> Self {
        let (hooks, source) = (hooks.clone(), Box::new(source));
        Self(Arc::new(WatcherState { hooks, host, source, active: Mutex::default(), background_read: Arc::default() }))
    }

    /// Registers the first version.
    ///
    /// # Errors
    /// If a hook cannot be compiled.
    pub fn register(&self, stack: BundleStack) -> Result<(), BundleError> {
        self.prepare(stack)?.activate().map(drop)
    }

    /// Prepares the first version.
    ///
    /// # Errors
    /// If a hook cannot be compiled.
    pub fn prepare(&self, stack: BundleStack) -> Result<PreparedVersion, BundleError> {
        let before = self.0.active().hooks.clone();
        let hooks = stack.compile(&self.0.host, &before)?;
        let reload = Reload::between(&before, &hooks, &stack);
        let (watcher, registered) = (self.clone(), RegistrationGuard::default());
        Ok(PreparedVersion { watcher, stack, hooks, reload, next_hook: 0, registered, permit: None })
    }

    /// Registers the hooks that check for changes at [`reload_events`] and notify the user. If the disk does not respond in time, the active version
    /// stays.
    pub fn watch(&self) {
        let register = |event: EventName| {
            let hook = self.0.hooks.hook(event).named(RELOAD_HOOK).observer().timeout(RELOAD_TIMEOUT);
            hook.handler(ReloadHook(self.clone()))
        };
        let watch_hooks = reload_events().map(register);
        self.0.active().watch_hooks.extend(watch_hooks);
    }

    /// Reads the bundles on a separate thread and compiles their hooks, if a file has changed or `always` is set. The error explains why there is no
    /// new version. Returns `None` while another version is read or prepared.
    ///
    /// # Cancel safety
    /// After the future is dropped, the next caller receives the thread's result, without waiting for a thread that is late already.
    pub fn read(&self, always: bool) -> Option<impl Future<Output = Result<PreparedVersion, Reload>> + Send + use<>> {
        let mut permit = self.0.background_read.clone().try_lock_owned().ok()?;
        let watcher = self.clone();
        Some(async move {
            let read = match &mut *permit {
                Some(read) => read,
                none => none.insert(watcher.start_reading(always)?),
            };
            let found = match read.started.elapsed() < RELOAD_TIMEOUT {
                true => (&mut read.found).await.ok(),
                false => match read.found.try_recv() {
                    Err(oneshot::error::TryRecvError::Empty) => return Err(Reload::default()),
                    found => found.ok(),
                },
            };
            *permit = None;
            let version = found.unwrap_or_else(|| Err(watcher.refuse("the thread that reads the bundles failed")))?;
            Ok(PreparedVersion { permit: Some(permit), ..version })
        })
    }

    fn start_reading(&self, always: bool) -> Result<BackgroundRead, Reload> {
        let (send, found) = oneshot::channel();
        // Compiled hooks may need the runtime.
        let (watcher, runtime) = (self.clone(), Handle::try_current().ok());
        let thread = std::thread::Builder::new().name("bundles".to_owned()).spawn(move || {
            let _within = runtime.as_ref().map(Handle::enter);
            // The receiver may have been dropped.
            let _ = send.send(watcher.read_now(always));
        });
        thread.map_err(|error| self.refuse(format!("no thread can be started to read the bundles: {error}")))?;
        Ok(BackgroundRead { started: Instant::now(), found })
    }

    fn read_now(&self, always: bool) -> Result<PreparedVersion, Reload> {
        let (known, had_error, unchanged) = {
            let active = self.0.active();
            (active.contents.clone(), active.error.is_some(), active.unchanged())
        };
        let source = &self.0.source;
        let is_new = |file: &PathBuf| file.symlink_metadata().is_ok() && !known.iter().any(|known| known.path == *file);
        // The error may be in a file that the active version does not have.
        if !always && !had_error && are_current(&known) && !source.expected().iter().any(is_new) {
            return Err(unchanged);
        }
        let loaded = source.load().and_then(|stack| refuse_emptied(stack.contents(), &known).map(|()| stack));
        let version = loaded.and_then(|stack| self.prepare(stack)).map_err(|error| self.refuse(error.to_string()))?;
        if version.reload.changes_hooks || version.stack.contents() != known {
            return Ok(version);
        }
        match &version.reload.error {
            // The only news is an unusable version.
            Some(error) => Err(self.refuse(error)),
            // The error is fixed; the user is notified of that, too.
            None if had_error => Ok(version),
            None => Err(unchanged),
        }
    }

    /// Reads the bundles now and activates changes. Blocks for at most [`RELOAD_TIMEOUT`]. Reports an error every time.
    pub fn reload_blocking(&self) -> Reload {
        let (started, mut read) = (Instant::now(), None);
        while started.elapsed() < RELOAD_TIMEOUT {
            read = read.or_else(|| self.read(true).map(Box::pin));
            if let Some(found) = read.as_mut().and_then(|read| read.as_mut().now_or_never()) {
                return self.activate(found);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.refuse(format!("reading the files of the bundle timed out after {RELOAD_TIMEOUT:?}"))
    }

    fn activate(&self, found: Result<PreparedVersion, Reload>) -> Reload {
        let activated = found.map(PreparedVersion::activate);
        activated.map_or_else(|unused| unused, |reload| reload.unwrap_or_else(|error| self.refuse(error.to_string())))
    }

    /// Notes an error in a newer version, so that the active one stays.
    pub fn refuse(&self, error: impl Into<String>) -> Reload {
        let error = Some(error.into());
        let mut active = self.0.active();
        let is_news = active.error != error;
        active.error.clone_from(&error);
        Reload { error, is_news, ..active.unchanged() }
    }

    /// Unregisters all hooks permanently.
    pub fn unregister(&self) {
        let registered = {
            let mut active = self.0.active();
            active.has_ended = true;
            [std::mem::take(&mut active.watch_hooks), std::mem::take(&mut active.registrations)]
        };
        registered.iter().flatten().for_each(Registration::unregister);
    }

    /// `true` after [`unregister`](Self::unregister).
    pub fn has_ended(&self) -> bool {
        self.0.active().has_ended
    }
}

impl std::fmt::Debug for BundleWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BundleWatcher").field("contents", &self.0.active().contents).finish_non_exhaustive()
    }
}

impl WatcherState {
    fn active(&self) -> MutexGuard<'_, ActiveVersion> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveVersion {
    fn unchanged(&self) -> Reload {
        Reload { kept: names(&self.hooks), ..Reload::default() }
    }
}

fn names<'a>(hooks: impl IntoIterator<Item = &'a Arc<CompiledHook>>) -> Vec<String> {
    hooks.into_iter().map(|hook| hook.definition().entry.shown_name()).collect()
}

/// A version with compiled hooks that is not active yet. Dropping it changes nothing.
pub struct PreparedVersion {
    watcher: BundleWatcher,
    stack: BundleStack,
    hooks: Vec<Arc<CompiledHook>>,
    reload: Reload,
    /// Number of hooks that are registered or handed to the host.
    next_hook: usize,
    registered: RegistrationGuard,
    /// Prevents the preparation of another version.
    permit: Option<OwnedMutexGuard<Option<BackgroundRead>>>,
}

impl PreparedVersion {
    /// Returns the bundles.
    pub fn stack(&self) -> &BundleStack {
        &self.stack
    }

    /// Returns the hooks in order.
    pub fn hooks(&self) -> &[Arc<CompiledHook>] {
        &self.hooks
    }

    /// Registers the hooks in order, beside the active ones, up to the next hook of a host module, which is returned. Call again after the host has
    /// registered that hook.
    ///
    /// # Errors
    /// If a hook cannot be registered.
    pub fn register(&mut self) -> Result<Option<Arc<CompiledHook>>, BundleError> {
        while let Some(hook) = self.hooks.get(self.next_hook) {
            self.next_hook += 1;
            if hook.host_module().is_some() {
                return Ok(Some(hook.clone()));
            }
            hook.register(&self.watcher.0.hooks, &mut self.registered)?;
        }
        Ok(None)
    }

    /// Activates the version with the registered hooks. New hooks are registered before old ones are removed, so no event passes without hooks.
    /// Returns `None` if the watcher was unregistered meanwhile.
    pub fn commit(self) -> Option<Reload> {
        let Self { watcher: BundleWatcher(shared), stack, hooks, reload, registered, permit, .. } = self;
        let before = {
            let mut active = shared.active();
            if active.has_ended {
                return None;
            }
            active.contents = stack.contents();
            active.error.clone_from(&reload.error);
            active.hooks = hooks;
            std::mem::replace(&mut active.registrations, registered.keep())
        };
        before.iter().for_each(Registration::unregister);
        shared.active().watch_hooks.extend(shared.host.outlast(&shared.hooks));
        // The first version was not read here, so it is not a change.
        if permit.is_some() {
            shared.source.changed(&stack);
        }
        Some(Reload { stack: Some(Box::new(stack)), is_news: true, ..reload })
    }

    /// Activates a version without host modules.
    fn activate(mut self) -> Result<Reload, BundleError> {
        match self.register()? {
            Some(hook) => Err(hook.missing_host_module()),
            None => Ok(self.commit().unwrap_or_default()),
        }
    }
}

/// The result of a reload.
#[derive(Clone, Debug, Default)]
pub struct Reload {
    /// The newly active version; `None` if nothing has changed.
    pub stack: Option<Box<BundleStack>>,
    /// `true` if other hooks are active, or the same in another order.
    pub changes_hooks: bool,
    /// Unchanged hooks.
    pub kept: Vec<String>,
    /// New and changed hooks.
    pub began: Vec<String>,
    /// Removed and changed hooks.
    pub ended: Vec<String>,
    /// Error in a newer version of a bundle; the old one stays active.
    pub error: Option<String>,
    /// `false` if nothing has changed, or the user was notified of the error before.
    pub is_news: bool,
}

impl Reload {
    fn between(before: &[Arc<CompiledHook>], now: &[Arc<CompiledHook>], stack: &BundleStack) -> Self {
        let (kept, began): (Vec<_>, Vec<_>) = now.iter().partition(|hook| hook.is_unchanged());
        let is_gone = |hook: &&Arc<CompiledHook>| !kept.iter().any(|kept| kept.key() == hook.key());
        let in_order = |hooks: &[Arc<CompiledHook>]| hooks.iter().map(|hook| hook.key().to_owned()).collect::<Vec<_>>();
        Self {
            changes_hooks: !began.is_empty() || in_order(before) != in_order(now),
            ended: names(before.iter().filter(is_gone)),
            kept: names(kept),
            began: names(began),
            error: stack.rejected_version().map(ToString::to_string),
            ..Self::default()
        }
    }

    /// Returns the message for the user; `None` if nothing has changed.
    pub fn notice(&self) -> Option<(Level, String)> {
        let changed = "a bundle has changed: its hooks are active from now on";
        let stays =
            |error| format!("a bundle has changed and cannot be used, so the old version stays active:\n{error}");
        match (&self.stack, &self.error) {
            (None, None) => None,
            (None, Some(error)) => Some((Level::Warning, stays(error))),
            (Some(_), None) => Some((Level::Info, changed.to_owned())),
            (Some(_), Some(error)) => Some((Level::Warning, format!("{changed}; but {}", stays(error)))),
        }
    }
}

#[derive(Debug)]
struct ReloadHook(BundleWatcher);

impl Hook for ReloadHook {
    async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
        // The reader of the other version notifies the user.
        let Some(read) = self.0.read(false) else { return Ok(HookResult::proceed()) };
        let reload = self.0.activate(read.await);
        let notice = reload.notice().filter(|_| reload.is_news);
        Ok(notice.map_or_else(HookResult::proceed, |(level, text)| HookResult::proceed().message(level, text)))
    }
}
