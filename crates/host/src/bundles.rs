//! The bundles of a session, and the trust in the bundle of a project.

use std::path::{Path, PathBuf};

use amplifier_core::HookRegistry;
use amplifier_modules::bundle::{
    BundleError, BundleScope, BundleStack, LoadedBundle, RELOAD_HOOK, RELOAD_TIMEOUT, load, load_pinned, reload_events,
};
use amplifier_modules::trust::{BundlePins, TrustStatus, TrustStore};
use amplifier_modules::{COUNTER, HookEnvironment, Scope, WAITER};
use amplifier_process::sandbox::Sandbox;

use crate::config::Config;
use crate::error::{ErrorContext, Result, reasons};
use crate::guards::{CONFIRM, PROTECT};
use crate::home::Home;
use crate::mode::{ACCEPT_EDITS, PLAN};
use crate::protection::{self, ActiveSandbox, ProtectionPlan};

/// The path of the bundle in a project.
pub const PROJECT_BUNDLE: &str = ".amplifier/bundle.yaml";
/// Names of built-in hooks, which hooks of a bundle cannot take.
const RESERVED_HOOKS: [&str; 8] = [CONFIRM, PROTECT, PLAN, ACCEPT_EDITS, RELOAD_HOOK, COUNTER, WAITER, "json"];

/// A stack with one bundle. A hook with the name of a built-in one is renamed, so that no approval rule applies to the wrong hook.
pub fn single_bundle_stack(bundle: LoadedBundle) -> BundleStack {
    BundleStack::new([(BundleScope::Explicit, bundle)], &RESERVED_HOOKS)
}

/// The bundles of a session.
#[derive(Debug, Default)]
pub struct Bundles {
    user: Option<LoadedBundle>,
    named: Option<LoadedBundle>,
    /// The bundle of the project.
    pub project: Option<ProjectBundle>,
}

/// The bundle of a project.
#[derive(Debug)]
pub struct ProjectBundle {
    /// The file.
    pub file: PathBuf,
    /// The trust state.
    pub state: ProjectTrust,
}

/// Trust state of a project's bundle.
#[derive(Debug)]
pub enum ProjectTrust {
    /// The user trusts this version.
    Trusted(LoadedBundle, BundlePins),
    /// The user does not trust this version.
    Untrusted(LoadedBundle, BundlePins, TrustStatus),
    /// The bundle cannot be trusted, for this reason.
    Unusable(String),
}

impl Bundles {
    /// Finds the bundles of the user, of the project and of the configuration. A file with several roles is used once; a configured file needs no
    /// trust.
    ///
    /// # Errors
    /// If a bundle of the user is invalid or unreadable.
    pub fn find(config: &Config, home: &Home) -> Result<Self, BundleError> {
        let user = Some(home.user_bundle()).filter(|file| exists(file));
        let named = config.bundle.clone().filter(|named| user.as_deref().is_none_or(|user| !is_same_file(user, named)));
        let own = [user.as_deref(), named.as_deref()];
        let project = find_project_bundle_file(&config.workspace)
            .filter(|project| !own.iter().flatten().any(|own| is_same_file(own, project)))
            .map(|file| ProjectBundle::find(file, &home.trust_store()));
        let load = |file: Option<PathBuf>| file.as_deref().map(load).transpose();
        Ok(Self { user: load(user)?, named: load(named)?, project })
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
            ProjectTrust::Trusted(bundle, _) => Some(bundle),
            ProjectTrust::Untrusted(..) | ProjectTrust::Unusable(_) => None,
        });
        let all = [
            (BundleScope::User, self.user.as_ref()),
            (BundleScope::Project, project),
            (BundleScope::Explicit, self.named.as_ref()),
        ];
        BundleStack::new(all.into_iter().filter_map(|(level, bundle)| Some((level, bundle?.clone()))), &RESERVED_HOOKS)
    }
}

impl ProjectBundle {
    /// Reads the bundle of a project. Nothing in it runs.
    pub fn find(file: PathBuf, store: &TrustStore) -> Self {
        let state = Self::state(&file, store).unwrap_or_else(|problem| ProjectTrust::Unusable(reasons(&problem)));
        Self { file, state }
    }

    fn state(file: &Path, store: &TrustStore) -> Result<ProjectTrust> {
        let mut bundle = load_pinned(file)?;
        let pinned = bundle.pin()?;
        Ok(match store.status(&pinned)? {
            TrustStatus::Trusted => ProjectTrust::Trusted(bundle, pinned),
            verdict => ProjectTrust::Untrusted(bundle, pinned, verdict),
        })
    }

    /// Returns a warning if the bundle is not used.
    pub fn warning(&self) -> Option<String> {
        let file = self.file.display();
        Some(format!("none of the hooks of this project run, because its bundle `{file}` {}", self.reason()?))
    }

    /// Returns the reason if the bundle is not used, for messages that name the file.
    pub(crate) fn problem(&self) -> Option<String> {
        Some(format!("it {}", self.reason()?))
    }

    fn reason(&self) -> Option<String> {
        let why = match &self.state {
            ProjectTrust::Trusted(..) => return None,
            ProjectTrust::Unusable(why) => return Some(format!("cannot be trusted: {why}")),
            ProjectTrust::Untrusted(_, _, TrustStatus::Changed(changes)) => {
                let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
                format!("is not the version that you trusted: {}", changes.join(", "))
            }
            ProjectTrust::Untrusted(..) => "is not trusted".to_owned(),
        };
        Some(format!("{why}; to review and trust the bundle: amplifier hooks trust"))
    }

    /// Returns the trust state in a few words.
    pub fn trust_label(&self) -> &'static str {
        match &self.state {
            ProjectTrust::Trusted(..) => "trusted",
            ProjectTrust::Untrusted(_, _, TrustStatus::Changed(_)) => "changed since it was trusted",
            ProjectTrust::Untrusted(..) => "not trusted",
            ProjectTrust::Unusable(_) => "cannot be trusted",
        }
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
    let host = HookEnvironment::new(scope(&config.workspace)?).sandbox(|_| Ok(Sandbox::default()));
    levels.register(hooks, &host)?;
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
        Err(_) => Ok(HookEnvironment::new(scope(&config.workspace)?).sandbox(|_| Ok(Sandbox::default()))),
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
    hook_environment(&config.workspace, protection, sandbox)
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

/// Returns the canonical path of the project bundle in a folder, if there is one.
pub fn find_project_bundle_file(folder: &Path) -> Option<PathBuf> {
    Some(folder.canonicalize().ok()?.join(PROJECT_BUNDLE)).filter(|file| exists(file))
}

/// Returns `true` even for unreadable files, which must be an error.
fn exists(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
