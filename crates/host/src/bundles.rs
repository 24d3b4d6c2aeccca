//! The bundles of a session.

use std::path::{Path, PathBuf};

use amplifier_core::HookRegistry;
use amplifier_modules::bundle::{
    BundleError, BundleScope, BundleStack, LoadedBundle, RELOAD_HOOK, RELOAD_TIMEOUT, load, reload_events,
};
use amplifier_modules::trust::BundlePins;
use amplifier_modules::{COUNTER, HookEnvironment, Scope, WAITER};
use amplifier_process::sandbox::Sandbox;

use crate::config::Config;
use crate::error::{ErrorContext, Result};
use crate::fleet::{load_fleet_bundle, unconnected_hooks};
use crate::guards::{CONFIRM, PROTECT};
use crate::home::Home;
use crate::managed::{MANAGED_BUNDLE, load_managed};
use crate::mode::{ACCEPT_EDITS, PLAN};
use crate::project_bundle::{ProjectBundle, ProjectTrust, find_project_bundle_file};
use crate::protection::{self, ActiveSandbox, ProtectionPlan};

/// Names of built-in hooks, which hooks of a bundle cannot take.
const RESERVED_HOOKS: [&str; 8] = [CONFIRM, PROTECT, PLAN, ACCEPT_EDITS, RELOAD_HOOK, COUNTER, WAITER, "json"];

/// Returns the stack of a program with a bundle of its own: that bundle, and the managed one. A hook with the name of a built-in one is renamed, so that
/// no approval rule applies to the wrong hook.
///
/// # Errors
/// If the managed bundle cannot be used.
pub fn embedded_stack(bundle: LoadedBundle) -> Result<BundleStack, BundleError> {
    let managed = load_managed(Path::new(MANAGED_BUNDLE))?.map(|managed| (BundleScope::Managed, managed));
    Ok(BundleStack::new(managed.into_iter().chain([(BundleScope::Explicit, bundle)]), &RESERVED_HOOKS))
}

/// The bundles of a session.
#[derive(Debug, Default)]
pub struct Bundles {
    managed: Option<LoadedBundle>,
    fleet: Option<LoadedBundle>,
    user: Option<LoadedBundle>,
    named: Option<LoadedBundle>,
    /// The bundle of the project.
    pub project: Option<ProjectBundle>,
}

impl Bundles {
    /// Finds the bundles of the administrator, of the organisation, of the user, of the project and of the configuration. A file with several roles is used once; a
    /// configured file needs no trust.
    ///
    /// # Errors
    /// If a bundle of the administrator, of the organisation or of the user is invalid or unreadable.
    pub fn find(config: &Config, home: &Home) -> Result<Self, BundleError> {
        let managed = load_managed(home.managed_bundle())?;
        let above = managed.as_ref().map(|_| home.managed_bundle());
        let is_new =
            |file: &PathBuf, others: &[Option<&Path>]| !others.iter().flatten().any(|other| is_same_file(other, file));
        let user = Some(home.user_bundle()).filter(|file| exists(file) && is_new(file, &[above]));
        let named = config.bundle.clone().filter(|named| is_new(named, &[above, user.as_deref()]));
        let own = [above, user.as_deref(), named.as_deref()];
        let project = find_project_bundle_file(&config.workspace)
            .filter(|project| is_new(project, &own))
            .map(|file| ProjectBundle::find(file, &home.trust_store()));
        let load = |file: Option<PathBuf>| file.as_deref().map(load).transpose();
        let fleet = load_fleet_bundle(home)?;
        Ok(Self { managed, fleet, user: load(user)?, named: load(named)?, project })
    }

    /// Returns the bundles that need no trust, in the order of registration.
    pub(crate) fn own(&self) -> impl Iterator<Item = (BundleScope, &LoadedBundle)> {
        let all = [
            (BundleScope::Managed, self.managed.as_ref()),
            (BundleScope::Fleet, self.fleet.as_ref()),
            (BundleScope::User, self.user.as_ref()),
            (BundleScope::Explicit, self.named.as_ref()),
        ];
        all.into_iter().filter_map(|(scope, bundle)| Some((scope, bundle?)))
    }

    pub(crate) fn has_managed(&self) -> bool {
        self.managed.is_some()
    }

    pub(crate) fn has_fleet(&self) -> bool {
        self.fleet.is_some()
    }

    pub(crate) fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// Returns the project's bundle, if trusted.
    pub(crate) fn trusted_project(&self) -> Option<(PathBuf, LoadedBundle, BundlePins)> {
        let ProjectBundle { file, state: ProjectTrust::Trusted(bundle, pinned) } = self.project.as_ref()? else {
            return None;
        };
        Some((file.clone(), bundle.clone(), pinned.clone()))
    }

    /// Returns the usable bundles as one stack.
    pub fn levels(&self) -> BundleStack {
        let project = self.project.as_ref().and_then(|project| match &project.state {
            ProjectTrust::Trusted(bundle, _) => Some((BundleScope::Project, bundle)),
            ProjectTrust::Untrusted(..) | ProjectTrust::Unusable(_) => None,
        });
        let all = self.own().chain(project).map(|(scope, bundle)| (scope, bundle.clone()));
        BundleStack::new(all, &RESERVED_HOOKS)
    }
}

