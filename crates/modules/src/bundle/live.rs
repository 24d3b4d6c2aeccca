//! A bundle whose changes are picked up while a session runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{
    EXECUTION_START, EventData, Hook, HookError, HookRegistry, HookResult, Level, PROVIDER_REQUEST, Registration,
};

use super::load::{Digest, digest_of};
use super::{BundleError, Loaded};
use crate::host::Host;

/// A bundle that is registered, and read anew when one of its files has changed.
///
/// A version with a mistake in it changes nothing: the hooks of the last good one stay.
pub struct Live {
    hooks: HookRegistry,
    host: Host,
    load: Load,
    registrations: Vec<Registration>,
    /// The files of the version in force, and what was in them.
    seen: Vec<(PathBuf, Digest)>,
    /// What is wrong with a newer version.
    broken: Option<BundleError>,
}

type Load = Box<dyn Fn() -> Result<Loaded, BundleError> + Send>;

impl Live {
    /// Loads a bundle and registers its hooks.
    ///
    /// # Errors
    /// If it cannot be loaded, or a hook cannot be made.
    pub fn start(
        hooks: &HookRegistry,
        host: Host,
        load: impl Fn() -> Result<Loaded, BundleError> + Send + 'static,
    ) -> Result<(Self, Loaded), BundleError> {
        let loaded = load()?;
        let registrations = loaded.register(hooks, &host)?;
        let seen = loaded.contents();
        Ok((Self { hooks: hooks.clone(), host, load: Box::new(load), registrations, seen, broken: None }, loaded))
    }

    /// Looks at the files, and takes over what has changed. `None` if nothing has.
    ///
    /// # Errors
    /// If the new version has a mistake; the old one stays in force, and the mistake is told once.
    pub fn refresh(&mut self) -> Option<Result<Loaded, BundleError>> {
        // A few small files: this takes microseconds. What is in them counts, because clocks are coarse.
        let is_same =
            self.seen.iter().all(|(file, digest)| fs::read(file).is_ok_and(|text| digest_of(&text) == *digest));
        // The mistake may be in a file that the version in force does not have.
        if is_same && self.broken.is_none() {
            return None;
        }
        // The new hooks first: nothing happens without a hook in between.
        let renewed = (self.load)().and_then(|loaded| Ok((loaded.register(&self.hooks, &self.host)?, loaded)));
        match renewed {
            Ok((new, loaded)) => {
                std::mem::replace(&mut self.registrations, new).iter().for_each(Registration::unregister);
                self.seen = loaded.contents();
                self.broken = None;
                Some(Ok(loaded))
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
    pub fn follow(self, changed: impl Fn(&Loaded) + Send + Sync + 'static) -> [Registration; 2] {
        let hooks = self.hooks.clone();
        let follower = Arc::new(Follower { live: Mutex::new(self), changed });
        [
            hooks.hook(EXECUTION_START).named("bundle").observer().handler(follower.clone()),
            hooks.hook(PROVIDER_REQUEST).named("bundle").observer().handler(follower),
        ]
    }
}

struct Follower<F> {
    // A std lock: nothing awaits while it is held.
    live: Mutex<Live>,
    changed: F,
}

impl<F: Fn(&Loaded) + Send + Sync + 'static> Hook for Follower<F> {
    async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
        let refreshed = self.live.lock().unwrap_or_else(PoisonError::into_inner).refresh();
        Ok(match refreshed {
            None => HookResult::proceed(),
            Some(Ok(loaded)) => {
                (self.changed)(&loaded);
                let file = loaded.files.last().map(PathBuf::as_path).unwrap_or(Path::new("the bundle"));
                let text = format!("{} has changed: its hooks are in force from now on", file.display());
                HookResult::proceed().message(Level::Info, text)
            }
            Some(Err(error)) => {
                let text =
                    format!("the bundle has changed and cannot be used, so the old version stays in force:\n{error}");
                HookResult::proceed().message(Level::Warning, text)
            }
        })
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("seen", &self.seen).finish_non_exhaustive()
    }
}
