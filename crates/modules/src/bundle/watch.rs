//! Bundles whose changes count while a session runs.

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

/// The name of the hooks that look for changes.
pub const RELOAD_HOOK: &str = "session-bundles";

/// How long a session waits for the files of its bundles. They are small, so only a disk that does not answer takes so long.
pub const RELOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The events at which changes are looked for: when a turn begins and before each call to the model.
pub fn reload_events() -> [EventName; 2] {
    [EXECUTION_START.name(), PROVIDER_REQUEST.name()]
}

/// The bundles of a session, in all their versions. A function that loads them is one.
pub trait BundleSource: Send + Sync + 'static {
    /// Loads them anew.
    ///
    /// # Errors
    /// If there is a mistake in one of them.
    fn load(&self) -> Result<BundleStack, BundleError>;

    /// The absolute path of a bundle that need not be there yet.
    fn expected(&self) -> Option<PathBuf> {
        None
    }

    /// Takes note of a new version that is in force.
    fn changed(&self, _stack: &BundleStack) {}
}

impl<F: Fn() -> Result<BundleStack, BundleError> + Send + Sync + 'static> BundleSource for F {
    fn load(&self) -> Result<BundleStack, BundleError> {
        self()
    }
}

/// Registered bundles, which are read anew when one of their files has changed. A handle: clones share state.
///
/// A version with a mistake in it changes nothing: the hooks of the last good one stay. A hook that is in both versions, with the same settings and the same
/// files, goes on as it is: its worker is not started anew, and what it counts is not lost.
///
/// A new version comes in two steps, so that a host can bring modules of its own: it is [read](Self::read), which compiles its hooks, and
/// [put in force](PreparedVersion::commit).
#[derive(Clone)]
pub struct BundleWatcher(Arc<WatcherState>);

struct WatcherState {
    hooks: HookRegistry,
    host: HookEnvironment,
    source: Box<dyn BundleSource>,
    // A std lock: nothing awaits while it is held.
    active: Mutex<ActiveVersion>,
    /// Held by whoever prepares a version. A disk that does not answer keeps its thread, and nobody else.
    background_read: Arc<tokio::sync::Mutex<Option<BackgroundRead>>>,
}

/// The version that is in force.
#[derive(Default)]
struct ActiveVersion {
    hooks: Vec<Arc<CompiledHook>>,
    registrations: Vec<Registration>,
    /// The hooks that look for changes, and the one that waits for what hooks began that are gone.
    watch_hooks: Vec<Registration>,
    /// The files of the version, and what was in them.
    contents: Vec<FileContent>,
    /// What is wrong with a newer version.
    error: Option<String>,
    has_ended: bool,
}

/// A thread that reads.
struct BackgroundRead {
    started: Instant,
    found: oneshot::Receiver<Result<PreparedVersion, Reload>>,
}

impl BundleWatcher {
    /// Returns a watcher of bundles that are registered nowhere yet.
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

    /// Registers the hooks that look for changes when a turn begins and before each call to the model, and tell the person. A disk that does not answer keeps
    /// nobody waiting for long: the version in force stays.
    pub fn watch(&self) {
        let register = |event: EventName| {
            let hook = self.0.hooks.hook(event).named(RELOAD_HOOK).observer().timeout(RELOAD_TIMEOUT);
            hook.handler(ReloadHook(self.clone()))
        };
        let watch_hooks = reload_events().map(register);
        self.0.active().watch_hooks.extend(watch_hooks);
    }

