//! Built-in modules: hooks that a bundle enables by name.

mod approval;
mod bash_guard;
mod cost;
mod linter;
mod logging;
mod metrics;
mod notify;
mod production_guard;
mod progress_monitor;
mod rate_limit;
mod redaction;
mod session_naming;
mod shared;
mod status_context;
mod todo_display;
mod todo_reminder;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookResult, HookRole, Map, OnError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::redaction::MARKER_IN_INPUT;
pub(crate) use self::shared::background::PendingTasks;
pub use self::shared::background::WAITER;
pub(crate) use self::shared::per_session::PerSession;
pub(crate) use self::shared::session_tree::SessionTree;
pub(crate) use self::shared::settings::lock;
use crate::condition::{Scope, did_you_mean};
use crate::environment::HookEnvironment;
use crate::trust::PinnedFiles;

/// A built-in module.
pub struct Module {
    /// The name in bundles.
    pub name: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    is_pure: bool,
    kinds: fn() -> Vec<String>,
    schema: fn() -> Value,
    idle_settings: fn(&Map, &Scope) -> Vec<IdleSetting>,
    make: fn(&Map, &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String>,
}

/// A setting that probably has not the intended effect: the message, and what to write.
pub(crate) type IdleSetting = (String, String);

/// All built-in modules, sorted by name.
pub static MODULES: &[Module] = &[
    Module::new::<approval::Options>(
        "hooks-approval",
        "allows or denies tool calls, or requests approval, by patterns",
        approval::make,
    )
    .pure(),
    Module::new::<bash_guard::Options>(
        "hooks-bash-guard",
        "checks shell commands before they run, and requests approval for dangerous ones",
        bash_guard::make,
    )
    .pure(),
    Module::new::<cost::Options>(
        "hooks-cost",
        "counts tokens and money, with a budget that warns, requests approval and denies",
        cost::make,
    ),
    Module::new::<linter::Options>(
        "hooks-linter",
        "runs linters on files that the agent has written, and shows it the findings",
        linter::make,
    )
    .checked(linter::idle_settings),
    Module::new::<logging::Options>(
        "hooks-logging",
        "writes selected events to a file, one JSON object per line",
        logging::make,
    ),
    Module::new::<metrics::Options>(
        "hooks-metrics",
        "counts and times events, for Prometheus and OpenTelemetry",
        metrics::make,
    ),
    Module::new::<notify::Options>("hooks-notify", "notifies the user outside of the agent", notify::make),
    Module::new::<production_guard::Options>(
        "hooks-production-guard",
        "requests approval before a production file is changed",
        production_guard::make,
    )
    .pure(),
    Module::new::<progress_monitor::Options>(
        "hooks-progress-monitor",
        "shows the user the progress of the agent",
        progress_monitor::make,
    ),
    Module::new::<rate_limit::Options>("hooks-rate-limit", "limits calls of tools and models", rate_limit::make),
    Module::new::<redaction::Options>(
        "hooks-redaction",
        "replaces secrets and personal data in prompts, tool results and answers",
        redaction::make,
    )
    .knowing(redaction::kinds)
    .pure(),
    Module::new::<session_naming::Options>(
        "hooks-session-naming",
        "names a session after its subject",
        session_naming::make,
    ),
    Module::new::<status_context::Options>(
        "hooks-status-context",
        "tells the model the git status, the time, the session and the folder",
        status_context::make,
    ),
    Module::new::<todo_display::Options>(
        "hooks-todo-display",
        "shows the to-do list to the model and to the user",
        todo_display::make,
    ),
    Module::new::<todo_reminder::Options>(
        "hooks-todo-reminder",
        "reminds the model of its to-do list",
        todo_reminder::make,
    ),
];

/// The priority of guards: high, so that guards check the final data, after hooks that modify it.
const GUARDS: i64 = 900;

pub(crate) struct ModuleContext<'a> {
    /// The environment: workspace, clock, rules for secrets.
    pub(crate) host: &'a HookEnvironment,
    /// The folder of the bundle; relative paths start here.
    pub(crate) folder: &'a Path,
    /// The files that programs of the module must find unchanged since they were trusted.
    pub(crate) held: Option<Arc<PinnedFiles>>,
    /// `true` if the bundle belongs to the user, not to a project.
    pub(crate) is_own: bool,
    /// Identity of the hook; the same in all versions of a bundle.
    pub(crate) who: &'a str,
}

/// A hook of a module, with defaults that the bundle can override.
pub(crate) struct ModuleHook {
    pub(crate) events: Vec<String>,
    pub(crate) hook: Arc<dyn AnyHook>,
    pub(crate) priority: i64,
    pub(crate) role: HookRole,
    pub(crate) on_error: OnError,
    /// Time limit for one call, if longer than the default.
    pub(crate) timeout: Option<Duration>,
}

impl ModuleHook {
    /// Creates a hook that only observes: its failure has no effect.
    pub(crate) fn observer(events: &[&str], hook: impl Hook) -> Self {
        Self::new(events, hook, HookRole::Observer, OnError::Continue)
    }

    /// Creates a hook that can change the outcome. Its failure denies at gating events.
    pub(crate) fn gate(events: &[&str], hook: impl Hook) -> Self {
        Self::new(events, hook, HookRole::Gate, OnError::DenyGating)
    }

