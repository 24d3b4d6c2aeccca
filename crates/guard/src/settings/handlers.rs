//! The entries of hooks in settings: how the guard writes them, finds them, and tells what others changed.

use serde_json::{Map, Value, json};

use super::hook_events::EventHook;
use super::{HookOptions, InstalledHook, SettingsError, command_line};
use crate::client::Client;

/// Returns the entry of an event: a handler, or a group with one.
pub(super) fn entry(client: Client, event: &EventHook, options: &HookOptions<'_>) -> Result<Value, SettingsError> {
    let limit = event.limit(options.limit);
    let command = options.program.line(client, event.name, event.is_gate, limit, options.place)?;
    let (seconds, milliseconds) = (limit.as_secs(), limit.as_millis() as u64);
    let fields = match client {
        Client::Copilot => vec![("type", json!("command")), ("bash", json!(command)), ("timeoutSec", json!(seconds))],
        Client::Cursor => vec![("command", json!(command)), ("timeout", json!(seconds))],
        Client::Gemini => vec![
            ("type", json!("command")),
            ("name", json!(options.name)),
            ("command", json!(command)),
            ("timeout", json!(milliseconds)),
        ],
        _ => vec![("type", json!("command")), ("command", json!(command)), ("timeout", json!(seconds))],
    };
    let failure = blocks_on_failure(client, event.name).map(|(key, value)| (key, json!(value)));
    let handler: Map<String, Value> =
        fields.into_iter().chain(failure).map(|(key, value)| (key.to_owned(), value)).collect();
    if is_flat(client) {
        return Ok(handler.into());
    }
    let mut group = Map::new();
    if event.has_matcher {
        group.insert("matcher".to_owned(), json!("*"));
    }
    group.insert("hooks".to_owned(), json!([handler]));
    Ok(group.into())
}

/// Returns `true` if handlers of the client are not in groups.
fn is_flat(client: Client) -> bool {
    matches!(client, Client::Copilot | Client::Cursor)
}

/// Returns the field by which the client denies if a hook fails: it covers a program that the client kills at the time limit.
fn blocks_on_failure(client: Client, event: &str) -> Option<(&'static str, Value)> {
    match client {
        Client::Claude if ["PreToolUse", "UserPromptSubmit"].contains(&event) => Some(("onFailure", json!("block"))),
        Client::Cursor if ["preToolUse", "subagentStart", "beforeSubmitPrompt"].contains(&event) => {
            Some(("failClosed", json!(true)))
        }
        _ => None,
    }
}

/// Returns the hooks of the guard in settings with the usual lists of hooks.
pub(super) fn installed(client: Client, settings: &Value) -> Vec<InstalledHook> {
    let mut found = Vec::new();
    for (event, entries) in settings.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        for (group, entry) in entries.as_array().into_iter().flatten().enumerate() {
            let handlers = entry.get("hooks").and_then(Value::as_array);
            let handlers = handlers.map_or(std::slice::from_ref(entry), Vec::as_slice);
            let ours = handlers.iter().enumerate().filter(|(_, handler)| is_ours(handler));
            found.extend(ours.map(|(number, handler)| {
                let timeout = ["timeout", "timeoutSec"].iter().find_map(|key| handler.get(*key)?.as_u64());
                InstalledHook {
                    event: event.clone(),
                    group,
                    handler: number,
                    command: command_of(handler).unwrap_or_default().to_owned(),
                    timeout: timeout.unwrap_or_default(),
                    matcher: entry.get("matcher").and_then(Value::as_str).map(str::to_owned),
                    problems: problems(client, event, entry, handler),
                }
            }));
        }
    }
    found
}

/// Returns `true` for a handler of the guard.
pub(super) fn is_ours(handler: &Value) -> bool {
    command_of(handler).is_some_and(command_line::is_ours)
}

fn command_of(handler: &Value) -> Option<&str> {
    ["command", "bash"].iter().find_map(|key| handler.get(*key)).and_then(Value::as_str)
}

/// Returns the ways in which an entry differs from that of an installation: each can keep the hook from deciding.
fn problems(client: Client, event: &str, entry: &Value, handler: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match entry.get("matcher") {
        None => {}
        Some(Value::String(matcher)) if matcher.is_empty() || matcher == "*" => {}
        Some(matcher) => found.push(format!("`matcher` is {matcher}, so it is not called for other tools")),
    }
    let failure = blocks_on_failure(client, event);
    if let Some((key, value)) = failure.as_ref().filter(|(key, value)| handler.get(*key) != Some(value)) {
        found.push(format!("`{key}` is not {value}, so a failure of the hook does not deny"));
    }
    let known = ["type", "command", "bash", "timeout", "timeoutSec", "name", "matcher"];
    for (key, value) in handler.as_object().into_iter().flatten() {
        let is_expected = match key.as_str() {
            "type" => *value == json!("command"),
            // An explicit default.
            "async" => *value == json!(false),
            key if known.contains(&key) => true,
            key => failure.as_ref().is_some_and(|(known, _)| *known == key),
        };
        if !is_expected {
            found.push(format!("`{key}` is {value}, which the guard does not write"));
        }
    }
    found
}
