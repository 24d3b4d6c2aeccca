//! The plugin of opencode: a JavaScript file that calls the hook program, and throws on everything except a clear answer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::hook_events::{EventHook, hooks_of};
use super::{HookOptions, InstalledHook, SettingsError};
use crate::client::Client;

const TEMPLATE: &str = include_str!("opencode_plugin.js");
/// The line of the template for the hooks.
const PLACE: &str = "const hooks = {};";
const PREFIX: &str = "const hooks = ";
/// The start of the first line, by which the guard finds its own file.
const MARKER: &str = "// amplifier-guard: ";

#[derive(Serialize, Deserialize)]
struct PluginHook {
    line: String,
    /// The time limit in milliseconds.
    limit: u64,
}

/// Returns the plugin.
pub(super) fn install(text: &str, options: &HookOptions<'_>) -> Result<String, SettingsError> {
    if !text.trim().is_empty() && !is_ours(text) {
        return Err(SettingsError::Foreign);
    }
    let mut hooks = BTreeMap::new();
    for event @ EventHook { name, is_gate, .. } in hooks_of(Client::Opencode) {
        let limit = event.limit(options.limit);
        let line = options.program.line(Client::Opencode, name, *is_gate, limit, options.place)?;
        hooks.insert((*name).to_owned(), PluginHook { line, limit: milliseconds(limit) });
    }
    Ok(render(&hooks))
}

/// Returns the empty file in the place of the plugin.
pub(super) fn uninstall(text: &str) -> String {
    if is_ours(text) { String::new() } else { text.to_owned() }
}

/// Returns the hooks of the plugin; none if the file is not ours.
pub(super) fn installed(text: &str) -> Vec<InstalledHook> {
    if !is_ours(text) {
        return Vec::new();
    }
    let hooks = text.lines().find_map(|line| line.strip_prefix(PREFIX)?.strip_suffix(';'));
    let hooks: BTreeMap<String, PluginHook> =
        hooks.and_then(|hooks| serde_json::from_str(hooks).ok()).unwrap_or_default();
    let change = (render(&hooks) != text).then(|| "the plugin differs from that of this version".to_owned());
    let found = hooks.into_iter().enumerate().map(|(number, (event, PluginHook { line, limit }))| InstalledHook {
        event,
        group: 0,
        handler: 0,
        command: line,
        timeout: limit,
        matcher: None,
        problems: change.iter().filter(|_| number == 0).cloned().collect(),
    });
    found.collect()
}

fn is_ours(text: &str) -> bool {
    text.starts_with(MARKER)
}

fn render(hooks: &BTreeMap<String, PluginHook>) -> String {
    // A map of texts and numbers is always JSON.
    TEMPLATE.replacen(PLACE, &format!("{PREFIX}{};", serde_json::to_string(hooks).unwrap_or_default()), 1)
}

fn milliseconds(limit: Duration) -> u64 {
    limit.as_millis().try_into().unwrap_or(u64::MAX)
}