    /// Creates a hook that protects against something: its failure denies.
    pub(crate) fn guard(events: &[&str], hook: impl Hook) -> Self {
        Self::new(events, hook, HookRole::Gate, OnError::Deny)
    }

    /// Sets the priority; lower values run earlier.
    pub(crate) fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn new(events: &[&str], hook: impl Hook, role: HookRole, on_error: OnError) -> Self {
        let events = events.iter().map(|&event| event.to_owned()).collect();
        Self { events, hook: Arc::new(hook), priority: 0, role, on_error, timeout: None }
    }
}

/// An object-safe [`Hook`].
pub(crate) trait AnyHook: Send + Sync {
    fn answer<'a>(&'a self, event: &'a str, data: &'a EventData) -> HookFuture<'a>;
}

pub(crate) type HookFuture<'a> = Pin<Box<dyn Future<Output = Result<HookResult, HookError>> + Send + 'a>>;

impl<T: Hook> AnyHook for T {
    fn answer<'a>(&'a self, event: &'a str, data: &'a EventData) -> HookFuture<'a> {
        Box::pin(self.handle(event, data))
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Module").field(&self.name).finish()
    }
}

impl PartialEq for Module {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Module {
    const fn new<Options: JsonSchema>(
        name: &'static str,
        summary: &'static str,
        make: fn(&Map, &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String>,
    ) -> Self {
        Self {
            name,
            summary,
            is_pure: false,
            kinds: Vec::new,
            schema: schema::<Options>,
            idle_settings: |_, _| Vec::new(),
            make,
        }
    }

    /// Sets the check for settings that probably have not the intended effect.
    const fn checked(mut self, idle_settings: fn(&Map, &Scope) -> Vec<IdleSetting>) -> Self {
        self.idle_settings = idle_settings;
        self
    }

    /// Sets the function that lists the kinds of data that the module knows.
    const fn knowing(mut self, kinds: fn() -> Vec<String>) -> Self {
        self.kinds = kinds;
        self
    }

    /// Marks a module as pure, so that it can be replayed on recorded events.
    const fn pure(mut self) -> Self {
        self.is_pure = true;
        self
    }

    /// Returns `true` if the module has no side effects, and its result depends only on the event, the time and the workspace.
    pub fn is_pure(&self) -> bool {
        self.is_pure
    }

    /// Returns the module with this name.
    ///
    /// # Errors
    /// If the name is unknown; the message suggests a similar name.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        let unknown = || match did_you_mean(name, MODULES.iter().map(|module| module.name)) {
            Some(suggestion) => format!("unknown module `{name}`; {suggestion}"),
            None => format!("unknown module `{name}`; see `amplifier hooks modules`"),
        };
        MODULES.iter().find(|module| module.name == name).ok_or_else(unknown)
    }

    /// Returns the kinds of data that the module knows, such as the kinds of secrets; empty for most modules.
    pub fn kinds(&self) -> Vec<String> {
        (self.kinds)()
    }

    /// Returns the JSON Schema of the module's `config`.
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    pub(crate) fn idle_settings(&self, config: &Map, scope: &Scope) -> Vec<IdleSetting> {
        (self.idle_settings)(config, scope)
    }

    pub(crate) fn make(&self, config: &Map, context: &ModuleContext<'_>) -> Result<Vec<ModuleHook>, String> {
        (self.make)(config, context).map_err(|problem| format!("`config` of `{}`: {problem}", self.name))
    }
}

/// Parses the `config` of a module.
fn options<T: DeserializeOwned>(config: &Map) -> Result<T, String> {
    serde_path_to_error::deserialize(Value::Object(config.clone())).map_err(|error| {
        let path = error.path().to_string();
        let problem = plain_message(&error.into_inner().to_string());
        let problem = match (suggestion(&problem), problem.split_once(", expected ")) {
            (Some(hint), Some((unknown, _))) => {
                format!("{}; {hint}", unknown.replace("unknown field", "unknown option"))
            }
            _ => problem,
        };
        if path == "." || problem.starts_with("unknown option") { problem } else { format!("`{path}`: {problem}") }
    })
}

/// Rewrites an error of serde without terms of Rust.
fn plain_message(problem: &str) -> String {
    let Some((said, expected)) = problem.rsplit_once(", expected ") else { return problem.to_owned() };
    let is_number =
        |kind: char| expected.strip_prefix(kind).is_some_and(|rest| rest == "size" || rest.parse::<u8>().is_ok());
    let expected = match expected {
        "a boolean" => "`true` or `false`",
        "a string" | "string or map" => "a text",
        "a sequence" => "a list",
        "a map" => "keys with values",
        other if other.starts_with("struct ") => "keys with values",
        "f32" | "f64" => "a number",
        _ if is_number('u') => "a whole number, 0 or more",
        _ if is_number('i') => "a whole number",
        other => other,
    };
    format!("{said}, expected {expected}")
}

/// Suggests a similar name for an unknown field or variant. The message itself lists the known names.
fn suggestion(problem: &str) -> Option<String> {
    let unknown = ["unknown field `", "unknown variant `"];
    let (name, expected) = unknown.iter().find_map(|begin| problem.strip_prefix(begin))?.split_once("`, expected ")?;
    did_you_mean(name, expected.split('`').skip(1).step_by(2))
}

fn schema<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}
