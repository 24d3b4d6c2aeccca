//! The policies of workspaces. One policy serves all sessions in a workspace.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_host::{Error, Home, Notice, Notices, PROJECT_BUNDLE, Policy, Source};
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
    loaded: Mutex<HashMap<PathBuf, Arc<OnceCell<Arc<GuardPolicy>>>>>,
}

impl Policies {
    pub(super) fn new(home: Home, load: LoadConfig) -> Self {
        Self { home, load, loaded: Mutex::default() }
    }

    /// Returns the policy for an agent in this folder. A policy that cannot be loaded is tried again at the next call.
    pub(super) async fn find(&self, folder: &Path) -> Result<Arc<GuardPolicy>, Error> {
        let workspace = workspace_of(folder);
        let cell = {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.entry(workspace.clone()).or_default().clone()
        };
        cell.get_or_try_init(|| self.load(&workspace)).await.cloned()
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
        loaded.values().filter_map(|cell| cell.get().cloned()).collect()
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
