//! Bundles: what hooks a session has, in a YAML file.

mod entry;
mod error;
mod load;
mod path_candidates;
mod register;
mod sandbox;
mod schema;
mod settings;
mod stack;
mod subscribe;
mod watch;

pub use entry::{HookEntry, HookKind, InvalidEntry, OneOrMany};
pub use error::BundleError;
pub use load::{BundleInput, HookDefinition, LoadedBundle, load, load_hosted, load_pinned};
pub use register::CompiledHook;
pub use sandbox::{Confinement, SandboxConfig, WriteAccess};
pub use schema::schema;
pub use settings::{ApprovalMode, McpServer, Orchestrator, ProviderEntry, ProviderKind, SessionSettings, Tools};
pub use stack::{BundleScope, BundleStack};
pub use watch::{BundleSource, BundleWatcher, PreparedVersion, RELOAD_HOOK, RELOAD_TIMEOUT, Reload, reload_events};

use std::collections::BTreeMap;
use std::path::Path;

use amplifier_core::{EventName, Map};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::builtin::Module;
use crate::condition::did_you_mean;

/// What stands in a bundle.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bundle {
    /// Other bundles, relative to this one. Their hooks come before those of this one.
    #[schemars(with = "Vec<String>")]
    pub includes: Vec<Spanned<String>>,
    /// Settings of the session.
    pub session: SessionSettings,
    /// What the agent can do.
    pub tools: Tools,
    /// Models that can be used; the first one is, unless another one is asked for.
    pub providers: Vec<ProviderEntry>,
    /// The hooks, in the order in which they are registered.
    #[schemars(with = "Vec<HookEntry>")]
    pub hooks: Vec<Spanned<HookEntry>>,
    /// What the hooks should do, for `amplifier hooks test`.
    #[schemars(with = "Vec<BundleTest>")]
    pub tests: Vec<Spanned<BundleTest>>,
}

/// An event, and what the hooks of the bundle should make of it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleTest {
    /// What it shows.
    pub name: String,
    /// The event.
    pub event: String,
    /// Its data.
    #[serde(default)]
    pub data: Map,
    /// What has happened before it in the session. Each test has a session of its own.
    #[serde(default)]
    pub before: Vec<PriorEvent>,
    /// What should come of it.
    pub expect: Expectation,
}

/// An event that has happened before the one that a test is about.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorEvent {
    /// The event.
    pub event: String,
    /// Its data.
    #[serde(default)]
    pub data: Map,
    /// How often, up to 1,000 times; once.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 1000))]
    pub times: u16,
}

fn once() -> u16 {
    1
}

/// What should come of an event.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// The decision: `continue`, `modify`, `inject_context`, `ask_user` or `deny`.
    pub decision: Option<String>,
    /// The hook that denies or asks.
    pub by: Option<String>,
    /// A part of the reason, of the question, or of what is injected.
    pub says: Option<String>,
    /// Fields of the data afterwards, by JSON Pointer.
    pub data: BTreeMap<String, Value>,
}

impl Bundle {
    /// Reads a bundle from text. `file` is named in errors.
    ///
    /// # Errors
    /// If it is no YAML, or not what a bundle is made of: with the place, and a suggestion where there is one.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BundleError> {
        Self::parse_with(text, file, HostModules::Refused)
    }

    /// The same, where names of modules that are not known may be the host's.
    fn parse_with(text: &str, file: &Path, foreign: HostModules) -> Result<Self, BundleError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut bundle: Self = serde_saphyr::from_str(text).map_err(|error| BundleError::yaml(&error, text, file))?;
        if foreign == HostModules::Allowed {
            for entry in bundle.hooks.iter_mut().map(|entry| &mut entry.value) {
                entry.is_host_module = entry.module.as_deref().is_some_and(|name| Module::named(name).is_err());
            }
        }
        for entry in &bundle.hooks {
            if let Err(invalid_entry) = entry.value.kind() {
                return Err(BundleError::invalid_entry(entry.referenced, invalid_entry, text, file));
            }
        }
        for case in &bundle.tests {
            if let Some(before) = case.value.before.iter().find(|before| !(1..=1000).contains(&before.times)) {
                let problem = format!("`times` is {}: an event happens 1 to 1,000 times before a test", before.times);
                return Err(BundleError::at(case.referenced, problem, text, file));
            }
            let BundleTest { event, expect, .. } = &case.value;
            let events = case.value.before.iter().map(|before| &before.event).chain([event]);
            if let Some(error) = events.filter_map(|event| event.parse::<EventName>().err()).next() {
                return Err(BundleError::at(case.referenced, error.to_string(), text, file));
            }
            if *expect == Expectation::default() {
                let problem =
                    "`expect` is empty, so the test would show nothing: give it `decision`, `by`, `says` or `data`";
                return Err(BundleError::at(case.referenced, problem, text, file));
            }
            if let Some(pointer) = expect.data.keys().find(|pointer| !pointer.starts_with('/')) {
                let problem = format!("`expect` has the pointer `{pointer}`: begin it with `/`");
                return Err(BundleError::at(case.referenced, problem, text, file));
            }
            let decision = expect.decision.as_deref();
            if let Some(unknown) = decision.filter(|decision| !DECISIONS.contains(decision)) {
                let hint = did_you_mean(unknown, DECISIONS);
                let hint = hint.unwrap_or_else(|| format!("there are `{}`", DECISIONS.join("`, `")));
                let problem = format!("unknown decision `{unknown}`; {hint}");
                return Err(BundleError::at(case.referenced, problem, text, file));
            }
        }
        Ok(bundle)
    }
}

/// Whether a bundle may name modules that do not come with the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostModules {
    Allowed,
    Refused,
}

/// What can come of an event.
const DECISIONS: [&str; 5] = ["continue", "modify", "inject_context", "ask_user", "deny"];
