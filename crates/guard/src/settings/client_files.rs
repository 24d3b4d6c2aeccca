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

/// Returns the file in which the hooks of a client are installed. `home` is the home folder, `project` the folder of the project.
pub fn settings_file(client: Client, scope: Scope, home: &Path, project: &Path) -> Option<PathBuf> {
    Some(match (client, scope) {
        (Client::Claude, Scope::User) => home.join(".claude/settings.json"),
        (Client::Claude, Scope::Project) => project.join(".claude/settings.json"),
        (Client::Claude, Scope::System) => PathBuf::from("/etc/claude-code/managed-settings.d/amplifier-guard.json"),
        (Client::Codex, Scope::User) => home.join(".codex/hooks.json"),
        (Client::Codex, Scope::Project) => project.join(".codex/hooks.json"),
        (Client::Codex, Scope::System) => PathBuf::from("/etc/codex/hooks.json"),
        (Client::Gemini, Scope::User) => home.join(".gemini/settings.json"),
        (Client::Gemini, Scope::Project) => project.join(".gemini/settings.json"),
        (Client::Gemini, Scope::System) => PathBuf::from("/etc/gemini-cli/settings.json"),
        (Client::Copilot, Scope::User) => home.join(".copilot/hooks/amplifier-guard.json"),
        (Client::Copilot, Scope::Project) => project.join(".github/hooks/amplifier-guard.json"),
        (Client::Copilot, Scope::System) => PathBuf::from("/etc/github-copilot/policy.d/amplifier-guard.json"),
        (Client::Opencode | Client::Cursor, _) => return None,
    })
}
