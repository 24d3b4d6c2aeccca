//! Settings that disable the hooks of a client, also in files of a repository.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::client_files::ClientFolders;
use super::json_document::Syntax;
use crate::client::Client;

/// The start of the names of our hooks.
pub const OWN_NAMES: &str = "hook-";

const OUR_NAME: &str = "`hooksConfig.disabled` names our hooks";

/// A setting that disables the hooks of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The setting with its value.
    pub setting: String,
    /// The file.
    pub file: PathBuf,
    /// `true` if hooks of the system run all the same.
    pub spares_system: bool,
}

/// Returns the settings that disable the hooks of users for a client.
pub fn find(client: Client, folders: &ClientFolders) -> Vec<Switch> {
    let (user, project) = (folders.of_user(client), folders.project());
    let files: Vec<PathBuf> = match client {
        Client::Claude => {
            let names = ["settings.json", "settings.local.json"];
            names.iter().flat_map(|name| [user.join(name), project.join(".claude").join(name)]).collect()
        }
        Client::Copilot => {
            let names = ["settings.json", "settings.local.json"];
            let in_project = names
                .iter()
                .flat_map(|name| [".github/copilot", ".claude"].map(|folder| project.join(folder).join(name)));
            in_project.chain([user.join("settings.json")]).collect()
        }
        Client::Codex => vec![user.join("config.toml"), project.join(".codex/config.toml")],
        Client::Gemini => vec![user.join("settings.json"), project.join(".gemini/settings.json")],
        Client::Opencode | Client::Cursor => Vec::new(),
    };
    let mut found: Vec<Switch> = Vec::new();
    for file in files {
        let settings = switches_in(client, &file).into_iter();
        let switches = settings.map(|setting| {
            let spares_system = setting != OUR_NAME;
            Switch { setting, file: file.clone(), spares_system }
        });
        // The project can be the home folder.
        switches.for_each(|switch| found.extend((!found.contains(&switch)).then_some(switch)));
    }
    found
}

fn switches_in(client: Client, file: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    if client == Client::Codex {
        let config = text.parse::<toml::Table>().ok();
        let is_off = config.and_then(|config| config.get("features")?.get("hooks")?.as_bool()) == Some(false);
        return is_off.then(|| "`features.hooks` is false".to_owned()).into_iter().collect();
    }
    let Ok(settings) = Syntax::WithComments.parse(&text) else {
        // Copilot runs no hooks of a user if a file is not JSON; the others report it, or ignore the file.
        let is_off = client == Client::Copilot && !text.trim().is_empty();
        return is_off.then(|| "it is not JSON".to_owned()).into_iter().collect();
    };
    let mut found = Vec::new();
    if client == Client::Gemini {
        if settings.pointer("/hooksConfig/enabled") == Some(&Value::Bool(false)) {
            found.push("`hooksConfig.enabled` is false".to_owned());
        }
        let names = settings.pointer("/hooksConfig/disabled").and_then(Value::as_array);
        let is_ours = |name: &Value| name.as_str().is_some_and(|name| name.starts_with(OWN_NAMES));
        if names.is_some_and(|names| names.iter().any(is_ours)) {
            found.push(OUR_NAME.to_owned());
        }
    } else if settings.get("disableAllHooks").is_some_and(|value| *value != Value::Bool(false)) {
        found.push("`disableAllHooks` is set".to_owned());
    }
    found
}