    /// Reads the bundles on a thread of its own, if a file of theirs has changed, or `always`, and compiles their hooks. The error says why there is nothing to
    /// put in force. There is no future while another version is read or prepared.
    ///
    /// # Cancel safety
    /// What the thread finds after the future was dropped is what the next caller gets, who does not wait for a thread that is late already.
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
        // Hooks that are compiled anew may want the runtime.
        let (watcher, runtime) = (self.clone(), Handle::try_current().ok());
        let thread = std::thread::Builder::new().name("bundles".to_owned()).spawn(move || {
            let _within = runtime.as_ref().map(Handle::enter);
            // Whoever asked may be gone.
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
        let is_new = |file: PathBuf| file.symlink_metadata().is_ok() && !known.iter().any(|known| known.path == file);
        // The mistake may be in a file that the version in force does not have.
        if !always && !had_error && are_current(&known) && !source.expected().is_some_and(is_new) {
            return Err(unchanged);
        }
        let loaded = source.load().and_then(|stack| refuse_emptied(stack.contents(), &known).map(|()| stack));
        let version = loaded.and_then(|stack| self.prepare(stack)).map_err(|error| self.refuse(error.to_string()))?;
        if version.reload.changes_hooks || version.stack.contents() != known {
            return Ok(version);
        }
        match &version.reload.error {
            // All that is new is what cannot be used.
            Some(error) => Err(self.refuse(error)),
            // What was wrong is mended, which the person is told, too.
            None if had_error => Ok(version),
            None => Err(unchanged),
        }
    }

    /// Reads the bundles now, and puts in force what has changed. It blocks for as long as the files take, but not without an end. A mistake is told every
    /// time.
    pub fn reload_blocking(&self) -> Reload {
        let (started, mut read) = (Instant::now(), None);
        while started.elapsed() < RELOAD_TIMEOUT {
            read = read.or_else(|| self.read(true).map(Box::pin));
            if let Some(found) = read.as_mut().and_then(|read| read.as_mut().now_or_never()) {
                return self.activate(found);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.refuse(format!("the files of the bundle cannot be read within {RELOAD_TIMEOUT:?}"))
    }

    fn activate(&self, found: Result<PreparedVersion, Reload>) -> Reload {
        let activated = found.map(PreparedVersion::activate);
        activated.map_or_else(|unused| unused, |reload| reload.unwrap_or_else(|error| self.refuse(error.to_string())))
    }

    /// Notes that a newer version cannot be used, so that the one in force stays.
    pub fn refuse(&self, error: impl Into<String>) -> Reload {
        let error = Some(error.into());
        let mut active = self.0.active();
        let is_news = active.error != error;
        active.error.clone_from(&error);
        Reload { error, is_news, ..active.unchanged() }
    }

    /// Unregisters everything, for good.
    pub fn unregister(&self) {
        let registered = {
            let mut active = self.0.active();
            active.has_ended = true;
            [std::mem::take(&mut active.watch_hooks), std::mem::take(&mut active.registrations)]
        };
        registered.iter().flatten().for_each(Registration::unregister);
    }

    /// `true` once everything is unregistered.
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

/// A version whose hooks are compiled, and which is not in force. Dropping it changes nothing.
pub struct PreparedVersion {
    watcher: BundleWatcher,
    stack: BundleStack,
    hooks: Vec<Arc<CompiledHook>>,
    reload: Reload,
    /// How many hooks stand in their place.
    next_hook: usize,
    registered: RegistrationGuard,
    /// Keeps others from preparing one meanwhile.
    permit: Option<OwnedMutexGuard<Option<BackgroundRead>>>,
}

impl PreparedVersion {
    /// The bundles.
    pub fn stack(&self) -> &BundleStack {
        &self.stack
    }

    /// The hooks, in order.
    pub fn hooks(&self) -> &[Arc<CompiledHook>] {
        &self.hooks
    }

    /// Registers the hooks in order, beside those in force, up to the next one that the host brings, which it returns: once the host has registered that,
    /// this goes on behind it.
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

    /// Puts the version in force, with the hooks that are registered by now. The new hooks are there before the old ones go, so nothing happens without a
    /// hook in between. `None` if everything was unregistered meanwhile.
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
        // The first version was not read here, and is no change.
        if permit.is_some() {
            shared.source.changed(&stack);
        }
        Some(Reload { stack: Some(Box::new(stack)), is_news: true, ..reload })
    }

    /// Puts the version in force where nobody brings modules.
    fn activate(mut self) -> Result<Reload, BundleError> {
        match self.register()? {
            Some(hook) => Err(hook.missing_host_module()),
            None => Ok(self.commit().unwrap_or_default()),
        }
    }
}

/// The result of reading bundles anew.
#[derive(Clone, Debug, Default)]
pub struct Reload {
    /// The version that is in force from now on; none if nothing has changed.
    pub stack: Option<Box<BundleStack>>,
    /// `true` if other hooks are in force, or the same in another order.
    pub changes_hooks: bool,
    /// The hooks that go on as they were.
    pub kept: Vec<String>,
    /// The hooks that are new, or not what they were.
    pub began: Vec<String>,
    /// The hooks that are gone, or not what they were.
    pub ended: Vec<String>,
    /// What is wrong with a newer version of a bundle: the old one stays in force.
    pub error: Option<String>,
    /// `false` if nothing has changed, or the person was told of the mistake before.
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

    /// What the person should know about it; nothing if nothing has changed.
    pub fn notice(&self) -> Option<(Level, String)> {
        let changed = "a bundle has changed: its hooks are in force from now on";
        let stays =
            |error| format!("a bundle has changed and cannot be used, so the old version stays in force:\n{error}");
        match (&self.stack, &self.error) {
            (None, None) => None,
            (None, Some(error)) => Some((Level::Warning, stays(error))),
            (Some(_), None) => Some((Level::Info, changed.to_owned())),
            (Some(_), Some(error)) => Some((Level::Warning, format!("{changed}; but {}", stays(error)))),
        }
    }
}

/// A hook that looks for changes.
#[derive(Debug)]
struct ReloadHook(BundleWatcher);

impl Hook for ReloadHook {
    async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
        // Whoever reads already tells.
        let Some(read) = self.0.read(false) else { return Ok(HookResult::proceed()) };
        let reload = self.0.activate(read.await);
        let notice = reload.notice().filter(|_| reload.is_news);
        Ok(notice.map_or_else(HookResult::proceed, |(level, text)| HookResult::proceed().message(level, text)))
    }
}
