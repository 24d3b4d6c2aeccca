//! Bundles for Python. Their rules, modules and programs run next to hooks that are written in Python.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_audit::Log;
use amplifier_core::{EventName, OnError, SessionConfig};
use amplifier_host::{
    ApprovalMode, Config, Confirm, Environment, Home, ModelChoice, Overrides, Source as SettingSource, bundles,
    reasons, record_change,
};
use amplifier_modules::bundle::{
    self, BundleError, BundleInput, BundleScope, BundleSource, BundleStack, CompiledHook, HookEntry, LoadedBundle,
    RELOAD_HOOK, load_hosted, reload_events,
};
use amplifier_modules::tool_words::{Vocabulary, find};
use amplifier_modules::{HookEnvironment, MODULES, Module};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use crate::audit::AuditLog;
use crate::bridge::KernelFuture;
use crate::fields::read_word;
use crate::provider::{self, RemoteProvider, ScriptedProvider};
use crate::registry::HookRegistry;
use crate::{confine, encode, threads};

/// Converts an error in a bundle to a Python exception, with the file, the line, the column and a caret.
pub(crate) fn mistake(error: &BundleError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A bundle with all included bundles.
#[pyclass(module = "amplifier_core.bundles", frozen)]
pub(crate) struct Bundle {
    loaded: LoadedBundle,
    levels: BundleStack,
    from: BundleOrigin,
}

/// The source from which a bundle can be reloaded.
#[derive(Clone)]
enum BundleOrigin {
    File(PathBuf),
    Text(String, PathBuf),
}

impl BundleOrigin {
    fn source(&self) -> BundleInput<'_> {
        match self {
            Self::File(file) => BundleInput::File(file),
            Self::Text(text, file) => BundleInput::Text(text, file),
        }
    }
}

impl Bundle {
    fn read(from: BundleOrigin) -> PyResult<Self> {
        let loaded = load_hosted(from.source()).map_err(|error| mistake(&error))?;
        Ok(Self::of(bundles::embedded_stack(loaded).map_err(|error| mistake(&error))?, from))
    }

    fn of(levels: BundleStack, from: BundleOrigin) -> Self {
        let own = levels.bundles().find(|(scope, _)| *scope == BundleScope::Explicit);
        Self { loaded: own.map(|(_, loaded)| loaded.clone()).unwrap_or_default(), levels, from }
    }

    fn levels(&self) -> BundleStack {
        self.levels.clone()
    }

    pub(crate) fn loaded(&self) -> &LoadedBundle {
        &self.loaded
    }

    /// Returns the modules that are not part of the package, each with the folder for relative module files.
    pub(crate) fn foreign_modules(&self) -> Vec<(&str, &Path)> {
        let modules =
            self.loaded.hooks.iter().filter_map(|placed| Some((placed.entry.module.as_deref()?, placed.folder())));
        modules.filter(|(name, _)| Module::named(name).is_err()).collect()
    }
}

#[pymethods]
impl Bundle {
    /// Loads a bundle and its includes from a file.
    #[staticmethod]
    fn load(file: PathBuf) -> PyResult<Self> {
        Self::read(BundleOrigin::File(file))
    }

    /// Parses a bundle from text. `file` is its name in errors; relative includes and commands are resolved in its folder.
    #[staticmethod]
    #[pyo3(signature = (text, file=None))]
    fn parse(text: String, file: Option<PathBuf>) -> PyResult<Self> {
        Self::read(BundleOrigin::Text(text, file.unwrap_or_else(|| PathBuf::from("bundle"))))
    }

    /// `True` if the bundle comes from files, which can change.
    #[getter]
    fn has_files(&self) -> bool {
        self.loaded.has_files()
    }

