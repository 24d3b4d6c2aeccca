//! Settings of clients: install, find and remove the hooks of the guard, and keep every other byte.

mod client_files;
mod codex_requirements;
mod codex_trust;
mod command_line;
mod handlers;
mod hook_events;
mod json_document;
mod json_edit;
mod opencode_plugin;
mod switches;

use std::time::Duration;

use serde_json::{Value, json};

pub use self::client_files::{ClientFolders, FOLDER_VARIABLES, Scope, settings_file};
pub use self::codex_trust::{
    config_file as codex_config_file, is_trusted as is_trusted_by_codex, trust as codex_trust, untrust as codex_untrust,
};
pub use self::command_line::{DaemonPlace, HookProgram, UnusablePath};
use self::hook_events::hooks_of;
pub use self::hook_events::tool_event;
use self::json_document::Syntax;
pub use self::switches::{OWN_NAMES, Switch, find as find_switches};
use crate::client::Client;

/// The reason why settings cannot be changed. Nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file is not JSON.
    #[error("it is not JSON, so nothing was changed: {0}; repair the file first")]
    Json(String),
    /// A part has another type or value than the client needs.
    #[error("`{0}` is not {1}, so nothing was changed; repair the file first")]
    Form(String, &'static str),
    /// A key exists twice.
    #[error("the key `{0}` exists twice, so nothing was changed; repair the file first")]
    Twice(String),
    /// The file is not TOML, or would not be.
    #[error("it would not be TOML, so nothing was changed: {0}")]
    Toml(String),
    /// A file with the name of the guard's was written by somebody else.
    #[error("it was not written by the guard, so nothing was changed; move it away first")]
    Foreign,
    /// A path cannot be in a command line.
    #[error(transparent)]
    Path(#[from] UnusablePath),
}

/// The parts of every hook that the guard installs.
#[derive(Clone, Debug)]
pub struct HookOptions<'a> {
    /// The hook program.
    pub program: &'a HookProgram,
    /// The place of the daemon.
    pub place: DaemonPlace<'a>,
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
    /// The differences from the entry of an installation: each can keep the hook from deciding.
    pub problems: Vec<String>,
}

/// The form of the file with the hooks of a client.
enum FileForm {
    Json(Syntax),
    Plugin,
    Requirements,
}

fn form(client: Client, scope: Scope) -> FileForm {
    match (client, scope) {
        (Client::Opencode, _) => FileForm::Plugin,
        (Client::Codex, Scope::System) => FileForm::Requirements,
        (Client::Gemini, _) => FileForm::Json(Syntax::WithComments),
        _ => FileForm::Json(Syntax::Json),
    }
}

/// Returns `true` for a file that has nothing but hooks of the guard.
fn is_own_file(client: Client, scope: Scope) -> bool {
    client == Client::Copilot || (client, scope) == (Client::Claude, Scope::System)
}

/// Returns the settings with the hooks of the guard. Hooks of an earlier installation are replaced; every other byte stays.
///
/// # Errors
/// If the settings cannot be changed safely.
pub fn install(
    client: Client,
    scope: Scope,
    settings: &str,
    options: &HookOptions<'_>,
) -> Result<String, SettingsError> {
    let syntax = match form(client, scope) {
        FileForm::Plugin => return opencode_plugin::install(settings, options),
        FileForm::Requirements => return codex_requirements::install(settings, options),
        FileForm::Json(syntax) => syntax,
    };
    let mut text = uninstall(client, scope, settings)?;
    if text.trim().is_empty() {
        text = "{}\n".to_owned();
    }
    if matches!(client, Client::Copilot | Client::Cursor) {
        text = json_edit::set_if_missing(syntax, &text, "version", &json!(1))?;
    }
    if (client, scope) == (Client::Gemini, Scope::System) {
        // No project can switch the hooks off then.
        text = json_edit::switch_on(syntax, &text, "hooksConfig", "enabled")?;
    }
    for event in hooks_of(client) {
        let entry = handlers::entry(client, event, options)?;
        text = json_edit::append(syntax, &text, event.name, &entry)?;
    }
    Ok(text)
}

