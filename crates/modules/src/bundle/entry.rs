//! One hook of a bundle.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use amplifier_core::{DefaultDecision, FlatOption, HookRole, Level, Map, OnError, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sandbox::{self, Confinement};
use crate::builtin::Module;
use crate::rule::{ModifyOptions, RuleOptions};
use crate::transport::{Grant, shown_address};

/// One hook of a bundle: exactly one of `module`, `rule`, `command`, `worker`, `http`, `nats` and `wasm`, and its registration options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HookEntry {
    /// Name of a built-in module, or of a module that the host provides.
    pub module: Option<String>,
    /// Name of a rule, which is a condition and an action.
    pub rule: Option<String>,
    /// A program run for each event.
    pub command: Option<OneOrMany>,
    /// A program that keeps running.
    pub worker: Option<OneOrMany>,
    /// Address of a server.
    pub http: Option<String>,
    /// Name of a service of the fleet.
    pub nats: Option<String>,
    /// File of a sandboxed component, relative to the bundle.
    pub wasm: Option<String>,

    /// Name of the hook. Default: the name of the rule, the service or the component's file, the program, or the address without secrets.
    pub name: Option<String>,
    /// Events: one or several names or patterns.
    pub on: Option<OneOrMany>,
    /// Condition in CEL; the hook is called only if it holds.
    pub when: Option<String>,
    /// Hooks of lower priority run earlier.
    pub priority: Option<i64>,
    /// Time limit of one call, in seconds.
    pub timeout: Option<f64>,
    /// Effect of a failure: `continue` or `deny`.
    pub on_error: Option<OnError>,
    /// `gate` for a hook that can change the outcome, or `observer`.
    pub role: Option<HookRole>,
    /// `true` if its injections are for the next call only; overrides the hook's own choice.
    pub ephemeral: Option<bool>,
    /// `false` to disable the hook.
    pub enabled: Option<bool>,

    /// Modules: options.
    pub config: Option<Map>,

    /// Rules: deny the operation, with this reason.
    pub deny: Option<String>,
    /// Rules: request approval, with this prompt.
    pub ask: Option<String>,
    /// Rules: answers offered to the user.
    pub options: Option<Vec<FlatOption>>,
    /// Rules: seconds to wait for the answer.
    pub ask_timeout: Option<f64>,
    /// Rules: decision after the timeout: `deny` or `allow`.
    pub default: Option<DefaultDecision>,
    /// Rules: changes to the data.
    pub modify: Option<ModifyOptions>,
    /// Rules: text to add to the model's context.
    pub inject: Option<String>,
    /// Rules: role of that text: `system`, `user` or `assistant`.
    pub inject_role: Option<Role>,
    /// Rules: append that text to the last tool's result, for the next call only.
    pub append_to_last_tool_result: Option<bool>,
    /// Rules: message to the user.
    pub message: Option<String>,
    /// Rules: urgency of the message: `info`, `warning` or `error`.
    pub level: Option<Level>,
    /// Rules: reason for the approval request, change or injection.
    pub reason: Option<String>,

    /// Programs: additional environment variables.
    pub env: BTreeMap<String, String>,
    /// Programs: limits of their sandbox, or, in the user's own bundles, `false` for no sandbox. Default: the sandbox of the agent's commands.
    #[serde(deserialize_with = "sandbox::read")]
    pub confine: Option<Confinement>,
    /// Programs: required files that their command does not name, such as imports. Trust pins these, too.
    pub files: Vec<String>,
    /// Workers: number of processes, up to 64.
    #[schemars(range(min = 1, max = 64))]
    pub workers: Option<usize>,
    /// Servers: request headers; `${NAME}` is an environment variable.
    pub headers: BTreeMap<String, String>,
    /// Components: resources they can access; none by default.
    pub grant: Option<Grant>,
    /// Components: memory limit of a call, in MiB.
    pub memory: Option<usize>,

    #[serde(skip)]
    pub(super) is_host_module: bool,
}

const WORKERS: RangeInclusive<usize> = 1..=64;

const KINDS: &str = "`module`, `rule`, `command`, `worker`, `http`, `nats` and `wasm`";

/// One text, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub enum OneOrMany {
    /// One text.
    One(String),
    /// Several texts.
    Many(Vec<String>),
}

impl OneOrMany {
    /// Returns all texts.
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// An invalid hook entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidEntry {
    /// The invalid key; `None` for the whole entry.
    pub key: Option<&'static str>,
    /// Description of the problem.
    pub problem: String,
}

impl InvalidEntry {
    fn whole(problem: impl Into<String>) -> Self {
        Self { key: None, problem: problem.into() }
    }

    fn at(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key: Some(key), problem: problem.into() }
    }
}

