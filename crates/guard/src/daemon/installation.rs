//! The installation of the guard in the settings of a client, checked again at each call.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use amplifier_host::Environment;
use amplifier_process::files::FileStatus;
use serde::{Deserialize, Serialize};

use super::protect::settings_of;
use crate::client::Client;
use crate::settings::{self, ClientFolders, Scope};

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
    fn read(client: Client, environment: &Environment, folders: Vec<PathBuf>) -> Self {
        let places = client_folders(environment, &folders);
        let files = installation_files(client, &places);
        let switches = places.iter().flat_map(|places| settings::find_switches(client, places));
        Self {
            installed: files.filter(|(scope, file)| is_installed(client, *scope, file)).map(|(_, file)| file).collect(),
            switches: switches.map(|switch| format!("{} in `{}`", switch.setting, switch.file.display())).collect(),
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

/// Returns the places of settings for an agent in each of these folders.
fn client_folders(environment: &Environment, folders: &[PathBuf]) -> Vec<ClientFolders> {
    // Without a home folder, only the settings of the project are checked.
    let home = environment.home().unwrap_or(Path::new("/"));
    let variable = |name: &str| environment.variable(name).map(PathBuf::from);
    folders.iter().map(|folder| ClientFolders::new(home, folder).with_variables(variable)).collect()
}

/// Returns the files in which the guard can be installed.
fn installation_files(client: Client, places: &[ClientFolders]) -> impl Iterator<Item = (Scope, PathBuf)> {
    let scopes = places.iter().flat_map(|places| Scope::ALL.map(|scope| (scope, places)));
    scopes.filter_map(move |(scope, places)| Some((scope, settings::settings_file(client, scope, places)?)))
}

/// Returns `true` if a file has the hook before tools, for all of them, and the client trusts it.
fn is_installed(client: Client, scope: Scope, file: &Path) -> bool {
    let read = |file: &Path| fs::read_to_string(file).unwrap_or_default();
    let Ok(hooks) = settings::installed(client, scope, &read(file)) else { return false };
    let decides =
        |hook: &settings::InstalledHook| hook.event == settings::tool_event(client) && hook.problems.is_empty();
    let is_trusted = || settings::is_trusted_by_codex(&read(&settings::codex_config_file(file)), file, &hooks);
    // Files of the system need no trust.
    hooks.iter().any(decides) && (client != Client::Codex || scope == Scope::System || is_trusted())
}

/// The check of an installation during a session. It reads the files again only if one of them has changed.
#[derive(Debug)]
pub(super) struct InstallationCheck {
    client: Client,
    environment: Environment,
    start: Installation,
    /// The files that can contain the guard or disable it.
    files: BTreeSet<PathBuf>,
    /// The status of each file at the last check; none before the first.
    checked: Option<Vec<Option<FileStatus>>>,
    problem: Option<String>,
}

impl InstallationCheck {
    /// Begins to check. Without the installation at the start of the session, the present one counts.
    pub(super) fn new(
        client: Client,
        environment: &Environment,
        folders: Vec<PathBuf>,
        start: Option<Installation>,
    ) -> Self {
        let start = start.unwrap_or_else(|| Installation::read(client, environment, folders));
        let places = client_folders(environment, &start.folders);
        let installed = installation_files(client, &places).map(|(_, file)| file);
        let files = settings_of(client, environment, &start.folders).chain(installed).collect();
        Self { client, environment: environment.clone(), start, files, checked: None, problem: None }
    }

    /// Takes the present installation as that of the start.
    pub(super) fn restart(&mut self, folders: Vec<PathBuf>) {
        *self = Self::new(self.client, &self.environment, folders, None);
    }

    /// Returns the installation at the start of the session.
    pub(super) fn start(&self) -> &Installation {
        &self.start
    }

    /// Returns the reason why the guard no longer decides about the client, and `true` if the reason is new.
    pub(super) fn problem(&mut self) -> Option<(String, bool)> {
        let now = Some(self.files.iter().map(|file| FileStatus::from_path(file).ok()).collect());
        let mut is_new = false;
        if now != self.checked {
            let before = self.problem.take();
            let folders = self.start.folders.clone();
            self.problem = Installation::read(self.client, &self.environment, folders).problem(&self.start);
            self.checked = now;
            is_new = self.problem != before;
        }
        self.problem.clone().map(|problem| (problem, is_new))
    }
}
