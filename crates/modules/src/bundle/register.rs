//! Hooks of a bundle, registered.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{
    Action, EventData, EventPattern, Hook, HookError, HookInfo, HookRegistry, HookResult, HookRole, InvalidEventName,
    Level, Map, OnError, Placement, Registration,
};
use amplifier_process::files::FileStatus;
use amplifier_process::sandbox::Sandbox;

use super::hearing::Hearing;
use super::{BundleError, Confinement, HookEntry, HookKind, Loaded, OneOrMany, Placed};
use crate::builtin::{AnyHook, ModuleContext};
use crate::condition::{Condition, ConditionError, Scope};
use crate::host::Host;
use crate::rule::{Rule, RuleError};
use crate::transport::{CommandHook, CommandOptions, HttpHook, HttpOptions, Program, WorkerHook, WorkerOptions};
#[cfg(feature = "wasm")]
use crate::transport::{WasmHook, WasmOptions};
use crate::trust::Held;

impl Loaded {
    /// Registers every hook that is not switched off, in order. Programs run in the folder of the bundle that names them.
    ///
    /// # Errors
    /// If one cannot be compiled; then none stays registered.
    pub fn register(&self, hooks: &HookRegistry, host: &Host) -> Result<Vec<Registration>, BundleError> {
        register_all(&self.compile(host, &[])?, hooks)
    }

    /// What would be wrong with the hooks that are switched off, if they were not.
    pub fn dormant_mistakes(&self, host: &Host) -> Vec<BundleError> {
        let dormant = self.hooks.iter().filter(|placed| placed.entry.enabled == Some(false));
        let mistake = |placed: &Placed| {
            let mut placed = placed.clone();
            placed.entry.enabled = None;
            let mut alone = Self::default();
            alone.hooks.push(placed);
            let error = alone.register(&HookRegistry::new(), host).err()?;
            Some(BundleError { message: format!("it is switched off, and has a mistake: {}", error.message), ..error })
        };
        dormant.filter_map(mistake).collect()
    }

    /// Compiles every hook that is not switched off, in order, and registers none. A hook that is among those of the version `before`, with the same settings and
    /// the same files, [goes on](CompiledHook::is_kept) as it is: its worker is not started anew, and what it counts is not lost.
    pub(super) fn compile(
        &self,
        host: &Host,
        before: &[Arc<CompiledHook>],
    ) -> Result<Vec<Arc<CompiledHook>>, BundleError> {
        let (mut compiled, mut namesakes) = (Vec::new(), HashMap::<String, usize>::new());
        for placed in self.hooks.iter().filter(|placed| placed.entry.enabled != Some(false)) {
            let name = placed.entry.shown_name();
            let earlier = namesakes.entry(name.clone()).or_default();
            let who = format!("{name} {earlier}");
            *earlier += 1;
            let mut placed = placed.clone();
            if let Some(protected) = host.protected_folders().filter(|_| placed.is_own && placed.held.is_none()) {
                let held = placed.hold_own(host, protected).map_err(|error| placed.problem(error.to_string()))?;
                placed.held = Some(Arc::new(held));
            }
            let sameness = Sameness::of(&placed, host.scope.workspace());
            let same = before.iter().find(|hook| hook.who == who && hook.sameness.is_same(&sameness));
            let parts = same.map_or_else(|| parts(&placed, &who, host), |same| Ok(same.parts.clone()))?;
            let (is_kept, scope) = (same.is_some(), host.scope.clone());
            compiled.push(Arc::new(CompiledHook { who, is_kept, sameness, placed, parts, scope }));
        }
        // Made from files, some of them: what was trusted is still what is there.
        for placed in compiled.iter().map(|hook| &hook.placed) {
            placed.held.as_ref().map_or(Ok(()), |held| held.check()).map_err(|why| placed.problem(why))?;
        }
        Ok(compiled)
    }
}

