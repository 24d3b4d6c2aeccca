//! Settings that disable the hooks of a client, also in files of a repository.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::Client;

/// Returns a description of each setting that disables the guard for a client.
pub fn find(client: Client, home: &Path, project: &Path) -> Vec<String> {
    let mut found = Vec::new();
    match client {
        Client::Claude => {
            let files = [".claude/settings.json", ".claude/settings.local.json"];
            let files = files.iter().flat_map(|file| [home.join(file), project.join(file)]);
            disabled(files, &mut found);
        }
        Client::Copilot => {
            let files = ["settings.json", "settings.local.json"];
            let in_project = files
                .iter()
                .flat_map(|file| [project.join(".github/copilot").join(file), project.join(".claude").join(file)]);
            disabled(in_project.chain([home.join(".copilot/settings.json")]), &mut found);
        }
        Client::Codex => {
            for file in [home.join(".codex/config.toml"), project.join(".codex/config.toml")] {
                let config = fs::read_to_string(&file).ok().and_then(|text| text.parse::<toml::Table>().ok());
                let hooks = config.as_ref().and_then(|config| config.get("features")?.get("hooks")?.as_bool());
                if hooks == Some(false) {
                    found.push(format!("`features.hooks` is false in `{}`", file.display()));
                }
            }
        }
        Client::Gemini => {
            for file in [home.join(".gemini/settings.json"), project.join(".gemini/settings.json")] {
                let Some(settings) = read(&file) else { continue };
                if settings.pointer("/hooksConfig/enabled") == Some(&Value::Bool(false)) {
                    found.push(format!("`hooksConfig.enabled` is false in `{}`", file.display()));
                }
                let disabled = settings.pointer("/hooksConfig/disabled").and_then(Value::as_array);
                if disabled.is_some_and(|names| !names.is_empty()) {
                    found.push(format!("`hooksConfig.disabled` names hooks in `{}`", file.display()));
                }
            }
        }
        Client::Opencode | Client::Cursor => {}
    }
    found.sort();
    found.dedup();
    found
}

fn disabled(files: impl Iterator<Item = PathBuf>, found: &mut Vec<String>) {
    for file in files {
        let Some(settings) = read(&file) else { continue };
        if settings.get("disableAllHooks").is_some_and(|value| *value != Value::Bool(false)) {
            found.push(format!("`disableAllHooks` is set in `{}`", file.display()));
        }
    }
}

fn read(file: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}
