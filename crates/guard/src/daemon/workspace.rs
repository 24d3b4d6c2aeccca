//! The policies of workspaces. One policy serves all sessions in a workspace.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use amplifier_host::{
    Bundles, Error, Home, Notice, Notices, PROJECT_BUNDLE, Policy, ProjectBundle, Source, find_project_bundle_file,
    reasons,
};
use amplifier_process::files::FileStatus;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};

use super::{LoadConfig, protect};

/// A loaded policy.
pub(super) struct GuardPolicy {
    pub(super) policy: Policy,
    notices: Arc<Mutex<Vec<String>>>,
    /// The files of the bundles in use; none before the first check and after an error.
    files: AsyncMutex<Vec<(PathBuf, Option<FileStatus>)>>,
}

impl GuardPolicy {
    /// Reloads changed bundles. The error says why the newest version cannot be used: nothing may be allowed then.
    pub(super) async fn refresh(self: &Arc<Self>) -> Result<(), String> {
        let mut files = self.files.lock().await;
        let is_current = |(file, status): &(PathBuf, _)| FileStatus::from_path(file).ok() == *status;
        if !files.is_empty() && files.iter().all(is_current) {
            return Ok(());
        }
        files.clear();
        let policy = self.clone();
        // Reading blocks on the disk.
        let reload = tokio::task::spawn_blocking(move || policy.reload()).await;
        *files = reload.map_err(|error| format!("the bundles cannot be reloaded: {error}"))??;
        Ok(())
    }

    /// Reads the bundles, and returns their files as they were before.
    fn reload(&self) -> Result<Vec<(PathBuf, Option<FileStatus>)>, String> {
        let (config, home) = (self.policy.config(), self.policy.home());
        let bundles = Bundles::find(config, home);
        let managed = home.managed_bundle().to_owned();
        let fleet = home.fleet_folder().join("policy/pointer");
        let mut files =
            vec![managed, fleet, home.user_bundle(), home.trust_file(), config.workspace.join(PROJECT_BUNDLE)];
        files.extend(config.bundle.clone());
        if let Ok(bundles) = &bundles {
            files.extend(bundles.levels().bundles().flat_map(|(_, bundle)| bundle.files.clone()));
        }
        let files = files.into_iter().map(|file| {
            let status = FileStatus::from_path(&file).ok();
            (file, status)
        });
        let files = files.collect();
        let Some(problem) = self.policy.reload().message else { return Ok(files) };
        // A bundle that was never trusted has no effect, so it denies nothing.
        let trusted = home.trust_store().list().map_err(|error| reasons(&error))?;
        let project = bundles.ok().and_then(|bundles| bundles.project);
        let unknown = project.filter(|project| !trusted.contains_key(&project.file));
        match unknown.and_then(|project| project.warning()) {
            Some(warning) if warning == problem => Ok(files),
            _ => Err(format!("a bundle has changed, and cannot be used: {problem}")),
        }
    }

    /// Returns the messages since the last call, for the user.
    pub(super) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The policies in use.
pub(super) struct Policies {
    home: Home,
    load: LoadConfig,
    /// The programs of the guard, and the folder of the daemon.
    programs: Vec<PathBuf>,
    folder: PathBuf,
    loaded: Mutex<HashMap<PathBuf, WorkspaceEntry>>,
    /// Earlier policies, which sessions may still use.
    replaced: Mutex<Vec<Weak<GuardPolicy>>>,
}

/// The policy for new sessions in a workspace.
struct WorkspaceEntry {
    /// The files that a policy reads only when it is loaded.
    files: Vec<Option<FileStatus>>,
    policy: Arc<OnceCell<Arc<GuardPolicy>>>,
}

impl Policies {
    pub(super) fn new(home: Home, load: LoadConfig, programs: Vec<PathBuf>, folder: PathBuf) -> Self {
        Self { home, load, programs, folder, loaded: Mutex::default(), replaced: Mutex::default() }
    }

