//! Bundles whose changes are picked up while a session runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use amplifier_core::{
    EXECUTION_START, EventData, Hook, HookError, HookRegistry, HookResult, Level, PROVIDER_REQUEST, Registration,
};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;
use tokio::runtime::Handle;

use super::load::{Content, are_current, refuse_emptied};
use super::register::Running;
use super::{BundleError, Levels};
use crate::host::Host;

/// Bundles that are registered, and read anew when one of their files has changed.
///
/// A version with a mistake in it changes nothing: the hooks of the last good one stay. A hook that is in both versions, with the same settings and the same
/// files, goes on as it is: its worker is not started anew, and what it counts is not lost.
pub struct Live {
    hooks: HookRegistry,
    host: Host,
    load: Load,
    registrations: Vec<Registration>,
    /// The files of the version in force, and what was in them.
    seen: Vec<Content>,
    /// Bundles that count as soon as they are there.
    expected: Vec<PathBuf>,
    /// What runs, so that it need not begin anew.
    running: Running,
    /// What is wrong with a newer version.
    broken: Option<BundleError>,
}

type Load = Box<dyn Fn() -> Result<Levels, BundleError> + Send>;

impl Live {
    /// Registers the hooks of bundles. `load` gives them anew.
    ///
    /// # Errors
    /// If a hook cannot be made.
    pub fn start(
        levels: &Levels,
        hooks: &HookRegistry,
        host: Host,
        load: impl Fn() -> Result<Levels, BundleError> + Send + 'static,
    ) -> Result<Self, BundleError> {
        let mut running = Running::default();
        let registrations = levels.register_over(hooks, &host, &mut running)?;
        let (hooks, seen, load) = (hooks.clone(), levels.contents(), Box::new(load));
        Ok(Self { hooks, host, load, registrations, seen, expected: Vec::new(), running, broken: None })
    }

    /// Looks for a bundle, too, that need not be there yet.
    #[must_use]
    pub fn expecting(mut self, file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        self.expected.push(std::path::absolute(&file).unwrap_or(file));
        self
    }

    /// Looks at the files, and takes over what has changed. `None` if nothing has.
    ///
    /// # Errors
    /// If the new version has a mistake; the old one stays in force, and the mistake is told once.
    pub fn refresh(&mut self) -> Option<Result<Levels, BundleError>> {
        let is_new =
            |file: &PathBuf| file.symlink_metadata().is_ok() && !self.seen.iter().any(|seen| seen.place == *file);
        // The mistake may be in a file that the version in force does not have.
        if are_current(&self.seen) && self.broken.is_none() && !self.expected.iter().any(is_new) {
            return None;
        }
        // The new hooks first: nothing happens without a hook in between.
        let renewed = (self.load)().and_then(|levels| {
            refuse_emptied(levels.contents(), &self.seen)?;
            match levels.withheld() {
                // All that is new is what cannot be used.
                Some(error) if levels.contents() == self.seen => Err(error.clone()),
                _ => Ok((levels.register_over(&self.hooks, &self.host, &mut self.running)?, levels)),
            }
        });
        match renewed {
            Ok((new, levels)) => {
                std::mem::replace(&mut self.registrations, new).iter().for_each(Registration::unregister);
                self.host.outlast(&self.hooks);
                self.seen = levels.contents();
                self.broken = levels.withheld().cloned();
                Some(Ok(levels))
            }
            Err(error) if self.broken.as_ref() == Some(&error) => None,
            Err(error) => {
                self.broken = Some(error.clone());
                Some(Err(error))
            }
        }
    }

    /// Has it refreshed when a turn begins and before each call to the model, and tells the person. `changed` is called with every
    /// new version. A disk that does not answer keeps nobody waiting for long: the version in force stays.
    pub fn follow(self, changed: impl Fn(&Levels) + Send + Sync + 'static) -> Following {
        let hooks = self.hooks.clone();
        let looking = Arc::new(Looking { live: Mutex::new(self), changed: Box::new(changed) });
        let follower = Arc::new(Follower { looking, look: Mutex::new(None) });
        hooks.hook(EXECUTION_START).named(FOLLOWER).observer().timeout(FOLLOWER_TIMEOUT).handler(follower.clone());
        hooks.hook(PROVIDER_REQUEST).named(FOLLOWER).observer().timeout(FOLLOWER_TIMEOUT).handler(follower.clone());
        Following { follower }
    }
}

/// Bundles that are followed. A handle: they are followed for as long as the hooks are registered.
#[derive(Clone, Debug)]
pub struct Following {
    follower: Arc<Follower>,
}