    /// The files of the bundle.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.loaded.files.clone()
    }

    /// The names of the hooks, in order.
    #[getter]
    fn hooks(&self) -> Vec<String> {
        self.loaded.hooks.iter().map(|placed| placed.entry.shown_name()).collect()
    }

    /// Warnings about the bundle, as text.
    fn doubts(&self) -> Vec<String> {
        self.loaded.warnings().iter().map(ToString::to_string).collect()
    }

    /// Warnings about hooks for tools that a session does not have, as text. `tools` are the names of its tools.
    fn unmatched_hooks(&self, tools: Vec<String>) -> Vec<String> {
        let ours = tools.iter().map(|tool| find(Vocabulary::Amplifier, tool).map_or(tool.as_str(), |words| words.ours));
        let ours: Vec<&str> = ours.collect();
        self.loaded.unmatched_hooks(&ours).iter().map(ToString::to_string).collect()
    }

    /// The modules of the bundle that are not part of the package.
    #[getter]
    fn foreign(&self) -> Vec<&str> {
        self.foreign_modules().into_iter().map(|(name, _)| name).collect()
    }

    /// Raises if the durability of an audit log is lower than the bundle requires.
    fn check_log(&self, log: &AuditLog) -> PyResult<()> {
        self.loaded.session.audit.map_or(Ok(()), |wanted| log.check_durability(wanted))
    }

    /// Returns the first model of the bundle, or `None`.
    fn provider<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(entry) = self.loaded.providers.first() else { return Ok(None) };
        if entry.provider.as_str() == "scripted" && entry.script.is_none() {
            return Err(PyValueError::new_err("the provider `scripted` of the bundle needs a `script`"));
        }
        let levels = self.levels();
        let config = session_config_of(&levels, Overrides::default())?;
        let model = config.model(&levels, &Environment::from_process());
        Ok(match model.map_err(|error| PyValueError::new_err(reasons(&error)))? {
            ModelChoice::Unconfigured => None,
            ModelChoice::Script(file) => Some(ScriptedProvider::load(file)?.into_pyobject(py)?.into_any()),
            ModelChoice::Remote { kind, model, base_url, key } => {
                let remote = provider::remote(py, kind.as_str(), &model, key, base_url, None)?;
                Some(RemoteProvider(Arc::new(remote)).into_pyobject(py)?.into_any())
            }
        })
    }

    fn __repr__(&self) -> String {
        let file = self.loaded.files.last().map_or_else(|| Path::new("bundle").display(), |file| file.display());
        format!("<Bundle {file} with {} hooks>", self.loaded.hooks.len())
    }
}

/// Returns the settings of bundles over the defaults, and the overrides over both. The user's configuration file belongs to the command only.
fn session_config_of(levels: &BundleStack, overrides: Overrides) -> PyResult<Config> {
    let invalid = |error| PyValueError::new_err(reasons(&error));
    let overrides = Overrides { workspace: Some("/".into()), ..overrides };
    let config = Config::load(&overrides, &Home::nonexistent()).map_err(invalid)?.with_bundles(levels);
    config.check_mode().map_err(invalid)?;
    Ok(config)
}

