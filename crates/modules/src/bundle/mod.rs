//! Bundles: YAML files with hooks, session settings, tools and tests.

mod case;
mod check;
mod command_paths;
mod diagnostic;
mod entry;
mod error;
mod events;
mod expressions;
mod load;
mod module_config;
mod path_candidates;
mod position;
mod read;
mod recover;
mod register;
mod sandbox;
mod schema;
mod settings;
mod shell_line;
mod stack;
mod subscribe;
mod unmatched_hooks;
mod watch;
mod weakened_guard;
mod workspace_code;
mod yaml_traps;

pub use crate::mistake::{MistakeCode, Severity};
pub use check::BundleCheck;
pub use diagnostic::Diagnostic;
pub use entry::{HookEntry, HookKind, InvalidEntry, OneOrMany};
pub use error::BundleError;
pub use load::{HookDefinition, LoadedBundle};
pub use read::{BundleInput, load, load_hosted, load_pinned};
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

use amplifier_core::Map;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::builtin::Module;

/// The content of a bundle file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bundle {
    /// Other bundles, relative to this one. Their hooks come first.
    #[schemars(with = "Vec<String>")]
    pub(crate) includes: Vec<Spanned<String>>,
    /// Events of other programs, which hooks can name beside the known ones.
    #[schemars(with = "Vec<String>")]
    pub(crate) events: Vec<Spanned<String>>,
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
        bundle.mark_host_modules(foreign);
        match bundle.mistakes(text, file).into_iter().next() {
            Some(mistake) => Err(mistake),
            None => Ok(bundle),
        }
    }

    /// Parses a bundle without the parts that have mistakes. Returns the mistakes, too.
    fn parse_all(text: &str, file: &Path) -> (Self, Vec<BundleError>) {
        let (bundle, mut mistakes) = recover::parse(text, file);
        let unreadable: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
        // An entry without its unreadable part may lack something that it has.
        let is_complete = |mistake: &BundleError| {
            let entries = bundle.hooks.iter().map(|entry| entry.referenced);
            let mut entries = entries.chain(bundle.tests.iter().map(|case| case.referenced));
            let has = |location, line| position::entry_lines(location, text).any(|(number, _)| number == line);
            !entries.any(|location| {
                has(location, mistake.line) && unreadable.iter().any(|unreadable| has(location, *unreadable))
            })
        };
        let of_entries: Vec<_> = bundle.mistakes(text, file).into_iter().filter(is_complete).collect();
        mistakes.extend(of_entries);
        (bundle, mistakes)
    }

    fn mark_host_modules(&mut self, foreign: HostModules) {
        if foreign == HostModules::Allowed {
            for entry in self.hooks.iter_mut().map(|entry| &mut entry.value) {
                entry.is_host_module = entry.module.as_deref().is_some_and(|name| Module::named(name).is_err());
            }
        }
    }

    /// Returns the mistakes that parsing does not find, in the order of the file.
    fn mistakes(&self, text: &str, file: &Path) -> Vec<BundleError> {
        let events = self.events.iter().filter_map(|event| {
            let error = events::declaration_mistake(&event.value)?;
            Some(BundleError::at(event.referenced, error, text, file).coded(MistakeCode::UnknownEvent))
        });
        let hooks = self.hooks.iter().flat_map(|entry| {
            let mistakes = entry.value.mistakes().into_iter();
            mistakes.map(|invalid_entry| BundleError::invalid_entry(entry.referenced, invalid_entry, text, file))
        });
        let tests = self.tests.iter().flat_map(|case| {
            let mistakes = case.value.mistakes().into_iter();
            mistakes.map(|(message, help)| {
                BundleError::at(case.referenced, message, text, file).coded(MistakeCode::Test).helped(help)
            })
        });
        events.chain(hooks).chain(tests).collect()
    }
}

/// Treatment of module names that are not built in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostModules {
    Allowed,
    Refused,
}