/// What came of a look at bundles.
#[derive(Clone, Debug)]
pub enum Looked {
    /// They are as they were.
    Unchanged,
    /// There is a new version, and it is in force; what is not taken over of it is [withheld](Levels::withheld).
    Changed(Levels),
    /// The new version has a mistake, so the old one stays in force.
    Refused(BundleError),
}

impl Looked {
    /// What the person should know about it; nothing if nothing has changed.
    pub fn news(&self) -> Option<(Level, String)> {
        let stays = |error: &BundleError| {
            format!("a bundle has changed and cannot be used, so the old version stays in force:\n{error}")
        };
        match self {
            Self::Unchanged => None,
            Self::Refused(error) => Some((Level::Warning, stays(error))),
            Self::Changed(levels) => {
                let text = "a bundle has changed: its hooks are in force from now on";
                Some(match levels.withheld() {
                    None => (Level::Info, text.to_owned()),
                    Some(error) => (Level::Warning, format!("{text}; but {}", stays(error))),
                })
            }
        }
    }
}

impl Following {
    /// Looks at the files now, and takes over what has changed. It blocks for as long as the files take, but not without an end. A mistake is told
    /// every time.
    pub fn look(&self) -> Looked {
        let begun = Instant::now();
        loop {
            match self.follower.look().and_then(|look| self.follower.finished(look)) {
                Some((Some(Ok(levels)), _)) => return Looked::Changed(levels),
                Some((Some(Err(error)), _) | (None, Some(error))) => return Looked::Refused(error),
                Some((None, None)) => return Looked::Unchanged,
                None if begun.elapsed() > FOLLOWER_TIMEOUT => {
                    let problem = format!("its files cannot be read within {FOLLOWER_TIMEOUT:?}");
                    return Looked::Refused(BundleError::whole(Path::new("bundle"), problem));
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// The name of the hooks that look for changes.
pub const FOLLOWER: &str = "session-bundles";

/// How long a session waits for the files of its bundles. They are small, so only a disk that does not answer takes so long.
pub const FOLLOWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What is new, if anything is, and what is wrong with the newest version.
type Found = (Option<Result<Levels, BundleError>>, Option<BundleError>);

struct Follower {
    looking: Arc<Looking>,
    /// The look that is under way. A disk that does not answer keeps its thread, and nobody else.
    // A std lock: nothing awaits while it is held.
    look: Mutex<Option<Look>>,
}

#[derive(Clone)]
struct Look {
    begun: Instant,
    found: Shared<oneshot::Receiver<Found>>,
}

/// What a look needs, on a thread of its own.
struct Looking {
    live: Mutex<Live>,
    changed: Box<dyn Fn(&Levels) + Send + Sync>,
}

impl Looking {
    fn look(&self) -> Found {
        let (refreshed, broken) = {
            let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            (live.refresh(), live.broken.clone())
        };
        if let Some(Ok(levels)) = &refreshed {
            (self.changed)(levels);
        }
        (refreshed, broken)
    }
}

impl Follower {
    /// The look that is under way, or a new one; none if no thread can be started.
    fn look(&self) -> Option<Look> {
        let mut under_way = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.is_none() {
            let (send, receive) = oneshot::channel();
            let looking = self.looking.clone();
            // Hooks that are made anew may want the runtime.
            let runtime = Handle::try_current().ok();
            let thread = std::thread::Builder::new().name("bundles".to_owned()).spawn(move || {
                let _within = runtime.as_ref().map(Handle::enter);
                // Whoever asked may be gone.
                let _ = send.send(looking.look());
            });
            thread.ok()?;
            *under_way = Some(Look { begun: Instant::now(), found: receive.shared() });
        }
        under_way.clone()
    }

    /// What a look found, once it has ended.
    fn finished(&self, look: Look) -> Option<Found> {
        let found = look.found.now_or_never()?;
        self.look.lock().unwrap_or_else(PoisonError::into_inner).take();
        found.ok()
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}

impl Hook for Follower {
    async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
        let look = self.look().ok_or_else(|| HookError::failed("no thread can be started to read the bundles"))?;
        // One that is late already is not waited for again.
        if look.begun.elapsed() < FOLLOWER_TIMEOUT {
            let _ = look.found.clone().await;
        }
        let news = match self.finished(look) {
            Some((Some(Ok(levels)), _)) => Looked::Changed(levels).news(),
            Some((Some(Err(error)), _)) => Looked::Refused(error).news(),
            Some((None, _)) | None => None,
        };
        Ok(news.map_or_else(HookResult::proceed, |(level, text)| HookResult::proceed().message(level, text)))
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("seen", &self.seen).finish_non_exhaustive()
    }
}
