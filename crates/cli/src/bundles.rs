//! The bundles of a session: which there are, and whether the project's may be used.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use amplifier_audit::Log;
use amplifier_core::{EXECUTION_START, HookRegistry, PROVIDER_REQUEST};
use amplifier_modules::bundle::{
    BundleError, BundleLevel, FOLLOWER, FOLLOWER_TIMEOUT, Following, Levels, Live, Loaded, Looked, load, load_pinned,
};
use amplifier_modules::trust::{Pinned, TrustStore, Verdict};
use amplifier_modules::{COUNTER, Host, Scope, WAITER};
use amplifier_process::sandbox::Sandbox;
use amplifier_server::wire::{Reload, Reloaded};
use anyhow::{Context, Result};
use serde_json::json;

use crate::config::Config;
use crate::confine::{self, ActiveSandbox, Protection};
use crate::guards::{CONFIRM, PROTECT};
use crate::home::Home;

/// Where a project has its bundle.
pub const PROJECT_BUNDLE: &str = ".amplifier/bundle.yaml";
/// Hooks that are there without a bundle: none of a bundle can pass for them.
const TAKEN: [&str; 6] = [CONFIRM, PROTECT, FOLLOWER, COUNTER, WAITER, "json"];

/// The bundles that there are.
#[derive(Debug, Default)]
pub struct Bundles {
    user: Option<Loaded>,
    named: Option<Loaded>,
    /// That of the project, if it has one.
    pub project: Option<Project>,
}

/// The bundle of a project.
#[derive(Debug)]
pub struct Project {
    /// The file.
    pub file: PathBuf,
    /// Whether it may be used.
    pub state: State,
}

/// Whether the bundle of a project may be used.
#[derive(Debug)]
pub enum State {
    /// The person has trusted it as it is.
    Trusted(Loaded, Pinned),
    /// The person has not trusted it, or not as it is.
    Untrusted(Loaded, Pinned, Verdict),
    /// It cannot be trusted: this is why.
    Unusable(String),
}

impl Bundles {
    /// Finds the bundles of a session: that of the user, that of the project, and the one that is configured. A file that is several of these
    /// counts once: named, it needs no trust.
    ///
    /// # Errors
    /// If a bundle of the person cannot be read, or there is a mistake in it.
    pub fn find(config: &Config, home: &Home) -> Result<Self, BundleError> {
        let user = Some(home.user_bundle()).filter(|file| is_there(file));
        let named = config.bundle.clone().filter(|named| user.as_deref().is_none_or(|user| !are_same(user, named)));
        let own = [user.as_deref(), named.as_deref()];
        let project = project_bundle(&config.workspace)
            .filter(|project| !own.iter().flatten().any(|own| are_same(own, project)))
            .map(|file| Project::find(file, &home.trust_store()));
        let load = |file: Option<PathBuf>| file.as_deref().map(load).transpose();
        Ok(Self { user: load(user)?, named: load(named)?, project })
    }

    /// Those that may be used, as one.
    pub fn levels(&self) -> Levels {
        let project = self.project.as_ref().and_then(|project| match &project.state {
            State::Trusted(bundle, _) => Some(bundle),
            State::Untrusted(..) | State::Unusable(_) => None,
        });
        let all = [
            (BundleLevel::User, self.user.as_ref()),
            (BundleLevel::Project, project),
            (BundleLevel::Named, self.named.as_ref()),
        ];
        Levels::new(all.into_iter().filter_map(|(level, bundle)| Some((level, bundle?.clone()))), &TAKEN)
    }
}