/// Returns the settings and tools of a session: those of its bundle, if it has one. `confirm` and `mode` take precedence. Without either, and
/// unless the session `acts` by tools of its own, `confirm` is off.
#[pyfunction]
#[pyo3(signature = (bundle, *, confirm, mode, acts))]
pub(crate) fn session_settings<'py>(
    py: Python<'py>,
    bundle: Option<&Bundle>,
    confirm: Option<&str>,
    mode: Option<&str>,
    acts: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let levels = bundle.map(Bundle::levels).unwrap_or_default();
    let confirm = confirm.map(|word| read_word::<Confirm>("confirm", word)).transpose()?;
    let mode = mode.map(|word| read_word::<ApprovalMode>("mode", word)).transpose()?;
    let overrides = Overrides {
        confirm: confirm.map(|confirm| confirm.to_string()),
        mode: mode.map(|mode| mode.to_string()),
        ..Overrides::default()
    };
    let config = session_config_of(&levels, overrides)?;
    let mut limits = SessionConfig::default();
    if bundle.is_some() {
        // A session that is built from configuration is strict by default.
        (limits.audit_required, limits.forbid_default_allow) = (true, true);
        levels.apply(&mut limits);
    }
    let is_from =
        |name: &str, source| config.settings.iter().any(|setting| setting.name == name && setting.source == source);
    let is_passive = is_from("confirm", SettingSource::Default) && !acts && config.mcp.is_empty();
    let servers: Map<String, Value> = config
        .mcp
        .iter()
        .map(|(name, server)| {
            let server = json!({ "command": server.command, "args": server.args, "env": server.env });
            (name.clone(), server)
        })
        .collect();
    let is_set =
        [SettingSource::Bundle, SettingSource::Managed].into_iter().any(|source| is_from("approval_timeout", source));
    let timeout = is_set.then_some(config.approval_timeout.as_secs_f64());
    let settings = json!({
        "config": limits,
        "orchestrator": config.orchestrator.as_str(),
        "approvals": config.approvals.as_str(),
        "mode": config.mode.as_str(),
        "confirm": if is_passive { Confirm::Off } else { config.confirm }.as_str(),
        "approval_timeout": timeout,
        "system": config.system,
        "only": config.only,
        "mcp": servers,
    });
    encode::to_python(py, &settings)
}

/// The files of a bundle, and the log that records new versions.
struct BundleFiles {
    loaded: LoadedBundle,
    from: BundleOrigin,
    log: Option<Log>,
}

impl BundleSource for BundleFiles {
    fn load(&self) -> Result<BundleStack, BundleError> {
        self.loaded.reload(self.from.source()).and_then(bundles::embedded_stack)
    }

    fn changed(&self, levels: &BundleStack) {
        self.log.iter().for_each(|log| record_change(log, levels));
    }
}

/// The bundle of a session, reloaded when its files change. The caller mounts modules that are written in Python.
#[pyclass(module = "amplifier_core.bundles", frozen)]
pub(crate) struct BundleWatcher {
    kernel: bundle::BundleWatcher,
    host: HookEnvironment,
    from: BundleOrigin,
}

#[pymethods]
impl BundleWatcher {
    /// `audit`, if an `AuditLog`, records new versions. `name_session` is called with the id of a session and the name that a hook gives to
    /// it. Programs of hooks cannot access protected paths.
    #[new]
    #[pyo3(signature = (hooks, bundle, workspace, protection, audit=None, name_session=None))]
    fn new(
        hooks: &HookRegistry,
        bundle: &Bound<'_, Bundle>,
        workspace: PathBuf,
        protection: &confine::Protection,
        audit: Option<&Bound<'_, PyAny>>,
        name_session: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        threads::start(bundle.py())?;
        let mut host = protection.host(&workspace)?;
        if let Some(give) = name_session {
            // Called on another thread without a loop, so the Python function must not need one.
            host = host.name_session(move |id, name| {
                // If the interpreter has ended, so has the session.
                let _ = Python::try_attach(|py| {
                    if let Err(error) = give.call1(py, (id, name)) {
                        error.write_unraisable(py, None);
                    }
                });
            });
        }
        let Bundle { loaded, from, .. } = bundle.get();
        let log = audit.and_then(|audit| audit.cast::<AuditLog>().ok()?.get().log().ok());
        let source = BundleFiles { loaded: loaded.clone(), from: from.clone(), log };
        Ok(Self { kernel: bundle::BundleWatcher::new(&hooks.kernel, host.clone(), source), host, from: from.clone() })
    }

    /// Prepares the first version.
    fn prepare(&self, bundle: Py<Bundle>, py: Python<'_>) -> PyResult<PreparedVersion> {
        let levels = bundle.get().levels();
        // Detached, because components are compiled and launchers are tested here.
        let version = py.detach(|| with_runtime(|| self.kernel.prepare(levels))).map_err(|error| mistake(&error))?;
        Ok(PreparedVersion { version: Mutex::new(Some(version)), bundle })
    }