/// Registers the hooks of all bundles, and returns their environment.
///
/// # Errors
/// If a bundle is invalid.
pub fn register(levels: &BundleStack, config: &Config, home: &Home, hooks: &HookRegistry) -> Result<HookEnvironment> {
    let host = hook_environment_of(config, home, levels.bundles().map(|(_, bundle)| bundle))?;
    levels.register(hooks, &host)?;
    Ok(host)
}

/// Registers the hooks of all bundles for listing. They must not get events, because their programs would run without a sandbox, which is too slow to
/// find for a list.
///
/// # Errors
/// If a bundle is invalid.
pub fn register_for_listing(levels: &BundleStack, config: &Config, hooks: &HookRegistry) -> Result<()> {
    levels.register(hooks, &unconfined_environment(config)?)?;
    Ok(())
}

/// Registers the hooks of a single bundle.
///
/// # Errors
/// If the bundle is invalid.
pub fn register_alone(
    bundle: &LoadedBundle,
    config: &Config,
    home: &Home,
    hooks: &HookRegistry,
) -> Result<HookEnvironment> {
    let host = hook_environment_of(config, home, [bundle])?;
    bundle.register(hooks, &host)?;
    Ok(host)
}

/// Registers the hooks of a single bundle for its tests: modules write no log, send no notification and export no metrics.
///
/// # Errors
/// If the workspace cannot be resolved or a hook cannot be registered.
pub fn register_for_tests(bundle: &LoadedBundle, config: &Config, home: &Home, hooks: &HookRegistry) -> Result<()> {
    bundle.register(hooks, &hook_environment_of(config, home, [bundle])?.trial())?;
    Ok(())
}

/// Returns the environment in which the hooks of a single bundle are compiled for a check. Nothing must be registered in it.
///
/// # Errors
/// If the workspace cannot be resolved.
pub fn environment_for_check(bundle: &LoadedBundle, config: &Config, home: &Home) -> Result<HookEnvironment> {
    // A bundle with mistakes may name files that cannot be protected; it is checked without protection then.
    match hook_environment_of(config, home, [bundle]) {
        Ok(host) => Ok(host),
        Err(_) => unconfined_environment(config),
    }
}

/// Builds the environment of hooks that get no events.
fn unconfined_environment(config: &Config) -> Result<HookEnvironment> {
    let host = HookEnvironment::new(scope(&config.workspace)?).sandbox(|_| Ok(Sandbox::default()));
    Ok(without_connection(host))
}

/// Adds the services of a fleet to an environment outside of a session, where calls of them fail.
fn without_connection(host: HookEnvironment) -> HookEnvironment {
    match unconnected_hooks() {
        Some(services) => host.remote_hooks(services),
        None => host,
    }
}

/// Registers placeholders for the hooks that reload bundles, for listings: they are part of every session, and do nothing outside of one.
pub fn name_follower(hooks: &HookRegistry) {
    for event in reload_events() {
        hooks.hook(event).named(RELOAD_HOOK).observer().timeout(RELOAD_TIMEOUT).run(|_| {});
    }
}

/// Builds the environment of hooks outside of a session.
///
/// # Errors
/// If the workspace cannot be resolved.
fn hook_environment_of<'a>(
    config: &Config,
    home: &Home,
    bundles: impl IntoIterator<Item = &'a LoadedBundle>,
) -> Result<HookEnvironment> {
    let workspace = config.workspace.canonicalize();
    let workspace = workspace.with_context(|| format!("the workspace `{}`", config.workspace.display()))?;
    let protection = ProtectionPlan::current(config, home, &workspace, bundles)?;
    let sandbox = ActiveSandbox::find(config.is_confined, &protection, home.environment());
    Ok(without_connection(hook_environment(&config.workspace, protection, sandbox)?))
}

/// Builds the environment of hooks. Their programs run in the sandbox for commands.
///
/// # Errors
/// If the workspace cannot be resolved.
pub fn hook_environment(
    workspace: &Path,
    protection: ProtectionPlan,
    active: ActiveSandbox,
) -> Result<HookEnvironment> {
    // Without a sandbox, no path is protected from commands, and the session says so.
    let folders: Vec<PathBuf> = match active.level.is_sandbox() {
        true => protection.folders().map(Path::to_owned).collect(),
        false => Vec::new(),
    };
    Ok(unpinned_hook_environment(workspace, protection, active)?.protected(folders))
}

/// Builds the environment of hooks that run their files unpinned: for programs that run no commands, or confine none.
///
/// # Errors
/// If the workspace cannot be resolved.
pub fn unpinned_hook_environment(
    workspace: &Path,
    protection: ProtectionPlan,
    active: ActiveSandbox,
) -> Result<HookEnvironment> {
    let host = HookEnvironment::new(scope(workspace)?);
    Ok(host.sandbox(move |sandbox| protection::hook_sandbox(sandbox, &protection, &active)))
}

fn scope(workspace: &Path) -> Result<Scope> {
    Scope::new(workspace).with_context(|| format!("the workspace `{}`", workspace.display()))
}

/// Returns `true` even for unreadable files, which must be an error.
pub(crate) fn exists(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