impl Bundles {
    /// Registers the hooks of those that may be used, and picks up changes while the session runs. A change of the project's bundle counts
    /// when the person has trusted it.
    ///
    /// # Errors
    /// If a hook cannot be made.
    pub fn follow(
        &self,
        config: &Config,
        home: &Home,
        hooks: &HookRegistry,
        host: Host,
        log: &Log,
        protection: &Protection,
    ) -> Result<Followed> {
        let used = self.project.as_ref().and_then(|project| match &project.state {
            State::Trusted(bundle, pinned) => Some((project.file.clone(), bundle.clone(), pinned.clone())),
            State::Untrusted(..) | State::Unusable(_) => None,
        });
        let (user_bundle, has_user) = (home.user_bundle(), AtomicBool::new(self.user.is_some()));
        let (place, protection) = ((config.clone(), home.clone()), protection.clone());
        let (config, home) = place.clone();
        let load = move || {
            let mut bundles = Self::find(&config, &home)?;
            // Some editors put a file aside before they write it: for that moment, the guards in it must not be gone.
            let gone = |file: &Path| BundleError::whole(file, "it is gone; to do without it, start a new session");
            if has_user.load(Ordering::Relaxed) && bundles.user.is_none() {
                return Err(gone(&home.user_bundle()));
            }
            // What the person has changed counts, whatever became of the project's.
            let mut withheld = None;
            if let Some((file, bundle, pinned)) = &used {
                withheld = match &bundles.project {
                    Some(Project { state: State::Trusted(..), .. }) => None,
                    Some(project) => Some(BundleError::whole(file, project.why_not().unwrap_or_default())),
                    None => Some(gone(file)),
                };
                if withheld.is_some() {
                    let state = State::Trusted(bundle.clone(), pinned.clone());
                    bundles.project = Some(Project { file: file.clone(), state });
                }
            }
            let levels = bundles.levels().withholding(withheld);
            protection.check(&levels)?;
            has_user.store(bundles.user.is_some(), Ordering::Relaxed);
            Ok(levels)
        };
        let log = log.clone();
        let live = Live::start(&self.levels(), hooks, host, load)?.expecting(user_bundle);
        let following = live.follow(move |levels| {
            let files: Vec<_> = levels.bundles().flat_map(|(_, bundle)| &bundle.files).collect();
            // The hooks say to the person what has changed; that the record lacks it is told by the log's own failure.
            _ = log.policy_change(&json!({ "bundles": files }));
        });
        let (config, home) = place;
        Ok(Followed { following, config, home })
    }
}

/// The bundles of a session that runs.
#[derive(Clone, Debug)]
pub struct Followed {
    following: Following,
    config: Config,
    home: Home,
}

impl Followed {
    /// Looks at them now: what the person at the session should know, and what is told to whoever wanted the look. It blocks for as long as
    /// small files take.
    pub fn look(&self) -> (Option<String>, Reloaded) {
        let looked = self.following.look();
        let news = looked.news().map(|(_, text)| text);
        let project = Bundles::find(&self.config, &self.home).ok().and_then(|bundles| bundles.project);
        let unused = project.filter(|project| !matches!(project.state, State::Trusted(..)));
        let not_used = |project: &Project| match project.state {
            State::Untrusted(..) => Reload::NotTrusted,
            State::Trusted(..) | State::Unusable(_) => Reload::Refused,
        };
        let (result, message) = match (looked, unused) {
            (Looked::Changed(levels), _) => (Reload::Changed, levels.withheld().map(ToString::to_string)),
            (Looked::Refused(error), Some(project)) => (not_used(&project), Some(error.to_string())),
            (Looked::Refused(error), None) => (Reload::Refused, Some(error.to_string())),
            (Looked::Unchanged, Some(project)) => (not_used(&project), project.warning()),
            (Looked::Unchanged, None) => (Reload::Unchanged, None),
        };
        (news, Reloaded { result, message })
    }
}

impl Project {
    /// Looks at the bundle of a project. Nothing of it runs.
    pub fn find(file: PathBuf, store: &TrustStore) -> Self {
        let state = Self::state(&file, store).unwrap_or_else(|problem| State::Unusable(format!("{problem:#}")));
        Self { file, state }
    }

    fn state(file: &Path, store: &TrustStore) -> Result<State> {
        let mut bundle = load_pinned(file)?;
        let pinned = bundle.pin()?;
        Ok(match store.verdict(&pinned)? {
            Verdict::Trusted => State::Trusted(bundle, pinned),
            verdict => State::Untrusted(bundle, pinned, verdict),
        })
    }

    /// What the person is told if it is not used; nothing if it is.
    pub fn warning(&self) -> Option<String> {
        let file = self.file.display();
        Some(format!("none of the hooks of this project run, because its bundle `{file}` {}", self.reason()?))
    }

    /// Why it cannot be used, where its file is named already; nothing if it can.
    fn why_not(&self) -> Option<String> {
        Some(format!("it {}", self.reason()?))
    }

