//! Registration of a bundle's hooks.

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

use super::subscribe::PatternHook;
use super::{BundleError, Confinement, HookDefinition, HookEntry, HookKind, LoadedBundle, MistakeCode, OneOrMany};
use crate::builtin::{AnyHook, ModuleContext};
use crate::condition::{Condition, ConditionError, Scope};
use crate::environment::HookEnvironment;
use crate::rule::{Rule, RuleError};
use crate::transport::{
    CommandHook, CommandOptions, HttpHook, HttpOptions, NatsHook, NatsOptions, Program, WorkerHook, WorkerOptions,
};
#[cfg(feature = "wasm")]
use crate::transport::{WasmHook, WasmOptions};
use crate::trust::PinnedFiles;

impl LoadedBundle {
    /// Registers every enabled hook, in order. Programs run in the workspace.
    ///
    /// # Errors
    /// If a hook cannot be compiled; then none stays registered.
    pub fn register(&self, hooks: &HookRegistry, host: &HookEnvironment) -> Result<Vec<Registration>, BundleError> {
        register_all(&self.compile(host, &[])?, hooks)
    }

    /// Compiles every enabled hook, in order, without registering. A hook with the same settings and files in the version `before` is
    /// [reused](CompiledHook::is_unchanged): its worker keeps running, and its counts are not lost.
    pub(super) fn compile(
        &self,
        host: &HookEnvironment,
        before: &[Arc<CompiledHook>],
    ) -> Result<Vec<Arc<CompiledHook>>, BundleError> {
        let (mut compiled, mut same_names) = (Vec::new(), HashMap::<String, usize>::new());
        for definition in self.hooks.iter().filter(|definition| definition.entry.enabled != Some(false)) {
            let name = definition.entry.shown_name();
            let earlier = same_names.entry(name.clone()).or_default();
            let key = format!("{name} {earlier}");
            *earlier += 1;
            let mut definition = definition.clone();
            if let Some(protected) =
                host.protected_folders().filter(|_| definition.is_own && definition.pinned_files.is_none())
            {
                let pinned_files = definition
                    .pin_user_files(host, protected)
                    .map_err(|error| definition.problem(error.to_string()))?;
                definition.pinned_files = Some(Arc::new(pinned_files));
            }
            let fingerprint = HookFingerprint::new(&definition, host.scope.workspace());
            let same = before.iter().find(|hook| hook.key == key && hook.fingerprint.is_same(&fingerprint));
            let parts = same.map_or_else(|| compile_parts(&definition, &key, host), |same| Ok(same.parts.clone()))?;
            let (is_unchanged, scope) = (same.is_some(), host.scope.clone());
            compiled.push(Arc::new(CompiledHook { key, is_unchanged, fingerprint, definition, parts, scope }));
        }
        // Some hooks were compiled from files, which must still be unchanged.
        for definition in compiled.iter().map(|hook| &hook.definition) {
            definition
                .pinned_files
                .as_ref()
                .map_or(Ok(()), |pinned_files| pinned_files.check())
                .map_err(|why| definition.problem(why))?;
        }
        Ok(compiled)
    }
}

pub(super) fn register_all(
    compiled: &[Arc<CompiledHook>],
    hooks: &HookRegistry,
) -> Result<Vec<Registration>, BundleError> {
    let mut registered = RegistrationGuard::default();
    compiled.iter().try_for_each(|hook| hook.register(hooks, &mut registered))?;
    Ok(registered.keep())
}

/// A compiled hook of a bundle, ready for registration.
pub struct CompiledHook {
    key: String,
    is_unchanged: bool,
    fingerprint: HookFingerprint,
    definition: HookDefinition,
    parts: Vec<CompiledPart>,
    scope: Arc<Scope>,
}

impl CompiledHook {
    /// Returns the definition in the bundle.
    pub fn definition(&self) -> &HookDefinition {
        &self.definition
    }

    /// Returns the identity of the hook in all versions of its bundle: its name, and the number of earlier hooks with that name.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// `true` if the hook of the previous version is reused.
    pub fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// Returns the module, if the host provides it.
    pub fn host_module(&self) -> Option<&str> {
        match self.definition.entry.kind() {
            Ok(HookKind::HostModule(name)) => Some(name),
            _ => None,
        }
    }

    pub(super) fn missing_host_module(&self) -> BundleError {
        let name = self.host_module().unwrap_or_default();
        self.definition.problem_in("module", format!("module `{name}` is not available in this program"))
    }