/// The kind of a hook, with its main setting.
#[derive(Clone, Debug, PartialEq)]
pub enum HookKind<'a> {
    /// A built-in module.
    Module(&'static Module),
    /// A module that the host provides, by name: see [`load_hosted`](super::load_hosted).
    HostModule(&'a str),
    /// A rule.
    Rule(&'a str),
    /// A program run for each event.
    Command(&'a OneOrMany),
    /// A program that keeps running.
    Worker(&'a OneOrMany),
    /// A server.
    Http(&'a str),
    /// A service of the fleet.
    Nats(&'a str),
    /// A component.
    Wasm(&'a str),
}

impl HookEntry {
    /// Returns the kind of the hook.
    ///
    /// # Errors
    /// If the entry has no kind or several, or settings that do not apply to its kind.
    pub fn kind(&self) -> Result<HookKind<'_>, InvalidEntry> {
        let kind = self.find_kind()?;
        match self.misfits(&kind).into_iter().next() {
            Some(misfit) => Err(misfit),
            None => Ok(kind),
        }
    }

    /// Returns all mistakes of the entry that [`kind`](Self::kind) finds.
    pub(super) fn mistakes(&self) -> Vec<InvalidEntry> {
        self.find_kind().map_or_else(|mistake| vec![mistake], |kind| self.misfits(&kind))
    }

    fn find_kind(&self) -> Result<HookKind<'_>, InvalidEntry> {
        let module = match self.module.as_deref() {
            Some(name) if self.is_host_module => Some(HookKind::HostModule(name)),
            Some(name) => {
                Some(HookKind::Module(Module::named(name).map_err(|problem| InvalidEntry::at("module", problem))?))
            }
            None => None,
        };
        let kinds = [
            module,
            self.rule.as_deref().map(HookKind::Rule),
            self.command.as_ref().map(HookKind::Command),
            self.worker.as_ref().map(HookKind::Worker),
            self.http.as_deref().map(HookKind::Http),
            self.nats.as_deref().map(HookKind::Nats),
            self.wasm.as_deref().map(HookKind::Wasm),
        ];
        let mut kinds = kinds.into_iter().flatten();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(kind),
            (None, _) => Err(InvalidEntry::whole(format!("missing kind of hook: expected one of {KINDS}"))),
            (Some(_), Some(_)) => Err(InvalidEntry::whole(format!("several kinds of hook: expected one of {KINDS}"))),
        }
    }

    /// Returns the settings that do not fit the kind, or have invalid values.
    fn misfits(&self, kind: &HookKind<'_>) -> Vec<InvalidEntry> {
        let mut misfits = Vec::new();
        let is_rule = matches!(kind, HookKind::Rule(_));
        let rule_keys = [
            ("deny", self.deny.is_some()),
            ("ask", self.ask.is_some()),
            ("options", self.options.is_some()),
            ("ask_timeout", self.ask_timeout.is_some()),
            ("default", self.default.is_some()),
            ("modify", self.modify.is_some()),
            ("inject", self.inject.is_some()),
            ("inject_role", self.inject_role.is_some()),
            ("append_to_last_tool_result", self.append_to_last_tool_result.is_some()),
            ("message", self.message.is_some()),
            ("level", self.level.is_some()),
            ("reason", self.reason.is_some()),
        ];
        let foreign = rule_keys.iter().filter(|(_, given)| *given && !is_rule);
        misfits.extend(foreign.map(|(key, _)| InvalidEntry::at(key, format!("`{key}` applies to rules only"))));
        let kind_keys = [
            ("config", self.config.is_some(), matches!(kind, HookKind::Module(_) | HookKind::HostModule(_)), "module"),
            ("env", !self.env.is_empty(), matches!(kind, HookKind::Command(_) | HookKind::Worker(_)), "command"),
            ("confine", self.confine.is_some(), matches!(kind, HookKind::Command(_) | HookKind::Worker(_)), "command"),
            ("files", !self.files.is_empty(), matches!(kind, HookKind::Command(_) | HookKind::Worker(_)), "command"),
            ("workers", self.workers.is_some(), matches!(kind, HookKind::Worker(_)), "worker"),
            ("headers", !self.headers.is_empty(), matches!(kind, HookKind::Http(_)), "http"),
            ("grant", self.grant.is_some(), matches!(kind, HookKind::Wasm(_)), "wasm"),
            ("memory", self.memory.is_some(), matches!(kind, HookKind::Wasm(_)), "wasm"),
        ];
        let foreign = kind_keys.iter().filter(|(_, given, fits, _)| *given && !fits);
        let applies = |(key, _, _, of): &(&'static str, bool, bool, &str)| {
            InvalidEntry::at(key, format!("`{key}` applies to hooks of the kind `{of}` only"))
        };
        misfits.extend(foreign.map(applies));
        // The host calls the hooks of its own modules.
        let unsupported = [("when", self.when.is_some()), ("ephemeral", self.ephemeral.is_some())];
        if let HookKind::HostModule(name) = kind {
            let problem = |key: &str| format!("`{key}` applies to built-in modules only, not to `{name}`");
            let given = unsupported.iter().filter(|(_, given)| *given);
            misfits.extend(given.map(|(key, _)| InvalidEntry::at(key, problem(key))));
        }
        let does = [&self.deny, &self.ask, &self.inject, &self.message].iter().any(|text| text.is_some());
        if is_rule && !does && self.modify.is_none() {
            misfits.push(InvalidEntry::whole(
                "missing action of the rule: expected `deny`, `ask`, `modify`, `inject` or `message`",
            ));
        }
        let has_no_event = self.on.as_ref().is_none_or(|on| on.all().is_empty());
        let module = match kind {
            HookKind::Module(module) => Some(module.name),
            HookKind::HostModule(name) => Some(*name),
            _ => None,
        };
        if let Some(name) = module {
            if self.on.is_some() {
                let problem = format!("`on` does not apply to modules: `{name}` selects its own events");
                misfits.push(InvalidEntry::at("on", problem));
            }
        } else if has_no_event {
            misfits.push(InvalidEntry::at(
                "on",
                "`on` is missing: name the events of the hook; `amplifier events` lists all",
            ));
        }
        let is_time = |seconds: f64| Duration::try_from_secs_f64(seconds).is_ok_and(|timeout| !timeout.is_zero());
        if self.timeout.is_some_and(|seconds| !is_time(seconds)) {
            misfits
                .push(InvalidEntry::at("timeout", "invalid `timeout`: expected a finite number of seconds above zero"));
        }
        let is_empty = |text: &Option<String>| text.as_deref().is_some_and(|text| text.trim().is_empty());
        for (key, text) in [("name", &self.name), ("rule", &self.rule)] {
            if is_empty(text) {
                misfits.push(InvalidEntry::at(
                    key,
                    format!("`{key}` is empty: expected a name, which approval requests and records show"),
                ));
            }
        }
        let runs_nothing = |command: &OneOrMany| command.all().first().is_none_or(|first| first.trim().is_empty());
        for (key, command) in [("command", &self.command), ("worker", &self.worker)] {
            if command.as_ref().is_some_and(runs_nothing) {
                misfits.push(InvalidEntry::at(key, format!("`{key}` is empty: name a program")));
            }
        }
        if self.workers.is_some_and(|workers| !WORKERS.contains(&workers)) {
            let problem = format!("invalid `workers`: expected {} to {}", WORKERS.start(), WORKERS.end());
            misfits.push(InvalidEntry::at("workers", problem));
        }
        misfits
    }

    /// Returns the options of the rule; meaningful for rules only.
    pub(crate) fn rule_options(&self) -> RuleOptions {
        let entry = self.clone();
        RuleOptions {
            when: entry.when,
            deny: entry.deny,
            ask: entry.ask,
            options: entry.options,
            timeout: entry.ask_timeout,
            default: entry.default,
            modify: entry.modify,
            inject: entry.inject,
            role: entry.inject_role,
            // All hooks can have `ephemeral`, which concerns injections only.
            ephemeral: entry.ephemeral.filter(|_| self.inject.is_some()),
            append_to_last_tool_result: entry.append_to_last_tool_result,
            message: entry.message,
            level: entry.level,
            reason: entry.reason,
        }
    }

    /// Returns the program, if the entry names it by a path. A shell line that begins with more than a word has none.
    pub(super) fn named_program(&self) -> Option<&str> {
        let program = match self.command.as_ref().or(self.worker.as_ref())? {
            OneOrMany::One(line) => line.split_whitespace().next(),
            OneOrMany::Many(words) => words.first().map(String::as_str),
        };
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
        program.filter(|program| program.contains('/') && program.chars().all(is_plain))
    }

    /// Returns the name of the hook, given or derived from its kind.
    pub fn shown_name(&self) -> String {
        let program = |line: &OneOrMany| line.all().first().map(|first| first.to_owned());
        let of_kind = match self.kind() {
            Ok(HookKind::Module(module)) => Some(module.name.to_owned()),
            Ok(HookKind::Rule(name) | HookKind::HostModule(name) | HookKind::Nats(name)) => Some(name.to_owned()),
            Ok(HookKind::Http(url)) => Some(shown_address(url)),
            Ok(HookKind::Command(line) | HookKind::Worker(line)) => program(line),
            Ok(HookKind::Wasm(file)) => Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned()),
            Err(_) => None,
        };
        self.name.clone().or(of_kind).unwrap_or_else(|| "hook".to_owned())
    }
}
