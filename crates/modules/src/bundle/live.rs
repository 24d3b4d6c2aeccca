//! Bundles whose changes are picked up while a session runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{
    EXECUTION_START, EventData, Hook, HookError, HookRegistry, HookResult, Level, PROVIDER_REQUEST, Registration,
};

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
    /// new version.
    pub fn follow(self, changed: impl Fn(&Levels) + Send + Sync + 'static) -> Following {
        let hooks = self.hooks.clone();
        let follower = Arc::new(Follower { live: Mutex::new(self), changed: Box::new(changed) });
        hooks.hook(EXECUTION_START).named(FOLLOWER).observer().handler(follower.clone());
        hooks.hook(PROVIDER_REQUEST).named(FOLLOWER).observer().handler(follower.clone());
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
    /// Looks at the files now, and takes over what has changed. It blocks for as long as the files take. A mistake is told every time.
    pub fn look(&self) -> Looked {
        match self.follower.refresh() {
            (Some(Ok(levels)), _) => Looked::Changed(levels),
            (Some(Err(error)), _) | (None, Some(error)) => Looked::Refused(error),
            (None, None) => Looked::Unchanged,
        }
    }
}

/// The name of the hooks that look for changes.
pub const FOLLOWER: &str = "session-bundles";

struct Follower {
    // A std lock: nothing awaits while it is held.
    live: Mutex<Live>,
    changed: Box<dyn Fn(&Levels) + Send + Sync>,
}

impl Follower {
    /// What is new, if anything is, and what is wrong with the newest version.
    fn refresh(&self) -> (Option<Result<Levels, BundleError>>, Option<BundleError>) {
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

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}

impl Hook for Follower {
    async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
        let news = match self.refresh().0 {
            None => None,
            Some(Ok(levels)) => Looked::Changed(levels).news(),
            Some(Err(error)) => Looked::Refused(error).news(),
        };
        Ok(news.map_or_else(HookResult::proceed, |(level, text)| HookResult::proceed().message(level, text)))
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("seen", &self.seen).finish_non_exhaustive()
    }
}
