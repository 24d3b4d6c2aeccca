//! The bundle of a project, and the trust in it.

use std::path::{Path, PathBuf};

use amplifier_modules::bundle::{LoadedBundle, load_pinned};
use amplifier_modules::trust::{BundlePins, TrustStatus, TrustStore};

use crate::bundles::exists;
use crate::error::{Result, reasons};

/// The path of the bundle in a project.
pub const PROJECT_BUNDLE: &str = ".amplifier/bundle.yaml";

/// Returns the canonical path of the project bundle in a folder, if there is one.
pub fn find_project_bundle_file(folder: &Path) -> Option<PathBuf> {
    Some(folder.canonicalize().ok()?.join(PROJECT_BUNDLE)).filter(|file| exists(file))
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

impl ProjectBundle {
    /// Reads the bundle of a project. Nothing in it runs.
    pub fn find(file: PathBuf, store: &TrustStore) -> Self {
        let state = Self::check_trust(&file, store).unwrap_or_else(|problem| ProjectTrust::Unusable(reasons(&problem)));
        Self { file, state }
    }

    fn check_trust(file: &Path, store: &TrustStore) -> Result<ProjectTrust> {
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
