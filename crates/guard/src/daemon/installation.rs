//! The installation of the guard in the settings of a client, checked again at each call.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use amplifier_process::files::FileStatus;
use serde::{Deserialize, Serialize};

use super::protect::settings_of;
use crate::client::Client;
use crate::settings::{self, Scope};

/// The settings that call the guard, and those that could disable it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Installation {
    /// The folders in which the client looks for settings of the project.
    folders: Vec<PathBuf>,
    /// The files with the hook before tools.
    installed: BTreeSet<PathBuf>,
    /// Descriptions of settings that disable hooks.
    switches: BTreeSet<String>,
}

impl Installation {
    /// Reads the installation for an agent in these folders.
    fn read(client: Client, home: &Path, folders: Vec<PathBuf>) -> Self {
        let files = installation_files(client, home, &folders);
        Self {
            installed: files.filter(|file| is_installed(client, file)).collect(),
            switches: folders.iter().flat_map(|folder| settings::find_switches(client, home, folder)).collect(),
            folders,
        }
    }

    /// Returns the reason why the guard no longer decides about the client, compared with the start of the session.
    fn problem(&self, start: &Self) -> Option<String> {
        if let Some(switch) = self.switches.difference(&start.switches).next() {
            return Some(format!("the guard was switched off during the session: {switch}; remove the setting"));
        }
        let file = start.installed.iter().next().filter(|_| self.installed.is_empty())?;
        Some(format!(
            "the guard was removed from `{}` during the session; run `amplifier guard install`",
            file.display()
        ))
    }
}

/// Returns the files in which the guard can be installed.
fn installation_files(client: Client, home: &Path, folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let scopes = folders.iter().flat_map(|folder| Scope::ALL.map(|scope| (scope, folder)));
    scopes.filter_map(move |(scope, folder)| settings::settings_file(client, scope, home, folder))
}

/// Returns `true` if a file has the hook before tools, for all of them, and the client trusts it.
fn is_installed(client: Client, file: &Path) -> bool {
    let read = |file: &Path| fs::read_to_string(file).unwrap_or_default();
    let Ok(hooks) = settings::installed(&read(file)) else { return false };
    let is_complete = |hook: &settings::InstalledHook| {
        Some(hook.event.as_str()) == settings::tool_event(client)
            && hook.matcher.as_deref().is_none_or(|all| all == "*")
    };
    let is_trusted = || {
        let config = read(&settings::codex_config_file(file));
        // Files of the system need no trust.
        file.starts_with("/etc") || settings::codex_trust(&config, file, &hooks).is_ok_and(|trusted| trusted == config)
    };
    hooks.iter().any(is_complete) && (client != Client::Codex || is_trusted())
}

/// The check of an installation during a session. It reads the files again only if one of them has changed.
#[derive(Debug)]
pub(super) struct InstallationCheck {
    client: Client,
    home: PathBuf,
    start: Installation,
    files: Vec<(PathBuf, Option<FileStatus>)>,
    problem: Option<String>,
}

impl InstallationCheck {
    /// Begins to check. Without the installation at the start of the session, the present one counts.
    pub(super) fn new(client: Client, home: &Path, folders: Vec<PathBuf>, start: Option<Installation>) -> Self {
        let start = start.unwrap_or_else(|| Installation::read(client, home, folders));
        Self { client, home: home.to_owned(), start, files: Vec::new(), problem: None }
    }

    /// Takes the present installation as that of the start.
    pub(super) fn restart(&mut self, folders: Vec<PathBuf>) {
        *self = Self::new(self.client, &self.home, folders, None);
    }

    /// Returns the installation at the start of the session.
    pub(super) fn start(&self) -> &Installation {
        &self.start
    }

    /// Returns the reason why the guard no longer decides about the client, and `true` if the reason is new.
    pub(super) fn problem(&mut self) -> Option<(String, bool)> {
        let folders = &self.start.folders;
        let settings = settings_of(self.client, &self.home, folders);
        let files = settings.chain(installation_files(self.client, &self.home, folders)).map(|file| {
            let status = FileStatus::from_path(&file).ok();
            (file, status)
        });
        let files: Vec<_> = files.collect();
        let mut is_new = false;
        if files != self.files {
            let before = self.problem.take();
            self.problem = Installation::read(self.client, &self.home, folders.clone()).problem(&self.start);
            self.files = files;
            is_new = self.problem != before;
        }
        self.problem.clone().map(|problem| (problem, is_new))
    }
}
