//! Settings of clients: install, find and remove the hooks of the guard, and keep every other byte.

mod client_files;
mod codex_trust;
mod command_line;
mod json_edit;
mod switches;

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

pub use self::client_files::{Scope, settings_file};
pub use self::codex_trust::{config_file as codex_config_file, trust as codex_trust, untrust as codex_untrust};
pub use self::command_line::{HookProgram, UnusablePath};
pub use self::switches::find as find_switches;
use crate::client::Client;

/// The time limit of a hook at an event without a gate.
const OBSERVER_LIMIT: Duration = Duration::from_secs(10);

/// The reason why settings cannot be changed. Nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file is not JSON.
    #[error("it is not JSON, so nothing was changed: {0}; repair the file first")]
    Json(String),
    /// A part has another type than the client needs.
    #[error("`{0}` is not {1}, so nothing was changed; repair the file first")]
    Form(String, &'static str),
    /// A key exists twice.
    #[error("the key `{0}` exists twice, so nothing was changed; repair the file first")]
    Twice(String),
    /// The file is not TOML, or would not be.
    #[error("it would not be TOML, so nothing was changed: {0}")]
    Toml(String),
    /// The guard does not write settings of this client.
    #[error("the settings of {0} cannot be written yet")]
    Unsupported(Client),
    /// A path cannot be in a command line.
    #[error(transparent)]
    Path(#[from] UnusablePath),
}

/// One hook of a client that the guard installs.
#[derive(Clone, Copy, Debug)]
struct EventHook {
    name: &'static str,
    /// `true` if the client waits for a decision, or shows the result of a tool to the model.
    is_gate: bool,
    /// `true` if the client wants a pattern of tools.
    has_matcher: bool,
}

const fn gate(name: &'static str, has_matcher: bool) -> EventHook {
    EventHook { name, is_gate: true, has_matcher }
}

const fn observer(name: &'static str) -> EventHook {
    EventHook { name, is_gate: false, has_matcher: false }
}

const CLAUDE: &[EventHook] = &[
    gate("PreToolUse", true),
    gate("PostToolUse", true),
    EventHook { name: "PostToolUseFailure", is_gate: false, has_matcher: true },
    gate("UserPromptSubmit", false),
    observer("SessionStart"),
    observer("PreCompact"),
    observer("Stop"),
    observer("SessionEnd"),
];
const CODEX: &[EventHook] = &[
    gate("PreToolUse", true),
    gate("PostToolUse", true),
    gate("UserPromptSubmit", false),
    observer("SessionStart"),
    observer("Stop"),
    observer("SessionEnd"),
];
const GEMINI: &[EventHook] = &[
    gate("BeforeTool", true),
    gate("AfterTool", true),
    gate("BeforeAgent", false),
    observer("SessionStart"),
    observer("AfterAgent"),
    observer("SessionEnd"),
];
const COPILOT: &[EventHook] = &[
    gate("preToolUse", false),
    gate("postToolUse", false),
    gate("userPromptSubmitted", false),
    observer("postToolUseFailure"),
    observer("sessionStart"),
    observer("preCompact"),
    observer("agentStop"),
    observer("sessionEnd"),
];

/// The parts of every hook that the guard installs.
#[derive(Clone, Debug)]
pub struct HookOptions<'a> {
    /// The hook program.
    pub program: &'a HookProgram,
    /// The folder of the daemon.
    pub folder: &'a Path,
    /// The time limit of the client. The hook answers before it.
    pub limit: Duration,
    /// A name that nobody guesses, for the client that can disable hooks by name.
    pub name: &'a str,
}

/// A hook of the guard in the settings of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledHook {
    /// The event in the client's words.
    pub event: String,
    /// The position of its group among the groups of the event.
    pub group: usize,
    /// The position in its group.
    pub handler: usize,
    /// The configured command line.
    pub command: String,
    /// The configured time limit, in the client's unit.
    pub timeout: u64,
    /// The configured pattern of tools.
    pub matcher: Option<String>,
}

/// Returns the clients whose settings the guard can write.
pub fn supported() -> impl Iterator<Item = Client> {
    Client::ALL.into_iter().filter(|client| !hooks_of(*client).is_empty())
}

fn hooks_of(client: Client) -> &'static [EventHook] {
    match client {
        Client::Claude => CLAUDE,
        Client::Codex => CODEX,
        Client::Gemini => GEMINI,
        Client::Copilot => COPILOT,
        Client::Opencode | Client::Cursor => &[],
    }
}

/// Returns the settings with the hooks of the guard. Hooks of an earlier installation are replaced; every other byte stays.
///
/// # Errors
/// If the settings cannot be changed safely.
pub fn install(client: Client, settings: &str, options: &HookOptions<'_>) -> Result<String, SettingsError> {
    let events = hooks_of(client);
    if events.is_empty() {
        return Err(SettingsError::Unsupported(client));
    }
    let mut text = uninstall(client, settings)?;
    if text.trim().is_empty() {
        text = "{}\n".to_owned();
    }
    if client == Client::Copilot {
        text = json_edit::set_if_missing(&text, "version", &json!(1))?;
    }
    for event in events {
        let entry = entry(client, event, options)?;
        text = json_edit::append(&text, event.name, &entry)?;
    }
    Ok(text)
}

