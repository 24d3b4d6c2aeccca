//! The requirements of Codex: hooks for all users, which no configuration of a project can switch off.

use serde_json::Value;

use super::hook_events::{EventHook, hooks_of};
use super::{HookOptions, InstalledHook, SettingsError, handlers};
use crate::client::Client;

/// The folder that the client wants to exist for managed hooks.
const FOLDER: &str = "/etc/codex";
const BEGIN: &str = "# amplifier-guard: begin";
const END: &str = "# amplifier-guard: end";
/// The end of a line that the guard added to a table of somebody else.
const ADDED: &str = " # amplifier-guard";

/// Returns the requirements with the hooks of the guard.
pub(super) fn install(text: &str, options: &HookOptions<'_>) -> Result<String, SettingsError> {
    let mut text = uninstall(text);
    let before = parse(&text)?;
    let field = |table: &str, key: &str| before.get(table)?.get(key);
    if field("features", "hooks").is_some_and(|value| value.as_bool() != Some(true)) {
        return Err(SettingsError::Form("features.hooks".to_owned(), "true"));
    }
    let mut block = String::new();
    for (table, key, value) in
        [("features", "hooks", "true".to_owned()), ("hooks", "managed_dir", Value::from(FOLDER).to_string())]
    {
        if field(table, key).is_none() && !add_to_table(&mut text, table, &format!("{key} = {value}")) {
            block.push_str(&format!("[{table}]\n{key} = {value}\n\n"));
        }
    }
    for event @ EventHook { name, is_gate, has_matcher, .. } in hooks_of(Client::Codex) {
        let limit = event.limit(options.limit);
        let line = options.program.line(Client::Codex, name, *is_gate, limit, options.place)?;
        block.push_str(&format!("[[hooks.{name}]]\n"));
        if *has_matcher {
            block.push_str("matcher = \"*\"\n");
        }
        // A line has no character that JSON and TOML write in different ways.
        let command = Value::from(line);
        let seconds = limit.as_secs();
        block.push_str(&format!(
            "[[hooks.{name}.hooks]]\ntype = \"command\"\ncommand = {command}\ntimeout = {seconds}\n\n"
        ));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let after = format!("{text}{BEGIN}\n{}\n{END}\n", block.trim_end());
    parse(&after)?;
    Ok(after)
}

/// Returns the requirements without the hooks of the guard.
pub(super) fn uninstall(text: &str) -> String {
    let mut is_ours = false;
    let kept = text.split_inclusive('\n').filter(|line| {
        let line = line.trim_end();
        is_ours |= line == BEGIN;
        let is_kept = !is_ours && !line.ends_with(ADDED);
        is_ours &= line != END;
        is_kept
    });
    kept.collect()
}

/// Returns the hooks of the guard.
pub(super) fn installed(text: &str) -> Result<Vec<InstalledHook>, SettingsError> {
    let table = parse(text)?;
    let value = serde_json::to_value(&table).map_err(|error| SettingsError::Toml(error.to_string()))?;
    let mut found = handlers::installed(Client::Codex, &value);
    if table.get("features").and_then(|features| features.get("hooks")?.as_bool()) != Some(true) {
        found.iter_mut().for_each(|hook| hook.problems.push("`features.hooks` is not true".to_owned()));
    }
    Ok(found)
}

/// Adds a line behind the header of a table; returns `false` if the text has no such header.
fn add_to_table(text: &mut String, table: &str, line: &str) -> bool {
    let header = format!("[{table}]");
    let mut at = 0;
    for existing in text.split_inclusive('\n') {
        at += existing.len();
        if existing.split('#').next().unwrap_or_default().trim() == header {
            let new_line = if existing.ends_with('\n') { "" } else { "\n" };
            text.insert_str(at, &format!("{new_line}{line}{ADDED}\n"));
            return true;
        }
    }
    false
}

fn parse(text: &str) -> Result<toml::Table, SettingsError> {
    toml::from_str(text).map_err(|error: toml::de::Error| SettingsError::Toml(error.message().to_owned()))
}
