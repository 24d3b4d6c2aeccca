//! The policies of workspaces. One policy serves all sessions in a workspace.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_host::{Error, Home, Notice, Notices, PROJECT_BUNDLE, Policy, Source};
use amplifier_process::files::FileStatus;
use tokio::sync::OnceCell;

use super::{LoadConfig, protect};

/// A loaded policy.
pub(super) struct GuardPolicy {
    pub(super) policy: Policy,
    notices: Arc<Mutex<Vec<String>>>,
}

impl GuardPolicy {
    /// Returns the messages since the last call, for the user.
    pub(super) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The policies in use.
pub(super) struct Policies {
    home: Home,
    load: LoadConfig,
    loaded: Mutex<HashMap<PathBuf, WorkspaceEntry>>,
}

/// The policy for new sessions in a workspace.
struct WorkspaceEntry {
    /// The files that a policy reads only when it is loaded.
    files: Vec<Option<FileStatus>>,
    policy: Arc<OnceCell<Arc<GuardPolicy>>>,
}

impl Policies {
    pub(super) fn new(home: Home, load: LoadConfig) -> Self {
        Self { home, load, loaded: Mutex::default() }
    }

    /// Returns the policy for an agent in this folder. A policy that cannot be loaded is tried again at the next call.
    pub(super) async fn find(&self, folder: &Path) -> Result<Arc<GuardPolicy>, Error> {
        let workspace = workspace_of(folder);
        let cell = {
            let files = self.files(&workspace);
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || WorkspaceEntry { files: files.clone(), policy: Arc::default() };
            let entry = loaded.entry(workspace.clone()).or_insert_with(new);
            if entry.files != files {
                // Sessions that run keep their policy.
                *entry = new();
            }
            entry.policy.clone()
        };
        cell.get_or_try_init(|| self.load(&workspace)).await.cloned()
    }

    /// Returns the state of the configuration, of the trust store, and of the project's bundle. Bundles in use are reloaded by the policy itself.
    fn files(&self, workspace: &Path) -> Vec<Option<FileStatus>> {
        let files = [self.home.config_file(), self.home.trust_file(), workspace.join(PROJECT_BUNDLE)];
        files.iter().map(|file| FileStatus::from_path(file).ok()).collect()
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
        let policy = Policy::builder(&config, &self.home).notices(receive).load().await?;
        // The client asks its user by itself, so `confirm` is off unless somebody chose it.
        let is_chosen =
            |setting: &amplifier_host::Setting| setting.name == "confirm" && setting.source != Source::Default;
        if policy.config().settings.iter().any(is_chosen) {
            policy.confirm_changes();
        }
        protect::register(&policy);
        Ok(Arc::new(GuardPolicy { policy, notices }))
    }

    /// Returns all loaded policies.
    pub(super) fn all(&self) -> Vec<Arc<GuardPolicy>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.values().filter_map(|entry| entry.policy.get().cloned()).collect()
    }
}

/// Returns the workspace of a folder: the next folder above with a bundle, else that of the repository, else the folder itself.
///
/// An agent may work in a folder below its project, where the policy of the project must count, too.
fn workspace_of(folder: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let above = |name: &str| folder.ancestors().find(|folder| folder.join(name).exists()).map(Path::to_owned);
    above(PROJECT_BUNDLE).or_else(|| above(".git")).unwrap_or(folder)
}