/// Registers hooks in order. If one cannot be registered, none stays.
pub(super) fn register_all(
    compiled: &[Arc<CompiledHook>],
    hooks: &HookRegistry,
) -> Result<Vec<Registration>, BundleError> {
    let mut registered = Registered::default();
    compiled.iter().try_for_each(|hook| hook.register(hooks, &mut registered))?;
    Ok(registered.keep())
}

/// A hook of a bundle that is ready to be registered.
pub struct CompiledHook {
    who: String,
    is_kept: bool,
    sameness: Sameness,
    placed: Placed,
    parts: Vec<Part>,
    scope: Arc<Scope>,
}

impl CompiledHook {
    /// What stands in the bundle, and where.
    pub fn placed(&self) -> &Placed {
        &self.placed
    }

    /// Who it is in all versions of its bundle: its name, and how many of that name are before it.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// `true` if it is that of the version before, and goes on.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The module that the host brings for it, if it is one of those.
    pub fn foreign(&self) -> Option<&str> {
        match self.placed.entry.kind() {
            Ok(HookKind::Foreign(name)) => Some(name),
            _ => None,
        }
    }

    /// The mistake that nobody brings its module.
    pub(super) fn unbrought(&self) -> BundleError {
        let name = self.foreign().unwrap_or_default();
        self.placed.problem_in("module", format!("nothing here brings the module `{name}`"))
    }

    /// Registers it for every event that it hears.
    ///
    /// # Errors
    /// If the host brings it, and therefore registers it.
    pub(super) fn register(&self, hooks: &HookRegistry, registered: &mut Registered) -> Result<(), BundleError> {
        if self.foreign().is_some() {
            return Err(self.unbrought());
        }
        // What its conditions ask about is counted from now on.
        self.scope.count(hooks);
        for part in &self.parts {
            for (event, hearing) in Hearing::all(&part.events, &part.hook) {
                registered.0.push(register(hooks, &self.placed, part, event, hearing)?);
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for CompiledHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledHook").field("who", &self.who).field("is_kept", &self.is_kept).finish_non_exhaustive()
    }
}

/// Registrations that are taken back, unless they are kept.
#[derive(Debug, Default)]
pub(super) struct Registered(Vec<Registration>);

impl Registered {
    pub(super) fn keep(mut self) -> Vec<Registration> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.0.iter().for_each(Registration::unregister);
    }
}

/// All that decides how a hook is made.
struct Sameness {
    entry: HookEntry,
    folder: PathBuf,
    held: Option<Arc<Held>>,
    /// The files that it names, as they are; none if they cannot be told, which is never the same.
    files: Option<Vec<(PathBuf, Option<FileStatus>)>>,
}

impl Sameness {
    fn of(placed: &Placed, workspace: &Path) -> Self {
        let files = placed.named_files(workspace).ok().map(|files| {
            let with_status = |file: PathBuf| {
                let status = FileStatus::from_path(&file).ok();
                (file, status)
            };
            files.into_iter().map(with_status).collect()
        });
        Self { entry: placed.entry.clone(), folder: placed.folder().to_owned(), held: placed.held.clone(), files }
    }

    fn is_same(&self, other: &Self) -> bool {
        let are_held_alike = match (&self.held, &other.held) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => true,
            _ => false,
        };
        let are_files_alike = self.files.is_some() && self.files == other.files;
        self.entry == other.entry && self.folder == other.folder && are_held_alike && are_files_alike
    }
}

/// A hook of an entry, with what holds unless the entry says something else.
#[derive(Clone)]
struct Part {
    events: Vec<String>,
    hook: Arc<BundleHook>,
    priority: i64,
    role: HookRole,
    on_error: OnError,
    timeout: Option<Duration>,
}

fn register(
    hooks: &HookRegistry,
    placed: &Placed,
    part: &Part,
    event: &str,
    hearing: Hearing,
) -> Result<Registration, BundleError> {
    let entry = &placed.entry;
    hooks
        .hook(event)
        .named(entry.shown_name())
        .priority(entry.priority.unwrap_or(part.priority))
        .role(entry.role.unwrap_or(part.role))
        .on_error(entry.on_error.unwrap_or(part.on_error))
        .timeout(part.timeout.filter(|_| entry.timeout.is_none()).unwrap_or_else(|| timeout(placed)))
        .handler(hearing)
        .map_err(|error| invalid_event(placed, &error))
}

