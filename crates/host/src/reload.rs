//! Reloading of bundles during a session.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_audit::Log;
use amplifier_core::HookRegistry;
use amplifier_link::{ReloadResult, ReloadStatus};
use amplifier_modules::HookEnvironment;
use amplifier_modules::bundle::{BundleError, BundleSource, BundleStack, BundleWatcher, LoadedBundle};
use amplifier_modules::trust::BundlePins;
use serde_json::json;

use crate::bundles::Bundles;
use crate::config::Config;
use crate::error::Result;
use crate::fleet::fleet_bundle_file;
use crate::home::Home;
use crate::project_bundle::{ProjectBundle, ProjectTrust};
use crate::protection::ProtectionPlan;

/// The registered bundles of a session. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct BundleReloader {
    watcher: BundleWatcher,
    config: Config,
    home: Home,
}

impl BundleReloader {
    /// Registers the hooks of the usable bundles, and reloads changed files at the start of a turn and before each model call. A changed project
    /// bundle needs trust first. Every new version is recorded.
    ///
    /// # Errors
    /// If a hook cannot be compiled.
    pub(crate) fn start(
        bundles: &Bundles,
        config: &Config,
        home: &Home,
        hooks: &HookRegistry,
        host: HookEnvironment,
        log: &Log,
        protection: &ProtectionPlan,
    ) -> Result<Self> {
        let (config, home) = (config.clone(), home.clone());
        let files = SessionFiles {
            config: config.clone(),
            home: home.clone(),
            protection: protection.clone(),
            project: bundles.trusted_project(),
            has_managed: AtomicBool::new(bundles.has_managed()),
            has_fleet: AtomicBool::new(bundles.has_fleet()),
            has_user: AtomicBool::new(bundles.has_user()),
            log: log.clone(),
        };
        let watcher = BundleWatcher::new(hooks, host, files);
        watcher.register(bundles.levels())?;
        watcher.watch();
        Ok(Self { watcher, config, home })
    }

    /// Reloads changed files now. Returns the result, and a text for the user if something has changed. Blocks while reading small files.
    pub fn reload(&self) -> (ReloadResult, Option<String>) {
        let reload = self.watcher.reload_blocking();
        let news = reload.notice().map(|(_, text)| text);
        let project = Bundles::find(&self.config, &self.home).ok().and_then(|bundles| bundles.project);
        let unused = project.filter(|project| !matches!(project.state, ProjectTrust::Trusted(..)));
        let not_used = |project: &ProjectBundle| match project.state {
            ProjectTrust::Untrusted(..) => ReloadStatus::NotTrusted,
            ProjectTrust::Trusted(..) | ProjectTrust::Unusable(_) => ReloadStatus::Refused,
        };
        let result = match (&reload.stack, &reload.error, &unused) {
            (Some(_), ..) => ReloadStatus::Changed,
            (None, _, Some(project)) => not_used(project),
            (None, Some(_), None) => ReloadStatus::Refused,
            (None, None, None) => ReloadStatus::Unchanged,
        };
        let unused = || unused.and_then(|project| project.warning()).filter(|_| reload.stack.is_none());
        (ReloadResult { result, message: reload.error.or_else(unused) }, news)
    }
}

/// Records that a new version of the bundles is active. The hooks inform the user of the change; the log reports failures itself.
pub fn record_change(log: &Log, levels: &BundleStack) {
    let files: Vec<_> = levels.bundles().flat_map(|(_, bundle)| &bundle.files).collect();
    _ = log.policy_change(&json!({ "bundles": files }));
}

struct SessionFiles {
    config: Config,
    home: Home,
    protection: ProtectionPlan,
    /// The project's bundle at the start of the session, if trusted.
    project: Option<(PathBuf, LoadedBundle, BundlePins)>,
    /// `true` once the administrator's bundle existed.
    has_managed: AtomicBool,
    /// `true` once the organisation's bundle existed.
    has_fleet: AtomicBool,
    /// `true` once the user's bundle existed.
    has_user: AtomicBool,
    log: Log,
}

impl BundleSource for SessionFiles {
    fn load(&self) -> Result<BundleStack, BundleError> {
        let mut bundles = Bundles::find(&self.config, &self.home)?;
        // Some editors move a file away before they write it; its guards must stay active meanwhile.
        if self.has_managed.load(Ordering::Relaxed) && !bundles.has_managed() {
            return Err(missing(self.home.managed_bundle()));
        }
        if self.has_fleet.load(Ordering::Relaxed) && !bundles.has_fleet() {
            return Err(missing(&self.home.fleet_folder()));
        }
        if self.has_user.load(Ordering::Relaxed) && !bundles.has_user() {
            return Err(missing(&self.home.user_bundle()));
        }
        let withheld = self.withhold(&mut bundles);
        let levels = bundles.levels().with_rejected_version(withheld);
        self.protection.check(&levels)?;
        self.has_managed.store(bundles.has_managed(), Ordering::Relaxed);
        self.has_fleet.store(bundles.has_fleet(), Ordering::Relaxed);
        self.has_user.store(bundles.has_user(), Ordering::Relaxed);
        Ok(levels)
    }

    fn expected(&self) -> Vec<PathBuf> {
        let user = self.home.user_bundle();
        let own = [self.home.managed_bundle().to_owned(), std::path::absolute(&user).unwrap_or(user)];
        own.into_iter().chain(fleet_bundle_file(&self.home)).collect()
    }

    fn changed(&self, levels: &BundleStack) {
        record_change(&self.log, levels);
    }
}

impl SessionFiles {
    /// Keeps the last trusted version of the project's bundle, and returns the problem of the new one, so that changes of the user's bundle still
    /// apply.
    fn withhold(&self, bundles: &mut Bundles) -> Option<BundleError> {
        let (file, bundle, pinned) = self.project.as_ref()?;
        let problem = match &bundles.project {
            Some(ProjectBundle { state: ProjectTrust::Trusted(..), .. }) => return None,
            Some(project) => BundleError::whole(file, project.problem().unwrap_or_default()),
            None => missing(file),
        };
        let state = ProjectTrust::Trusted(bundle.clone(), pinned.clone());
        bundles.project = Some(ProjectBundle { file: file.clone(), state });
        Some(problem)
    }
}

fn missing(file: &Path) -> BundleError {
    BundleError::whole(file, "file not found; start a new session to continue without the bundle")
}