    /// Returns the policy for an agent in this folder. A policy that cannot be loaded is tried again at the next call.
    pub(super) async fn find(&self, folder: &Path) -> Result<Arc<GuardPolicy>, String> {
        let workspace = workspace_of(folder, &self.home)?;
        let cell = {
            let files = self.files(&workspace);
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || WorkspaceEntry { files: files.clone(), policy: Arc::default() };
            let entry = loaded.entry(workspace.clone()).or_insert_with(new);
            if entry.files != files {
                // Sessions that run keep their policy.
                let before = std::mem::replace(entry, new());
                let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
                replaced.retain(|policy| policy.strong_count() > 0);
                replaced.extend(before.policy.get().map(Arc::downgrade));
            }
            entry.policy.clone()
        };
        cell.get_or_try_init(|| self.load(&workspace)).await.cloned().map_err(|error| reasons(&error))
    }

    /// Returns the state of the configuration, of the trust store, and of the bundles, which have settings, too.
    fn files(&self, workspace: &Path) -> Vec<Option<FileStatus>> {
        let fleet = self.home.fleet_folder().join("policy/pointer");
        let bundles =
            [fleet, self.home.managed_bundle().to_owned(), self.home.user_bundle(), workspace.join(PROJECT_BUNDLE)];
        let files = [self.home.config_file(), self.home.trust_file()].into_iter().chain(bundles);
        files.map(|file| FileStatus::from_path(&file).ok()).collect()
    }

    async fn load(&self, workspace: &Path) -> Result<Arc<GuardPolicy>, Error> {
        let config = (self.load)(workspace)?;
        let notices: Arc<Mutex<Vec<String>>> = Arc::default();
        let list = notices.clone();
        let receive = Notices::new(move |Notice { text, .. }| {
            tracing::info!(%text, "notice");
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            list.push(text);
        });
        // The first call waits for this, and the tools of the client run outside of our sandbox.
        let policy = Policy::builder(&config, &self.home).notices(receive).sandbox_on_demand().load().await?;
        // The client asks its user by itself, so `confirm` is off unless somebody chose it.
        let is_chosen =
            |setting: &amplifier_host::Setting| setting.name == "confirm" && setting.source != Source::Default;
        if policy.config().settings.iter().any(is_chosen) {
            policy.confirm_changes();
        }
        protect::register(&policy, &self.programs, &self.folder);
        Ok(Arc::new(GuardPolicy { policy, notices, files: AsyncMutex::default() }))
    }

    /// Returns all policies in use.
    pub(super) fn all(&self) -> Vec<Arc<GuardPolicy>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.values().filter_map(|entry| entry.policy.get().cloned());
        loaded.chain(replaced.iter().filter_map(Weak::upgrade)).collect()
    }
}

/// Returns the workspace of a folder: the next folder above with a trusted bundle, else that of the repository, else the folder itself.
///
/// An agent may work in a folder below its project, where the policy of the project must count, too. A bundle that nobody trusts must not hide it.
///
/// # Errors
/// If the next bundle that was trusted has changed or is gone: its rules must not end unnoticed.
fn workspace_of(folder: &Path, home: &Home) -> Result<PathBuf, String> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let store = home.trust_store();
    let trusted = store.list().map_err(|error| reasons(&error))?;
    let known = |folder: &&Path| {
        let file = folder.join(PROJECT_BUNDLE);
        let real = file.parent().and_then(|parent| parent.canonicalize().ok()).unwrap_or_default().join("bundle.yaml");
        trusted.contains_key(&file) || trusted.contains_key(&real)
    };
    if let Some(root) = folder.ancestors().find(known) {
        let problem = match find_project_bundle_file(root) {
            Some(file) => ProjectBundle::find(file, &store).warning(),
            None => Some(format!(
                "the trusted bundle `{}` is gone; restore it, or end the trust: amplifier hooks untrust",
                root.join(PROJECT_BUNDLE).display()
            )),
        };
        return problem.map_or_else(|| Ok(root.to_owned()), Err);
    }
    let repository = folder.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
    Ok(repository.unwrap_or(folder))
}