    /// Registers the hook for all its events.
    ///
    /// # Errors
    /// If the host provides the hook, and must register it.
    pub(super) fn register(&self, hooks: &HookRegistry, registered: &mut RegistrationGuard) -> Result<(), BundleError> {
        if self.host_module().is_some() {
            return Err(self.missing_host_module());
        }
        // Events used by its conditions are counted from now on.
        self.scope.count(hooks);
        for part in &self.parts {
            for (event, pattern_hook) in PatternHook::all(&part.events, &part.hook) {
                registered.0.push(register(hooks, &self.definition, part, event, pattern_hook)?);
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for CompiledHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledHook")
            .field("key", &self.key)
            .field("is_unchanged", &self.is_unchanged)
            .finish_non_exhaustive()
    }
}

/// Unregisters hooks when dropped, unless [`keep`](Self::keep) was called.
#[derive(Debug, Default)]
pub(super) struct RegistrationGuard(Vec<Registration>);

impl RegistrationGuard {
    pub(super) fn keep(mut self) -> Vec<Registration> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        self.0.iter().for_each(Registration::unregister);
    }
}

/// Fingerprint of a hook definition; equal fingerprints keep the running hook on reload.
struct HookFingerprint {
    entry: HookEntry,
    folder: PathBuf,
    pinned_files: Option<Arc<PinnedFiles>>,
    /// Status of its files; `None` if unknown, which never equals another.
    files: Option<Vec<(PathBuf, Option<FileStatus>)>>,
}

impl HookFingerprint {
    fn new(definition: &HookDefinition, workspace: &Path) -> Self {
        let files = definition.named_files(workspace).ok().map(|files| {
            let with_status = |file: PathBuf| {
                let status = FileStatus::from_path(&file).ok();
                (file, status)
            };
            files.into_iter().map(with_status).collect()
        });
        Self {
            entry: definition.entry.clone(),
            folder: definition.folder().to_owned(),
            pinned_files: definition.pinned_files.clone(),
            files,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let has_same_pins = match (&self.pinned_files, &other.pinned_files) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => true,
            _ => false,
        };
        let has_same_files = self.files.is_some() && self.files == other.files;
        self.entry == other.entry && self.folder == other.folder && has_same_pins && has_same_files
    }
}

/// One hook of an entry, with its defaults.
#[derive(Clone)]
struct CompiledPart {
    events: Vec<String>,
    hook: Arc<BundleHook>,
    priority: i64,
    role: HookRole,
    on_error: OnError,
    timeout: Option<Duration>,
}

fn register(
    hooks: &HookRegistry,
    definition: &HookDefinition,
    part: &CompiledPart,
    event: &str,
    pattern_hook: PatternHook,
) -> Result<Registration, BundleError> {
    let entry = &definition.entry;
    hooks
        .hook(event)
        .named(entry.shown_name())
        .priority(entry.priority.unwrap_or(part.priority))
        .role(entry.role.unwrap_or(part.role))
        .on_error(entry.on_error.unwrap_or(part.on_error))
        .timeout(part.timeout.filter(|_| entry.timeout.is_none()).unwrap_or_else(|| timeout(definition)))
        .handler(pattern_hook)
        .map_err(|error| invalid_event(definition, &error))
}

fn invalid_event(definition: &HookDefinition, error: &InvalidEventName) -> BundleError {
    let several = definition.entry.on.iter().flat_map(OneOrMany::all).find(|event| event.contains([',', ' ']));
    let help = match several.map(|event| event.split([',', ' ']).filter(|name| !name.is_empty()).collect::<Vec<_>>()) {
        Some(names) if names.iter().all(|name| name.parse::<EventPattern>().is_ok()) => {
            format!("write a list: `on: [{}]`", names.join(", "))
        }
        _ => "`amplifier events` lists all events".to_owned(),
    };
    definition.problem_in("on", error.to_string()).coded(MistakeCode::UnknownEvent).helped(Some(help))
}

fn timeout(definition: &HookDefinition) -> Duration {
    let given = definition.entry.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    given.unwrap_or(HookInfo::TIMEOUT)
}

pub(super) struct BundleHook {
    /// The `when` condition; rules check their own.
    condition: Option<Condition>,
    /// Overrides the placement of injections.
    ephemeral: Option<bool>,
    scope: Arc<Scope>,
    /// Files of the hook; a notice about a new version is added to the result.
    pinned_files: Option<Arc<PinnedFiles>>,
    backend: HookBackend,
}

enum HookBackend {
    Module(Arc<dyn AnyHook>),
    Rule(Box<Rule>),
    Command(CommandHook),
    Worker(WorkerHook),
    Http(Box<HttpHook>),
    Nats(NatsHook),
    #[cfg(feature = "wasm")]
    Wasm(Box<WasmHook>),
}

/// Compiles the hooks of an entry: several for a module, otherwise one.
fn compile_parts(
    definition: &HookDefinition,
    key: &str,
    host: &HookEnvironment,
) -> Result<Vec<CompiledPart>, BundleError> {
    let entry = &definition.entry;
    let problem = |error: &dyn std::fmt::Display| definition.problem(error.to_string());
    let kind = entry.kind().map_err(|invalid_entry| definition.invalid_entry(invalid_entry))?;
    // A rule checks its own condition.
    let when = entry.when.as_deref().filter(|_| !matches!(kind, HookKind::Rule(_)));
    let when_error = |error: ConditionError| definition.expression_error("when", &error);
    let condition = || when.map(Condition::compile).transpose().map_err(when_error);
    let hook = |backend| {
        let condition = condition()?;
        host.scope.counts().track(condition.iter().flat_map(Condition::counted_events));
        let (ephemeral, scope, pinned_files) = (entry.ephemeral, host.scope.clone(), definition.pinned_files.clone());
        Ok(Arc::new(BundleHook { condition, ephemeral, scope, pinned_files, backend }))
    };
    let name = entry.shown_name();
    let workspace = Some(host.scope.workspace().to_owned());
    let backend = match kind {
        HookKind::Module(module) => {
            let none = Map::new();
            let (folder, pinned_files, is_own) =
                (definition.folder(), definition.pinned_files.clone(), definition.is_own);
            let context = ModuleContext { host, folder, held: pinned_files, is_own, who: key };
            let parts = module.make(entry.config.as_ref().unwrap_or(&none), &context);
            let parts = parts.map_err(|error| definition.problem_in("config", error))?;
            let parts = parts.into_iter().map(|part| {
                let (priority, role, on_error, timeout) = (part.priority, part.role, part.on_error, part.timeout);
                let hook = hook(HookBackend::Module(part.hook))?;
                Ok(CompiledPart { events: part.events, hook, priority, role, on_error, timeout })
            });
            return parts.collect();
        }
        HookKind::HostModule(_) => return Ok(Vec::new()),
        HookKind::Rule(_) => {
            let rule = Rule::new(entry.rule_options(), host.scope.clone());
            let rule = rule.map_err(|error| rule_error(definition, error))?;
            HookBackend::Rule(Box::new(rule))
        }
        HookKind::Command(command) => {
            let options = CommandOptions {
                workspace,
                timeout: timeout(definition),
                ..CommandOptions::new(name, program(definition, command, host)?)
            };
            HookBackend::Command(CommandHook::new(options).map_err(|error| problem(&error))?)
        }
        HookKind::Worker(command) => {
            let mut options = WorkerOptions::new(name, program(definition, command, host)?);
            options.workspace = workspace;
            options.timeout = timeout(definition);
            options.workers = entry.workers.unwrap_or(options.workers);
            HookBackend::Worker(WorkerHook::new(options).map_err(|error| problem(&error))?)
        }
        HookKind::Http(url) => {
            let mut options = HttpOptions::new(name, url);
            options.workspace = workspace;
            options.timeout = timeout(definition);
            for (header, value) in &entry.headers {
                options = options.header(header, value);
            }
            HookBackend::Http(Box::new(HttpHook::new(options).map_err(|error| problem(&error))?))
        }
        HookKind::Nats(service) => {
            let missing = "services of a fleet are not available here; use a program with the feature `fleet`, and set `fleet` in the configuration";
            let services = host.remote_hooks.clone().ok_or_else(|| problem(&missing))?;
            let options = NatsOptions { workspace, timeout: timeout(definition), ..NatsOptions::new(name, service) };
            HookBackend::Nats(NatsHook::new(options, services).map_err(|error| problem(&error))?)
        }
        #[cfg(feature = "wasm")]
        HookKind::Wasm(component) => {
            let mut options = WasmOptions::new(name, component);
            options.folder = definition.folder().to_owned();
            options.workspace = workspace;
            options.timeout = timeout(definition);
            options.grant = entry.grant.clone().unwrap_or_default();
            options.memory = entry.memory.map_or(options.memory, |mebibytes| mebibytes.saturating_mul(1024 * 1024));
            HookBackend::Wasm(Box::new(WasmHook::new(options).map_err(|error| problem(&error))?))
        }
        #[cfg(not(feature = "wasm"))]
        HookKind::Wasm(_) => {
            return Err(problem(&"this program was built without `wasm` hooks; rebuild with `--features wasm`"));
        }
    };
    let events: Vec<String> = entry.on.iter().flat_map(OneOrMany::all).cloned().collect();
    // Checked before registration: with host modules, some hooks are registered before others.
    events
        .iter()
        .try_for_each(|event| event.parse::<EventPattern>().map(drop))
        .map_err(|error| invalid_event(definition, &error))?;
    let (role, on_error) = (HookRole::Gate, OnError::DenyGating);
    Ok(vec![CompiledPart { events, hook: hook(backend)?, priority: 0, role, on_error, timeout: None }])
}

/// Converts an error of a rule to the key names of bundles, where `timeout` and `role` differ.
fn rule_error(definition: &HookDefinition, error: RuleError) -> BundleError {
    let key_of = |field: &str| match field.split('.').next() {
        Some("timeout") => "ask_timeout".to_owned(),
        Some("role") => "inject_role".to_owned(),
        first => first.unwrap_or("rule").to_owned(),
    };
    if let RuleError::Expression { field, error } = &error {
        return definition.expression_error(field, error);
    }
    let key = error.field_name().map_or_else(|| "rule".to_owned(), key_of);
    let error = match error {
        RuleError::Field { field, problem } if !field.contains('.') => RuleError::Field { field: key.clone(), problem },
        other => other,
    };
    definition.problem_in(&key, error.to_string()).coded(MistakeCode::Rule)
}

/// Returns the program: a text is a shell line, a list is a program with arguments.
fn program(definition: &HookDefinition, command: &OneOrMany, host: &HookEnvironment) -> Result<Program, BundleError> {
    let program = match definition.absolute_command(command) {
        OneOrMany::One(line) => Program::line(line),
        OneOrMany::Many(words) => Program::new(words),
    };
    let sandbox = match &definition.entry.confine {
        Some(Confinement::To(confine)) => host.sandbox_for(confine),
        Some(Confinement::Off(_)) if definition.is_own => Ok(Sandbox::default()),
        Some(Confinement::Off(_)) | None => host.default_sandbox(&definition.outputs(host.scope.workspace())),
    };
    let sandbox = sandbox.map_err(|error| definition.problem(format!("it cannot be confined: {error}")))?;
    let program = program.sandbox(sandbox).folder(host.scope.workspace()).pinned_files(definition.pinned_files.clone());
    let program = program.python_path(definition.import_folders(host));
    let variables = definition.entry.env.iter();
    Ok(variables.fold(program, |program, (name, value)| program.variable(name, definition.absolute_value(value))))
}

impl Hook for BundleHook {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if let Some(condition) = &self.condition
            && !condition.holds(event, data, &self.scope)?
        {
            return Ok(HookResult::proceed());
        }
        let mut result = match &self.backend {
            HookBackend::Module(hook) => hook.answer(event, data).await,
            HookBackend::Rule(rule) => rule.answer(event, data),
            HookBackend::Command(hook) => hook.handle(event, data).await,
            HookBackend::Worker(hook) => hook.handle(event, data).await,
            HookBackend::Http(hook) => hook.handle(event, data).await,
            HookBackend::Nats(hook) => hook.handle(event, data).await,
            #[cfg(feature = "wasm")]
            HookBackend::Wasm(hook) => hook.handle(event, data).await,
        }?;
        if let (Some(ephemeral), Action::InjectContext(injection)) = (self.ephemeral, &mut result.action) {
            injection.placement = match (ephemeral, injection.placement) {
                // Text with a tool's result is for one call anyway.
                (_, Placement::LastToolResult) => Placement::LastToolResult,
                (true, _) => Placement::NextCall,
                (false, _) => Placement::History,
            };
        }
        let notices = self.pinned_files.as_ref().map(|pinned_files| pinned_files.take_notices()).unwrap_or_default();
        if !notices.is_empty() {
            let (level, own) =
                result.message.take().map_or((Level::Warning, None), |message| (message.level, Some(message.text)));
            let text = notices.into_iter().chain(own).collect::<Vec<_>>().join("\n");
            result = result.message(level.max(Level::Warning), text);
        }
        Ok(result)
    }
}
