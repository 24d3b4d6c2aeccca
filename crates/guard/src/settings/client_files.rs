//! The settings files of clients.

use std::path::{Path, PathBuf};

use crate::client::Client;

amplifier_core::words! {
    /// The reach of an installation.
    pub enum Scope ("scope") {
        /// All projects of the user.
        User = "user",
        /// One project. A change of the project can remove the guard.
        Project = "project",
        /// All users. Only this level cannot be switched off by a project.
        System = "system",
    }
}

/// The variables that move the settings of clients.
pub const FOLDER_VARIABLES: [&str; 4] = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"];

/// The folders in which clients look for settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFolders {
    home: PathBuf,
    project: PathBuf,
    claude: PathBuf,
    codex: PathBuf,
    copilot: PathBuf,
    opencode: PathBuf,
}

impl ClientFolders {
    /// The usual folders of a user, and those of a project.
    pub fn new(home: impl Into<PathBuf>, project: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self {
            claude: home.join(".claude"),
            codex: home.join(".codex"),
            copilot: home.join(".copilot"),
            opencode: home.join(".config/opencode"),
            project: project.into(),
            home,
        }
    }

    /// Moves the folders for which a variable has an absolute path.
    #[must_use]
    pub fn with_variables(mut self, variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let folders = [&mut self.claude, &mut self.codex, &mut self.copilot, &mut self.opencode];
        for (folder, name) in folders.into_iter().zip(FOLDER_VARIABLES) {
            if let Some(path) = variable(name).filter(|path| path.is_absolute()) {
                *folder = if name == "XDG_CONFIG_HOME" { path.join("opencode") } else { path };
            }
        }
        self
    }

    /// Returns the folder of the project.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Returns the folder that a client creates for its user.
    pub fn of_user(&self, client: Client) -> PathBuf {
        match client {
            Client::Claude => self.claude.clone(),
            Client::Codex => self.codex.clone(),
            Client::Gemini => self.home.join(".gemini"),
            Client::Copilot => self.copilot.clone(),
            Client::Opencode => self.opencode.clone(),
            Client::Cursor => self.home.join(".cursor"),
        }
    }
}

/// Returns the file in which the hooks of a client are installed; none if the client has no such level.
pub fn settings_file(client: Client, scope: Scope, folders: &ClientFolders) -> Option<PathBuf> {
    let user = || folders.of_user(client);
    let project = |file: &str| folders.project.join(file);
    Some(match (client, scope) {
        (Client::Claude, Scope::User) => user().join("settings.json"),
        (Client::Claude, Scope::Project) => project(".claude/settings.json"),
        (Client::Claude, Scope::System) => PathBuf::from("/etc/claude-code/managed-settings.d/amplifier-guard.json"),
        (Client::Codex, Scope::User) => user().join("hooks.json"),
        (Client::Codex, Scope::Project) => project(".codex/hooks.json"),
        (Client::Codex, Scope::System) => PathBuf::from("/etc/codex/requirements.toml"),
        (Client::Gemini, Scope::User) => user().join("settings.json"),
        (Client::Gemini, Scope::Project) => project(".gemini/settings.json"),
        (Client::Gemini, Scope::System) => PathBuf::from("/etc/gemini-cli/settings.json"),
        (Client::Copilot, Scope::User) => user().join("hooks/amplifier-guard.json"),
        (Client::Copilot, Scope::Project) => project(".github/hooks/amplifier-guard.json"),
        (Client::Copilot, Scope::System) => PathBuf::from("/etc/github-copilot/policy.d/amplifier-guard.json"),
        (Client::Opencode, Scope::User) => user().join("plugin/amplifier-guard.js"),
        (Client::Opencode, Scope::Project) => project(".opencode/plugin/amplifier-guard.js"),
        (Client::Opencode, Scope::System) => return None,
        (Client::Cursor, Scope::User) => user().join("hooks.json"),
        (Client::Cursor, Scope::Project) => project(".cursor/hooks.json"),
        (Client::Cursor, Scope::System) => PathBuf::from("/etc/cursor/hooks.json"),
    })
}