/// Returns the settings without the hooks of the guard.
///
/// # Errors
/// If the settings cannot be changed safely.
pub fn uninstall(_client: Client, settings: &str) -> Result<String, SettingsError> {
    if settings.trim().is_empty() {
        return Ok(settings.to_owned());
    }
    json_edit::remove(settings, is_ours)
}

/// Returns the hooks of the guard in the settings of a client.
///
/// # Errors
/// If the settings are not JSON.
pub fn installed(settings: &str) -> Result<Vec<InstalledHook>, SettingsError> {
    if settings.trim().is_empty() {
        return Ok(Vec::new());
    }
    let settings: Value = serde_json::from_str(settings).map_err(|error| SettingsError::Json(error.to_string()))?;
    let mut found = Vec::new();
    for (event, groups) in settings.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        for (group, entry) in groups.as_array().into_iter().flatten().enumerate() {
            found.extend(hooks_in(entry).map(|hook| InstalledHook { event: event.clone(), group, ..hook }));
        }
    }
    Ok(found)
}

/// Returns `true` if this program wrote the line of a hook. Anybody can write a line that looks similar, so no other may be run.
pub fn is_own(client: Client, hook: &InstalledHook, program: &HookProgram, folder: &Path) -> bool {
    let Some(event) = hooks_of(client).iter().find(|event| event.name == hook.event) else { return false };
    let limit = match client {
        Client::Gemini => Duration::from_millis(hook.timeout),
        _ => Duration::from_secs(hook.timeout),
    };
    program.line(client, event.name, event.is_gate, limit, folder).is_ok_and(|line| line == hook.command)
}

/// Returns the names of the events that the guard needs and the settings lack.
pub fn missing_events(client: Client, hooks: &[InstalledHook]) -> Vec<&'static str> {
    let needed = hooks_of(client).iter().map(|event| event.name);
    needed.filter(|name| !hooks.iter().any(|hook| hook.event == *name)).collect()
}

/// Returns the name of the event before a tool.
pub fn tool_event(client: Client) -> Option<&'static str> {
    hooks_of(client).first().map(|event| event.name)
}

/// Returns the hooks of the guard in an entry, which is a handler or a group of handlers.
fn hooks_in(entry: &Value) -> impl Iterator<Item = InstalledHook> {
    let handlers = entry.get("hooks").and_then(Value::as_array);
    let handlers = handlers.map_or(std::slice::from_ref(entry), Vec::as_slice);
    handlers.iter().enumerate().filter(|(_, handler)| is_ours(handler)).map(|(number, handler)| {
        let timeout = ["timeout", "timeoutSec"].iter().find_map(|key| handler.get(*key)).and_then(Value::as_u64);
        InstalledHook {
            event: String::new(),
            group: 0,
            handler: number,
            command: command_of(handler).unwrap_or_default().to_owned(),
            timeout: timeout.unwrap_or_default(),
            matcher: entry.get("matcher").and_then(Value::as_str).map(str::to_owned),
        }
    })
}

/// Returns `true` for a handler of the guard.
fn is_ours(handler: &Value) -> bool {
    command_of(handler).is_some_and(command_line::is_ours)
}

fn command_of(handler: &Value) -> Option<&str> {
    ["command", "bash"].iter().find_map(|key| handler.get(*key)).and_then(Value::as_str)
}

fn entry(client: Client, event: &EventHook, options: &HookOptions<'_>) -> Result<Value, SettingsError> {
    let HookOptions { program, folder, limit, name } = options;
    // Nobody is asked at an event without a gate, and a guard that hangs must not hold the agent there.
    let limit = if event.is_gate { *limit } else { (*limit).min(OBSERVER_LIMIT) };
    let command = program.line(client, event.name, event.is_gate, limit, folder)?;
    let (seconds, milliseconds) = (limit.as_secs(), limit.as_millis() as u64);
    let mut handler = Map::from_iter([("type".to_owned(), json!("command"))]);
    match client {
        Client::Copilot => {
            handler.insert("bash".to_owned(), json!(command));
            handler.insert("timeoutSec".to_owned(), json!(seconds));
            return Ok(handler.into());
        }
        Client::Gemini => {
            handler.insert("name".to_owned(), json!(name));
            handler.insert("command".to_owned(), json!(command));
            handler.insert("timeout".to_owned(), json!(milliseconds));
        }
        _ => {
            handler.insert("command".to_owned(), json!(command));
            handler.insert("timeout".to_owned(), json!(seconds));
            if client == Client::Claude && ["PreToolUse", "UserPromptSubmit"].contains(&event.name) {
                // Covers a program that the client kills at the time limit.
                handler.insert("onFailure".to_owned(), json!("block"));
            }
        }
    }
    let mut group = Map::new();
    if event.has_matcher {
        group.insert("matcher".to_owned(), json!("*"));
    }
    group.insert("hooks".to_owned(), json!([handler]));
    Ok(group.into())
}
