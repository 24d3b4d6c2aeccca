//! Bundles: YAML files with hooks, session settings, tools and tests.

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
pub use settings::{
    ApprovalChannel, ApprovalMode, Confirm, McpServer, Orchestrator, ProviderEntry, ProviderKind, SessionSettings,
    Tools,
};
pub use stack::{BundleScope, BundleStack};
pub use watch::{BundleSource, BundleWatcher, PreparedVersion, RELOAD_HOOK, RELOAD_TIMEOUT, Reload, reload_events};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use amplifier_core::{EventName, Map};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::builtin::Module;
use crate::condition::did_you_mean;

/// The content of a bundle file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bundle {
    /// Other bundles, relative to this one. Their hooks come first.
    #[schemars(with = "Vec<String>")]
    pub(crate) includes: Vec<Spanned<String>>,
    /// Settings of the session.
    pub session: SessionSettings,
    /// Tools of the agent.
    pub tools: Tools,
    /// Available models; the first is the default.
    pub providers: Vec<ProviderEntry>,
    /// The hooks, in the order in which they are registered.
    #[schemars(with = "Vec<HookEntry>")]
    pub(crate) hooks: Vec<Spanned<HookEntry>>,
    /// Tests of the hooks, for `amplifier hooks test`.
    #[schemars(with = "Vec<BundleTest>")]
    pub(crate) tests: Vec<Spanned<BundleTest>>,
}

/// An event, and the expected result of the bundle's hooks.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleTest {
    /// Name of the test.
    pub name: String,
    /// Name of the event.
    pub event: String,
    /// Data of the event.
    #[serde(default)]
    pub data: Map,
    /// Files of the workspace: their paths and contents. A test with files has a temporary workspace with only these.
    #[serde(default)]
    pub files: BTreeMap<PathBuf, String>,
    /// Earlier events in the session. Each test has its own session.
    #[serde(default)]
    pub before: Vec<PriorEvent>,
    /// Expected result.
    pub expect: Expectation,
}

/// An event before the tested one.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PriorEvent {
    /// Name of the event.
    pub event: String,
    /// Data of the event.
    #[serde(default)]
    pub data: Map,
    /// Number of times, 1 to 1,000; 1 by default.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 1000))]
    pub times: u16,
}

fn once() -> u16 {
    1
}

/// The expected result of an event.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Expectation {
    /// The decision: `continue`, `modify`, `inject_context`, `ask_user` or `deny`.
    pub decision: Option<String>,
    /// The hook that denies or requests approval.
    pub by: Option<String>,
    /// A part of the reason, the prompt or the injected text.
    pub says: Option<String>,
    /// Fields of the data after the hooks, by JSON Pointer.
    pub data: BTreeMap<String, Value>,
}

impl Bundle {
    /// Parses a bundle. Errors name `file`.
    ///
    /// # Errors
    /// If the text is not YAML or not a valid bundle, with the position and a suggestion if there is one.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BundleError> {
        Self::parse_with(text, file, HostModules::Refused)
    }

    /// Returns the hooks, in the order in which they are registered.
    pub fn hooks(&self) -> impl Iterator<Item = &HookEntry> {
        self.hooks.iter().map(|entry| &entry.value)
    }

    /// Returns the tests of the hooks.
    pub fn tests(&self) -> impl Iterator<Item = &BundleTest> {
        self.tests.iter().map(|test| &test.value)
    }

    /// Parses a bundle in which unknown module names may belong to the host.
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
                let problem = format!("invalid `times` `{}`: expected 1 to 1,000", before.times);
                return Err(BundleError::at(case.referenced, problem, text, file));
            }
            let BundleTest { event, expect, .. } = &case.value;
            let events = case.value.before.iter().map(|before| &before.event).chain([event]);
            if let Some(error) = events.filter_map(|event| event.parse::<EventName>().err()).next() {
                return Err(BundleError::at(case.referenced, error.to_string(), text, file));
            }
            if *expect == Expectation::default() {
                let problem = "`expect` is empty: add `decision`, `by`, `says` or `data`";
                return Err(BundleError::at(case.referenced, problem, text, file));
            }
            if let Some(pointer) = expect.data.keys().find(|pointer| !pointer.starts_with('/')) {
                let problem = format!("invalid JSON Pointer `{pointer}` in `expect`: begin with `/`");
                return Err(BundleError::at(case.referenced, problem, text, file));
            }
            let decision = expect.decision.as_deref();
            if let Some(unknown) = decision.filter(|decision| !DECISIONS.contains(decision)) {
                let hint = did_you_mean(unknown, DECISIONS);
                let hint = hint.unwrap_or_else(|| format!("expected one of `{}`", DECISIONS.join("`, `")));
                let problem = format!("unknown decision `{unknown}`; {hint}");
                return Err(BundleError::at(case.referenced, problem, text, file));
            }
        }
        Ok(bundle)
    }
}

/// Treatment of module names that are not built in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostModules {
    Allowed,
    Refused,
}

const DECISIONS: [&str; 5] = ["continue", "modify", "inject_context", "ask_user", "deny"];
