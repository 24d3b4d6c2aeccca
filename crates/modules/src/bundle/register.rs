//! Hooks of a bundle, registered.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookInfo, HookRegistry, HookResult, HookRole, OnError, Registration};

use super::{BundleError, HookKind, Loaded, OneOrMany, Placed};
use crate::condition::{Condition, Scope};
use crate::rule::Rule;
use crate::transport::{CommandHook, CommandOptions, HttpHook, HttpOptions, Program, WorkerHook, WorkerOptions};

impl Loaded {
    /// Registers every hook that is not switched off, in order. Programs run in the folder of the bundle that names them.
    ///
    /// # Errors
    /// If one cannot be made; then none stays registered.
    pub fn register(&self, hooks: &HookRegistry, scope: &Arc<Scope>) -> Result<Vec<Registration>, BundleError> {
        let mut made = Vec::new();
        for placed in self.hooks.iter().filter(|placed| placed.entry.enabled != Some(false)) {
            made.push((placed, Arc::new(BundleHook::new(placed, scope)?)));
        }
        let mut registrations = Vec::new();
        for (placed, hook) in made {
            for event in placed.entry.on.iter().flat_map(OneOrMany::all) {
                match register(hooks, placed, event, hook.clone()) {
                    Ok(registration) => registrations.push(registration),
                    Err(error) => {
                        registrations.iter().for_each(Registration::unregister);
                        return Err(error);
                    }
                }
            }
        }
        Ok(registrations)
    }
}

fn register(
    hooks: &HookRegistry,
    placed: &Placed,
    event: &str,
    hook: Arc<BundleHook>,
) -> Result<Registration, BundleError> {
    let entry = &placed.entry;
    // A rule that fails must not let through what it stands against.
    let fails = if entry.rule.is_some() { OnError::Deny } else { OnError::Continue };
    hooks
        .hook(event)
        .named(entry.shown_name())
        .priority(entry.priority.unwrap_or(0))
        .role(entry.role.unwrap_or(HookRole::Gate))
        .on_error(entry.on_error.unwrap_or(fails))
        .timeout(timeout(placed))
        .handler(hook)
        .map_err(|error| placed.problem(format!("{error}; `amplifier events` lists all events")))
}

fn timeout(placed: &Placed) -> Duration {
    let given = placed.entry.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    given.unwrap_or(HookInfo::TIMEOUT)
}

/// A hook of a bundle.
struct BundleHook {
    /// Whether it is called at all. A rule decides that itself.
    condition: Option<Condition>,
    scope: Arc<Scope>,
    answers: Answers,
}

enum Answers {
    Rule(Box<Rule>),
    Command(CommandHook),
    Worker(WorkerHook),
    Http(Box<HttpHook>),
}

impl BundleHook {
    fn new(placed: &Placed, scope: &Arc<Scope>) -> Result<Self, BundleError> {
        let entry = &placed.entry;
        let problem = |error: &dyn std::fmt::Display| placed.problem(error.to_string());
        let kind = entry.kind().map_err(|error| placed.problem(error))?;
        let condition = match (&entry.when, &kind) {
            (Some(when), kind) if !matches!(kind, HookKind::Rule(_)) => {
                Some(Condition::compile(when).map_err(|error| problem(&error))?)
            }
            _ => None,
        };
        let name = entry.shown_name();
        let answers = match kind {
            HookKind::Rule(_) => {
                let rule = Rule::new(entry.rule_options(), scope.clone()).map_err(|error| problem(&error))?;
                Answers::Rule(Box::new(rule))
            }
            HookKind::Command(command) => {
                let options =
                    CommandOptions { timeout: timeout(placed), ..CommandOptions::new(name, program(placed, command)) };
                Answers::Command(CommandHook::new(options).map_err(|error| problem(&error))?)
            }
            HookKind::Worker(command) => {
                let mut options = WorkerOptions::new(name, program(placed, command));
                options.timeout = timeout(placed);
                options.workers = entry.workers.unwrap_or(options.workers);
                Answers::Worker(WorkerHook::new(options).map_err(|error| problem(&error))?)
            }
            HookKind::Http(url) => {
                let mut options = HttpOptions::new(name, url);
                options.timeout = timeout(placed);
                for (header, value) in &entry.headers {
                    options = options.header(header, value);
                }
                Answers::Http(Box::new(HttpHook::new(options).map_err(|error| problem(&error))?))
            }
        };
        Ok(Self { condition, scope: scope.clone(), answers })
    }
}

/// A text is a line for the shell, a list is a program with its arguments.
fn program(placed: &Placed, command: &OneOrMany) -> Program {
    let folder = placed.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let program = match command {
        OneOrMany::One(line) => Program::line(line),
        OneOrMany::Many(words) => Program::new(words),
    };
    let program = program.folder(folder);
    placed.entry.env.iter().fold(program, |program, (name, value)| program.variable(name, value))
}

impl Hook for BundleHook {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if let Some(condition) = &self.condition
            && !condition.holds(event, data, &self.scope)?
        {
            return Ok(HookResult::proceed());
        }
        match &self.answers {
            Answers::Rule(rule) => rule.answer(event, data),
            Answers::Command(hook) => hook.handle(event, data).await,
            Answers::Worker(hook) => hook.handle(event, data).await,
            Answers::Http(hook) => hook.handle(event, data).await,
        }
    }
}
