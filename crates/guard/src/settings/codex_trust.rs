//! The trust of Codex in hooks: it runs a hook only if `config.toml` has the hash of its definition at its position.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{InstalledHook, SettingsError};

/// Returns the file with the trust for hooks in this file.
pub fn config_file(hooks: &Path) -> PathBuf {
    hooks.with_file_name("config.toml")
}

/// Returns the configuration with trust in the given hooks of a file, and without outdated trust in them.
///
/// # Errors
/// If the configuration is not TOML.
pub fn trust(config: &str, file: &Path, hooks: &[InstalledHook]) -> Result<String, SettingsError> {
    let mut text = untrust(config, file, hooks)?;
    for hook in hooks {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("{}\ntrusted_hash = \"{}\"\n", header(file, hook), hash(hook)));
    }
    check(&text)?;
    Ok(text)
}

/// Returns `true` if the configuration has the trust in the given hooks of a file.
pub fn is_trusted(config: &str, file: &Path, hooks: &[InstalledHook]) -> bool {
    trust(config, file, hooks).is_ok_and(|trusted| trusted == config)
}

/// Returns the configuration without trust in the given hooks of a file.
///
/// # Errors
/// If the configuration is not TOML.
pub fn untrust(config: &str, file: &Path, hooks: &[InstalledHook]) -> Result<String, SettingsError> {
    check(config)?;
    let headers: Vec<String> = hooks.iter().map(|hook| header(file, hook)).collect();
    let (mut is_ours, mut has_comment) = (false, false);
    // Cuts the header, its keys and blank lines. Comments, and what follows them, are of the user.
    let kept = config.split_inclusive('\n').filter(|line| {
        let line = line.trim();
        if line.starts_with('[') {
            (is_ours, has_comment) = (headers.iter().any(|header| line == header), false);
        }
        has_comment |= line.starts_with('#');
        !is_ours || line.starts_with('#') || (line.is_empty() && has_comment)
    });
    let text: String = kept.collect();
    check(&text)?;
    Ok(text)
}

fn check(text: &str) -> Result<(), SettingsError> {
    toml::from_str::<toml::Table>(text).map(drop).map_err(|error| SettingsError::Toml(error.message().to_owned()))
}

fn header(file: &Path, hook: &InstalledHook) -> String {
    let key = format!("{}:{}:{}:{}", file.display(), snake_case(&hook.event), hook.group, hook.handler);
    format!("[hooks.state.{}]", Value::from(key))
}

/// Returns the hash of a definition, as the client computes it: of compact JSON with sorted keys.
fn hash(hook: &InstalledHook) -> String {
    let handler = json!({ "async": false, "command": hook.command, "timeout": hook.timeout, "type": "command" });
    let mut definition = BTreeMap::from([
        ("event_name", Value::from(snake_case(&hook.event))),
        ("hooks", Value::Array(vec![sorted(&handler)])),
    ]);
    definition.extend(hook.matcher.as_deref().map(|matcher| ("matcher", Value::from(matcher))));
    let text = serde_json::to_string(&definition).unwrap_or_default();
    Sha256::digest(text).iter().fold("sha256:".to_owned(), |hash, byte| format!("{hash}{byte:02x}"))
}

/// Sorts the keys of an object, whose order depends on the features of the JSON library.
fn sorted(value: &Value) -> Value {
    let fields: BTreeMap<_, _> = value.as_object().into_iter().flatten().collect();
    json!(fields)
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