/// Returns the settings without the hooks of the guard; nothing for a file that has only them.
///
/// # Errors
/// If the settings cannot be changed safely.
pub fn uninstall(client: Client, scope: Scope, settings: &str) -> Result<String, SettingsError> {
    if settings.trim().is_empty() {
        return Ok(settings.to_owned());
    }
    let syntax = match form(client, scope) {
        FileForm::Plugin => return Ok(opencode_plugin::uninstall(settings)),
        FileForm::Requirements => return Ok(codex_requirements::uninstall(settings)),
        FileForm::Json(syntax) => syntax,
    };
    let text = json_edit::remove(syntax, settings, handlers::is_ours)?;
    let is_rest = |key: &String| key == "version" || key == "hooks";
    let is_empty = text != settings
        && is_own_file(client, scope)
        && syntax
            .parse(&text)?
            .as_object()
            .is_some_and(|fields| fields.keys().all(is_rest) && !fields.contains_key("hooks"));
    Ok(if is_empty { String::new() } else { text })
}

/// Returns the hooks of the guard in the settings of a client.
///
/// # Errors
/// If the settings cannot be read.
pub fn installed(client: Client, scope: Scope, settings: &str) -> Result<Vec<InstalledHook>, SettingsError> {
    if settings.trim().is_empty() {
        return Ok(Vec::new());
    }
    match form(client, scope) {
        FileForm::Plugin => Ok(opencode_plugin::installed(settings)),
        FileForm::Requirements => codex_requirements::installed(settings),
        FileForm::Json(syntax) => Ok(handlers::installed(client, &syntax.parse(settings)?)),
    }
}

/// Returns `true` if this program wrote the line of a hook, in this version or an earlier one. Anybody can write a line that looks similar, so no other may be
/// run.
pub fn is_own(client: Client, hook: &InstalledHook, program: &HookProgram, place: DaemonPlace<'_>) -> bool {
    let Some(event) = hooks_of(client).iter().find(|event| event.name == hook.event) else { return false };
    let Some(deadline) = command_line::deadline_of(&hook.command) else { return false };
    let line = program.line_with_deadline(client, event.name, event.is_gate, deadline, place);
    line.is_ok_and(|line| line == hook.command || command_line::earlier(&line) == hook.command)
}

/// Returns the events with our lines of an earlier version, which decide all the same.
pub fn outdated_events<'a>(
    client: Client,
    hooks: &'a [InstalledHook],
    program: &HookProgram,
    place: DaemonPlace<'_>,
) -> Vec<&'a str> {
    let outdated = hooks.iter().filter(|hook| command_line::is_earlier(&hook.command));
    outdated.filter(|hook| is_own(client, hook, program, place)).map(|hook| hook.event.as_str()).collect()
}

/// Returns the reasons why the hooks of a file do not decide as those of an installation.
pub fn problems(client: Client, hooks: &[InstalledHook], program: &HookProgram, place: DaemonPlace<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let missing = missing_events(client, hooks);
    if !missing.is_empty() {
        found.push(format!("no hook for {}", missing.join(", ")));
    }
    for hook in hooks {
        let event = &hook.event;
        found.extend(hook.problems.iter().map(|problem| format!("at {event}, {problem}")));
        if !is_own(client, hook, program, place) {
            found.push(format!("a line at {event} that is not ours"));
        } else if command_line::deadline_of(&hook.command) > Some(latest_deadline(client, hook)) {
            found.push(format!("at {event}, the time limit {} ends before the hook denies", hook.timeout));
        }
    }
    found
}

/// Returns the latest deadline for the configured time limit, in milliseconds.
fn latest_deadline(client: Client, hook: &InstalledHook) -> u128 {
    let limit = match client {
        Client::Gemini | Client::Opencode => Duration::from_millis(hook.timeout),
        _ => Duration::from_secs(hook.timeout),
    };
    command_line::latest_deadline(limit).as_millis()
}

/// Returns the names of the events that the guard needs and the settings lack.
pub fn missing_events(client: Client, hooks: &[InstalledHook]) -> Vec<&'static str> {
    let needed = hooks_of(client).iter().map(|event| event.name);
    needed.filter(|name| !hooks.iter().any(|hook| hook.event == *name)).collect()
}

/// Returns the names of the events at which a client gets hooks.
pub(crate) fn hook_names(client: Client) -> impl Iterator<Item = &'static str> {
    hooks_of(client).iter().map(|event| event.name)
}

/// Returns the name of the guard's hooks in settings, which an installation keeps, so that a second one changes nothing.
pub fn hook_name(client: Client, scope: Scope, settings: &str) -> Option<String> {
    let FileForm::Json(syntax) = form(client, scope) else { return None };
    let settings = syntax.parse(settings).ok()?;
    let groups = settings.get("hooks")?.as_object()?.values().filter_map(Value::as_array).flatten();
    let handlers = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
    let mut names =
        handlers.filter(|handler| handlers::is_ours(handler)).filter_map(|handler| handler.get("name")?.as_str());
    names.next().map(str::to_owned)
}