    /// Reloads the bundle if a file has changed, or `always`. Returns the version to activate, or a `Reload` with the reason for none.
    fn read(&self, always: bool) -> PyResult<KernelFuture> {
        let reading = self.kernel.read(always);
        if always && self.kernel.has_ended() {
            return Err(PyRuntimeError::new_err("the bundle is no longer mounted"));
        }
        if always && reading.is_none() {
            return Err(PyRuntimeError::new_err("the bundle is already being reloaded"));
        }
        let from = self.from.clone();
        Ok(KernelFuture::new(async move {
            let found = match reading {
                Some(reading) => reading.await,
                None => Err(bundle::Reload::default()),
            };
            Python::attach(|py| match found {
                Ok(version) => {
                    let bundle = Py::new(py, Bundle::of(version.stack().clone(), from))?;
                    Ok(Py::new(py, PreparedVersion { version: Mutex::new(Some(version)), bundle })?.into_any())
                }
                Err(unused) => Ok(Py::new(py, Reload::new(unused))?.into_any()),
            })
        }))
    }

    /// Records that a new version cannot be used.
    fn refuse(&self, error: String) -> Reload {
        Reload::new(self.kernel.refuse(error))
    }

    /// Registers a handler that checks for changes. Returns a function that unregisters it.
    #[staticmethod]
    fn follow(hooks: &Bound<'_, HookRegistry>, handler: &Bound<'_, PyAny>) -> PyResult<Vec<Py<PyAny>>> {
        let options = [("name", RELOAD_HOOK), ("role", "observer")].into_py_dict(hooks.py())?;
        let register = |event: EventName| {
            hooks.call_method("register", (event.as_str(), handler), Some(&options)).map(Bound::unbind)
        };
        reload_events().map(register).into_iter().collect()
    }

    /// Unregisters all hooks that are not written in Python, permanently.
    fn unregister(&self) {
        with_runtime(|| self.kernel.unregister());
    }

    /// Waits up to five seconds for background work of hooks, such as notifications.
    fn settle(&self) -> KernelFuture {
        let host = self.host.clone();
        KernelFuture::new(async move {
            // Without a runtime in this process, there is no background work.
            if Handle::try_current().is_ok() {
                host.settle().await;
            }
            Ok(Python::attach(|py| py.None()))
        })
    }
}

fn with_runtime<T>(act: impl FnOnce() -> T) -> T {
    let runtime = threads::handle();
    let _within = runtime.as_ref().map(Handle::enter);
    act()
}

/// A version of a bundle that is ready. Nothing changes until the version is activated.
#[pyclass(module = "amplifier_core.bundles", frozen)]
pub(crate) struct PreparedVersion {
    // A std lock: nothing calls Python while it is held.
    version: Mutex<Option<bundle::PreparedVersion>>,
    #[pyo3(get)]
    bundle: Py<Bundle>,
}

impl PreparedVersion {
    fn version(&self) -> MutexGuard<'_, Option<bundle::PreparedVersion>> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PreparedVersion {
    /// The hooks with Python modules, in order.
    #[getter]
    fn foreign(&self) -> Vec<BundleHook> {
        let version = self.version();
        let hooks = version.iter().flat_map(|version| version.hooks());
        hooks.filter(|hook| hook.host_module().is_some()).cloned().map(BundleHook).collect()
    }

    /// Registers the hooks in order, up to one with a Python module, and returns that one. Its hooks must be registered before the next call.
    fn register(&self) -> PyResult<Option<BundleHook>> {
        let next = self.version().as_mut().map_or(Ok(None), |version| version.register());
        Ok(next.map_err(|error| mistake(&error))?.map(BundleHook))
    }