    fn reason(&self) -> Option<String> {
        let why = match &self.state {
            State::Trusted(..) => return None,
            State::Unusable(why) => return Some(format!("cannot be trusted: {why}")),
            State::Untrusted(_, _, Verdict::Changed(changes)) => {
                let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
                format!("is not what you have trusted: {}", changes.join(", "))
            }
            State::Untrusted(..) => "is not trusted".to_owned(),
        };
        Some(format!("{why}; to look at it and trust it: amplifier hooks trust"))
    }

    /// Whether it is trusted, in a word or two.
    pub fn trust(&self) -> &'static str {
        match &self.state {
            State::Trusted(..) => "trusted",
            State::Untrusted(_, _, Verdict::Changed(_)) => "changed since it was trusted",
            State::Untrusted(..) => "not trusted",
            State::Unusable(_) => "cannot be trusted",
        }
    }
}

/// Registers the hooks of all levels, and gives what they find around them.
///
/// # Errors
/// If there is a mistake in one of the bundles.
pub fn register(levels: &Levels, config: &Config, home: &Home, hooks: &HookRegistry) -> Result<Host> {
    let host = host_of(config, home, levels.bundles().map(|(_, bundle)| bundle))?;
    levels.register(hooks, &host)?;
    Ok(host)
}

/// Registers the hooks of all levels to be listed. They must hear no event, since their programs would run without a sandbox: finding one takes longer than all the
/// rest.
///
/// # Errors
/// If there is a mistake in one of the bundles.
pub fn register_for_listing(levels: &Levels, config: &Config, hooks: &HookRegistry) -> Result<()> {
    let host = Host::new(scope(&config.workspace)?).sandbox(|_| Ok(Sandbox::default()));
    levels.register(hooks, &host)?;
    Ok(())
}

/// Registers the hooks of one bundle alone.
///
/// # Errors
/// If there is a mistake in it.
pub fn register_alone(bundle: &Loaded, config: &Config, home: &Home, hooks: &HookRegistry) -> Result<Host> {
    let host = host_of(config, home, [bundle])?;
    bundle.register(hooks, &host)?;
    Ok(host)
}

/// Names the hooks that follow bundles, for whoever lists hooks: they are part of every session, and do nothing outside of one.
pub fn name_follower(hooks: &HookRegistry) {
    hooks.hook(EXECUTION_START).named(FOLLOWER).observer().timeout(FOLLOWER_TIMEOUT).run(|_| {});
    hooks.hook(PROVIDER_REQUEST).named(FOLLOWER).observer().timeout(FOLLOWER_TIMEOUT).run(|_| {});
}

/// What hooks of bundles find around them outside of a session.
///
/// # Errors
/// If the workspace cannot be resolved.
fn host_of<'a>(config: &Config, home: &Home, bundles: impl IntoIterator<Item = &'a Loaded>) -> Result<Host> {
    let workspace = config.workspace.canonicalize();
    let workspace = workspace.with_context(|| format!("the workspace `{}`", config.workspace.display()))?;
    let protection = Protection::current(config, home, &workspace, bundles)?;
    let sandbox = ActiveSandbox::find(config, &protection);
    host(&config.workspace, protection, sandbox)
}

/// What hooks of bundles find around them. Their programs run in the sandbox of the agent's commands.
///
/// # Errors
/// If the workspace cannot be resolved.
pub fn host(workspace: &Path, protection: Protection, active: ActiveSandbox) -> Result<Host> {
    let scope = scope(workspace)?;
    // Without a sandbox, nothing is protected from commands, and the session says so.
    let folders: Vec<PathBuf> = match active.level.is_sandbox() {
        true => protection.folders().map(Path::to_owned).collect(),
        false => Vec::new(),
    };
    let host = Host::new(scope).protected(folders);
    Ok(host.sandbox(move |sandbox| confine::for_hook(sandbox, &protection, &active)))
}

fn scope(workspace: &Path) -> Result<Scope> {
    Scope::new(workspace).with_context(|| format!("the workspace `{}`", workspace.display()))
}

/// The bundle of the project in a folder, by a name that does not depend on how the folder is spelt; none if there is none.
pub fn project_bundle(folder: &Path) -> Option<PathBuf> {
    Some(folder.canonicalize().ok()?.join(PROJECT_BUNDLE)).filter(|file| is_there(file))
}

/// Also what cannot be read is there: it is an error, and not nothing.
fn is_there(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

fn are_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