fn invalid_event(placed: &Placed, error: &InvalidEventName) -> BundleError {
    placed.problem_in("on", format!("{error}; `amplifier events` lists all events"))
}

fn timeout(placed: &Placed) -> Duration {
    let given = placed.entry.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    given.unwrap_or(HookInfo::TIMEOUT)
}

/// A hook of a bundle.
pub(super) struct BundleHook {
    /// Whether it is called at all. A rule decides that itself.
    condition: Option<Condition>,
    /// What the bundle says about how long its injections stay.
    ephemeral: Option<bool>,
    scope: Arc<Scope>,
    /// The files of the hook, of which a new version may have to be told.
    held: Option<Arc<Held>>,
    answers: Answers,
}

enum Answers {
    Module(Arc<dyn AnyHook>),
    Rule(Box<Rule>),
    Command(CommandHook),
    Worker(WorkerHook),
    Http(Box<HttpHook>),
    #[cfg(feature = "wasm")]
    Wasm(Box<WasmHook>),
}

/// Makes the hooks of an entry: several for a module, one for everything else.
fn parts(placed: &Placed, who: &str, host: &Host) -> Result<Vec<Part>, BundleError> {
    let entry = &placed.entry;
    let problem = |error: &dyn std::fmt::Display| placed.problem(error.to_string());
    let kind = entry.kind().map_err(|misfit| placed.misfit(misfit))?;
    // A rule looks at its condition itself.
    let when = entry.when.as_deref().filter(|_| !matches!(kind, HookKind::Rule(_)));
    let mistaken = |error: ConditionError| placed.problem_in("when", error.to_string());
    let condition = || when.map(Condition::compile).transpose().map_err(mistaken);
    let hook = |answers| {
        let condition = condition()?;
        host.scope.counts().want(condition.iter().flat_map(Condition::counted));
        let (ephemeral, scope, held) = (entry.ephemeral, host.scope.clone(), placed.held.clone());
        Ok(Arc::new(BundleHook { condition, ephemeral, scope, held, answers }))
    };
    let name = entry.shown_name();
    let answers = match kind {
        HookKind::Module(module) => {
            let none = Map::new();
            let (folder, held, is_own) = (placed.folder(), placed.held.clone(), placed.is_own);
            let context = ModuleContext { host, folder, held, is_own, who };
            let parts = module.make(entry.config.as_ref().unwrap_or(&none), &context);
            let parts = parts.map_err(|error| placed.problem_in("config", error))?;
            let parts = parts.into_iter().map(|part| {
                let (priority, role, on_error, timeout) = (part.priority, part.role, part.on_error, part.timeout);
                let hook = hook(Answers::Module(part.hook))?;
                Ok(Part { events: part.events, hook, priority, role, on_error, timeout })
            });
            return parts.collect();
        }
        HookKind::Foreign(_) => return Ok(Vec::new()),
        HookKind::Rule(_) => {
            let rule = Rule::new(entry.rule_options(), host.scope.clone());
            let rule = rule.map_err(|error| mistake(placed, error))?;
            Answers::Rule(Box::new(rule))
        }
        HookKind::Command(command) => {
            let options = CommandOptions {
                timeout: timeout(placed),
                ..CommandOptions::new(name, program(placed, command, host)?)
            };
            Answers::Command(CommandHook::new(options).map_err(|error| problem(&error))?)
        }
        HookKind::Worker(command) => {
            let mut options = WorkerOptions::new(name, program(placed, command, host)?);
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
        #[cfg(feature = "wasm")]
        HookKind::Wasm(component) => {
            let mut options = WasmOptions::new(name, component);
            options.folder = placed.folder().to_owned();
            options.timeout = timeout(placed);
            options.grant = entry.grant.clone().unwrap_or_default();
            options.memory = entry.memory.map_or(options.memory, |mebibytes| mebibytes.saturating_mul(1024 * 1024));
            Answers::Wasm(Box::new(WasmHook::new(options).map_err(|error| problem(&error))?))
        }
        #[cfg(not(feature = "wasm"))]
        HookKind::Wasm(_) => {
            return Err(problem(&"this program was built without `wasm` hooks; build it with `--features wasm`"));
        }
    };
    let events: Vec<String> = entry.on.iter().flat_map(OneOrMany::all).cloned().collect();
    // Found now: where a host brings modules, some of a version are registered before others.
    events
        .iter()
        .try_for_each(|event| event.parse::<EventPattern>().map(drop))
        .map_err(|error| invalid_event(placed, &error))?;
    let (role, on_error) = (HookRole::Gate, OnError::DenyGating);
    Ok(vec![Part { events, hook: hook(answers)?, priority: 0, role, on_error, timeout: None }])
}

/// What is wrong with a rule, by the names that the keys have in a bundle: `timeout` and `role` are others there.
fn mistake(placed: &Placed, error: RuleError) -> BundleError {
    let key_of = |field: &str| match field.split('.').next() {
        Some("timeout") => "ask_timeout".to_owned(),
        Some("role") => "inject_role".to_owned(),
        first => first.unwrap_or("rule").to_owned(),
    };
    let key = error.field_name().map_or_else(|| "rule".to_owned(), key_of);
    let error = match error {
        RuleError::Field { field, problem } if !field.contains('.') => RuleError::Field { field: key.clone(), problem },
        other => other,
    };
    placed.problem_in(&key, error.to_string())
}

/// A text is a line for the shell, a list is a program with its arguments.
fn program(placed: &Placed, command: &OneOrMany, host: &Host) -> Result<Program, BundleError> {
    let program = match command {
        OneOrMany::One(line) => Program::line(line),
        OneOrMany::Many(words) => Program::new(words),
    };
    let sandbox = match &placed.entry.confine {
        Some(Confinement::To(confine)) => host.sandbox_for(confine),
        Some(Confinement::Off(_)) if placed.is_own => Ok(Sandbox::default()),
        Some(Confinement::Off(_)) | None => host.usual_sandbox(&placed.outputs()),
    };
    let sandbox = sandbox.map_err(|error| placed.problem(format!("it cannot be confined: {error}")))?;
    let program = program.sandbox(sandbox).folder(placed.folder()).held(placed.held.clone());
    let program = program.python_path(placed.import_folders(host));
    Ok(placed.entry.env.iter().fold(program, |program, (name, value)| program.variable(name, value)))
}

impl Hook for BundleHook {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if let Some(condition) = &self.condition
            && !condition.holds(event, data, &self.scope)?
        {
            return Ok(HookResult::proceed());
        }
        let mut result = match &self.answers {
            Answers::Module(hook) => hook.answer(event, data).await,
            Answers::Rule(rule) => rule.answer(event, data),
            Answers::Command(hook) => hook.handle(event, data).await,
            Answers::Worker(hook) => hook.handle(event, data).await,
            Answers::Http(hook) => hook.handle(event, data).await,
            #[cfg(feature = "wasm")]
            Answers::Wasm(hook) => hook.handle(event, data).await,
        }?;
        if let (Some(ephemeral), Action::InjectContext(injection)) = (self.ephemeral, &mut result.action) {
            injection.placement = match (ephemeral, injection.placement) {
                // What stands with a tool's result is for one call anyway.
                (_, Placement::LastToolResult) => Placement::LastToolResult,
                (true, _) => Placement::NextCall,
                (false, _) => Placement::History,
            };
        }
        let news = self.held.as_ref().map(|held| held.take_news()).unwrap_or_default();
        if !news.is_empty() {
            let (level, own) =
                result.message.take().map_or((Level::Warning, None), |message| (message.level, Some(message.text)));
            let text = news.into_iter().chain(own).collect::<Vec<_>>().join("\n");
            result = result.message(level.max(Level::Warning), text);
        }
        Ok(result)
    }
}