    /// Activates the version.
    fn commit(&self) -> PyResult<Reload> {
        let version = self.version().take();
        let reload = with_runtime(|| version.and_then(bundle::PreparedVersion::commit));
        reload.map(Reload::new).ok_or_else(|| PyRuntimeError::new_err("the bundle was unmounted meanwhile"))
    }

    /// Drops the version, unless it is active.
    fn drop(&self) {
        let version = self.version().take();
        with_runtime(|| drop(version));
    }
}

/// The result of a reload. Its text form describes the result.
#[pyclass(module = "amplifier_core.bundles", frozen, get_all)]
pub(crate) struct Reload {
    /// `True` if the active hooks or their order changed.
    changed: bool,
    /// The hooks that are unchanged.
    kept: Vec<String>,
    /// The hooks that are new or changed.
    began: Vec<String>,
    /// The hooks that are removed or changed.
    ended: Vec<String>,
    /// The error in the new version, if any. The old version then stays active.
    error: Option<String>,
    /// The level and the text of a message to the user; `None` if nothing changed or the same message was already shown.
    news: Option<(&'static str, String)>,
    text: String,
}

impl Reload {
    fn new(reload: bundle::Reload) -> Self {
        let notice = reload.notice().map(|(level, text)| (level.as_str(), text));
        let text = notice.as_ref().map_or("the hooks of the bundle are as they were", |(_, text)| text).to_owned();
        let news = notice.filter(|_| reload.is_news);
        let bundle::Reload { changes_hooks: changed, kept, began, ended, error, .. } = reload;
        Self { changed, kept, began, ended, error, news, text }
    }
}

#[pymethods]
impl Reload {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        let Self { kept, began, ended, error, .. } = self;
        format!("<Reload: kept {kept:?}, began {began:?}, ended {ended:?}, error {error:?}>")
    }
}

/// A hook of a bundle with a Python module.
#[pyclass(module = "amplifier_core.bundles", frozen)]
pub(crate) struct BundleHook(Arc<CompiledHook>);

#[pymethods]
impl BundleHook {
    /// The identity of the hook in all versions of its bundle.
    #[getter]
    fn who(&self) -> &str {
        self.0.key()
    }

    /// `True` if the hook is unchanged from the previous version and continues to run.
    #[getter]
    fn is_kept(&self) -> bool {
        self.0.is_unchanged()
    }

    /// The module that Python must provide.
    #[getter]
    fn foreign(&self) -> &str {
        self.0.host_module().unwrap_or_default()
    }

    /// The folder of the bundle.
    #[getter]
    fn folder(&self) -> &Path {
        self.0.definition().folder()
    }

    /// The options of the module.
    fn config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = self.0.definition().entry.config.iter().flatten();
        encode::to_dict(py, config.map(|(key, value)| (key.as_str(), value)))
    }

    /// The registration settings in the bundle.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let HookEntry { name, priority, timeout, role, on_error, .. } = &self.0.definition().entry;
        let on_error = on_error.map(OnError::as_str);
        let settings =
            json!({ "name": name, "priority": priority, "timeout": timeout, "role": role, "on_error": on_error });
        let given = settings.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        encode::to_dict(py, given.map(|(key, value)| (key.as_str(), value)))
    }

    /// Returns an error about the module, with its position in the bundle.
    fn problem(&self, text: &str) -> String {
        self.0.definition().problem_in("module", text).to_string()
    }
}

/// Returns the modules of the package: their names, their descriptions, and the JSON Schemas of their options.
#[pyfunction]
pub(crate) fn builtin_modules<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for module in MODULES {
        let module = json!({ "name": module.name, "summary": module.summary, "config": module.schema() });
        list.append(encode::to_python(py, &module)?)?;
    }
    Ok(list)
}

/// Returns the error for an unknown module, with a similar name if there is one.
#[pyfunction]
pub(crate) fn no_module(name: &str) -> String {
    Module::named(name).err().unwrap_or_default()
}
