//! Bundles, for Python: their rules, modules and programs stand beside hooks that are written in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_core::{HookRole, Registration, SessionConfig};
use amplifier_host::bundles::rename_reserved;
use amplifier_host::{Config, Environment, Home, ModelChoice, Overrides, Source as SettingSource, reasons};
use amplifier_modules::bundle::{BundleError, BundleLevel, Levels, Loaded, Made, Source, load_hosted};
use amplifier_modules::{Host, MODULES, Module};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use crate::audit::AuditLog;
use crate::bridge::Driven;
use crate::provider::{self, RemoteProvider, ScriptedProvider};
use crate::registry::HookRegistry;
use crate::{confine, encode, threads};

/// A mistake in a bundle, as an exception of Python: with the file, the line, the column, and a caret below.
pub(crate) fn mistake(error: &BundleError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A bundle with everything that it includes.
#[pyclass(module = "amplifier_core.bundles", frozen)]
pub(crate) struct Bundle {
    loaded: Loaded,
    from: From,
}

/// Where a bundle can be read anew.
#[derive(Clone)]
enum From {
    File(PathBuf),
    Text(String, PathBuf),
}

impl From {
    fn source(&self) -> Source<'_> {
        match self {
            Self::File(file) => Source::File(file),
            Self::Text(text, file) => Source::Text(text, file),
        }
    }
}

impl Bundle {
    fn read(from: From) -> PyResult<Self> {
        let mut loaded = load_hosted(from.source()).map_err(|error| mistake(&error))?;
        rename_reserved(&mut loaded);
        Ok(Self { loaded, from })
    }

    /// The settings of the bundle, laid over what is usual: the user's configuration file is the command's.
    fn config(&self) -> PyResult<(Config, Levels)> {
        let levels = Levels::new([(BundleLevel::Named, self.loaded.clone())], &[]);
        let overrides = Overrides { workspace: Some("/".into()), ..Overrides::default() };
        let usual =
            Config::load(&overrides, &Home::nowhere()).map_err(|error| PyValueError::new_err(reasons(&error)))?;
        Ok((usual.under(&levels), levels))
    }

    pub(crate) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The modules of the bundle that do not come with the package, each with the folder that it is looked for from if it is a file.
    pub(crate) fn foreign_modules(&self) -> Vec<(&str, &Path)> {
        let modules =
            self.loaded.hooks.iter().filter_map(|placed| Some((placed.entry.module.as_deref()?, placed.folder())));
        modules.filter(|(name, _)| Module::named(name).is_err()).collect()
    }
}

#[pymethods]
impl Bundle {
    /// Loads a bundle from a file, with what it includes.
    #[staticmethod]
    fn load(file: PathBuf) -> PyResult<Self> {
        Self::read(From::File(file))
    }

    /// Reads a bundle from a text. `file` is what it is called in errors; what it includes and runs is looked for from its folder.
    #[staticmethod]
    #[pyo3(signature = (text, file=None))]
    fn parse(text: String, file: Option<PathBuf>) -> PyResult<Self> {
        Self::read(From::Text(text, file.unwrap_or_else(|| PathBuf::from("bundle"))))
    }

    /// Reads it anew from where it was. A file that has been emptied since is a mistake.
    fn renew(&self) -> PyResult<Self> {
        let mut loaded = self.loaded.renew(self.from.source()).map_err(|error| mistake(&error))?;
        rename_reserved(&mut loaded);
        loaded.refuse_emptied(&self.loaded).map_err(|error| mistake(&error))?;
        Ok(Self { loaded, from: self.from.clone() })
    }

    /// Whether its files are as they were read.
    fn is_current(&self) -> bool {
        self.loaded.is_current()
    }

    /// Whether there is a file that can change.
    #[getter]
    fn has_files(&self) -> bool {
        self.loaded.has_files()
    }

    /// The files that were read.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.loaded.files.clone()
    }

    /// What the hooks are called, in order.
    #[getter]
    fn hooks(&self) -> Vec<String> {
        self.loaded.hooks.iter().map(|placed| placed.entry.shown_name()).collect()
    }

    /// What is no mistake, but looks like one, each in words.
    fn doubts(&self) -> Vec<String> {
        self.loaded.doubts().iter().map(ToString::to_string).collect()
    }

    /// The modules of the bundle that do not come with the package.
    #[getter]
    fn foreign(&self) -> Vec<&str> {
        self.foreign_modules().into_iter().map(|(name, _)| name).collect()
    }

    /// The settings and tools of a session with the bundle.
    fn session<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (config, levels) = self.config()?;
        let mut limits = SessionConfig { audit_required: true, forbid_default_allow: true, ..SessionConfig::default() };
        levels.apply(&mut limits);
        let is_said = |name: &str| {
            config.settings.iter().any(|setting| setting.name == name && setting.source == SettingSource::Bundle)
        };
        let servers: Map<String, Value> = config
            .mcp
            .iter()
            .map(|(name, server)| {
                let server = json!({ "command": server.command, "args": server.args, "env": server.env });
                (name.clone(), server)
            })
            .collect();
        let settings = json!({
            "config": limits,
            "orchestrator": config.orchestrator.as_str(),
            "approvals": config.approvals.as_str(),
            "approval_timeout": is_said("approval_timeout").then_some(config.approval_timeout.as_secs_f64()),
            "system": config.system,
            "only": config.only,
            "mcp": servers,
        });
        encode::to_python(py, &settings)
    }

    /// Raises if an audit log is kept less safely than the bundle says.
    fn check_log(&self, log: &AuditLog) -> PyResult<()> {
        self.loaded.session.audit.map_or(Ok(()), |wanted| log.check_durability(wanted))
    }

    /// The first model of the bundle; nothing if it has none.
    fn provider<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(entry) = self.loaded.providers.first() else { return Ok(None) };
        if entry.provider.as_str() == "scripted" && entry.script.is_none() {
            return Err(PyValueError::new_err("the provider `scripted` of the bundle needs a `script`"));
        }
        let (config, levels) = self.config()?;
        let model = config.model(&levels, &Environment::from_process());
        Ok(match model.map_err(|error| PyValueError::new_err(reasons(&error)))? {
            ModelChoice::Nobody => None,
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

/// What the hooks of a bundle find around them, in all its versions.
#[pyclass(module = "amplifier_core.bundles", frozen)]
pub(crate) struct BundleHost(Host);

#[pymethods]
impl BundleHost {
    /// `name_session` is called with the id of a session and the name that a hook gives to it. Programs of hooks are kept from what is protected.
    #[new]
    #[pyo3(signature = (workspace, protection, name_session=None))]
    fn new(workspace: PathBuf, protection: &confine::Protection, name_session: Option<Py<PyAny>>) -> PyResult<Self> {
        let mut host = protection.host(&workspace)?;
        if let Some(give) = name_session {
            // It is called on another thread, which has no loop: what Python does with it must not need one.
            host = host.name_session(move |id, name| {
                // If the interpreter is gone, the session is, too.
                let _ = Python::try_attach(|py| {
                    if let Err(error) = give.call1(py, (id, name)) {
                        error.write_unraisable(py, None);
                    }
                });
            });
        }
        Ok(Self(host))
    }

    /// Makes every hook of a bundle that is not switched off, in order, and registers none. Those of the version `before` that are the same go on.
    #[pyo3(signature = (bundle, before=Vec::new()))]
    fn make(&self, bundle: &Bound<'_, Bundle>, before: Vec<Py<BundleHook>>) -> PyResult<Vec<BundleHook>> {
        let py = bundle.py();
        threads::start(py)?;
        let before: Vec<Arc<Made>> = before.iter().map(|hook| hook.get().0.clone()).collect();
        let (loaded, host) = (&bundle.get().loaded, &self.0);
        // Components are compiled, and launchers tried: others can go on meanwhile.
        let made = py.detach(|| {
            let runtime = threads::handle();
            let _within = runtime.as_ref().map(Handle::enter);
            loaded.make_over(host, before.iter().map(Arc::as_ref))
        });
        Ok(made.map_err(|error| mistake(&error))?.into_iter().map(|made| BundleHook(Arc::new(made))).collect())
    }

    /// Has the end of sessions wait for what hooks began that are gone. Gives what takes that away again, if it is needed and was not there.
    fn outlast(&self, hooks: &HookRegistry) -> Option<Withdraw> {
        Some(Withdraw(Mutex::new(vec![self.0.outlast(&hooks.kernel)?])))
    }

    /// Waits for what hooks do beside the agent, such as notifications, for five seconds at most.
    fn settle(&self) -> Driven {
        let host = self.0.clone();
        Driven::new(async move {
            // Where tokio has ended, or another process has it, nothing is under way.
            if Handle::try_current().is_ok() {
                host.settle().await;
            }
            Ok(Python::attach(|py| py.None()))
        })
    }
}

/// A hook of a bundle that is ready to be registered.
#[pyclass(module = "amplifier_core.bundles", frozen)]
pub(crate) struct BundleHook(Arc<Made>);

#[pymethods]
impl BundleHook {
    /// What it is called.
    #[getter]
    fn name(&self) -> String {
        self.0.placed().entry.shown_name()
    }

    /// Who it is in all versions of its bundle.
    #[getter]
    fn who(&self) -> &str {
        self.0.who()
    }

    /// Whether it is that of the version before, and goes on.
    #[getter]
    fn is_kept(&self) -> bool {
        self.0.is_kept()
    }

    /// The module that Python has to bring for it; nothing if it needs none.
    #[getter]
    fn foreign(&self) -> Option<&str> {
        self.0.foreign()
    }

    /// The folder of its bundle.
    #[getter]
    fn folder(&self) -> &Path {
        self.0.placed().folder()
    }

    /// The options of a module.
    fn config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = self.0.placed().entry.config.iter().flatten();
        encode::to_dict(py, config.map(|(key, value)| (key.as_str(), value)))
    }

    /// What the bundle says about how it is registered.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let entry = &self.0.placed().entry;
        let settings = PyDict::new(py);
        if let Some(name) = &entry.name {
            settings.set_item("name", name)?;
        }
        if let Some(priority) = entry.priority {
            settings.set_item("priority", priority)?;
        }
        if let Some(timeout) = entry.timeout {
            settings.set_item("timeout", timeout)?;
        }
        if let Some(role) = entry.role {
            settings.set_item("role", if role == HookRole::Gate { "gate" } else { "observer" })?;
        }
        if let Some(on_error) = entry.on_error {
            settings.set_item("on_error", on_error.as_str())?;
        }
        Ok(settings)
    }

    /// Something that is wrong with its module, with the place in the bundle.
    fn problem(&self, text: &str) -> String {
        self.0.placed().problem_in("module", text).to_string()
    }

    /// Registers it, and gives a function that takes it away again.
    fn register(&self, hooks: &HookRegistry) -> PyResult<Withdraw> {
        let registered = self.0.register(&hooks.kernel).map_err(|error| mistake(&error))?;
        Ok(Withdraw(Mutex::new(registered)))
    }
}

/// Takes hooks of a bundle away. Calling it twice is harmless.
#[pyclass(module = "amplifier_core.bundles", frozen)]
pub(crate) struct Withdraw(Mutex<Vec<Registration>>);

#[pymethods]
impl Withdraw {
    fn __call__(&self) {
        let runtime = threads::handle();
        let _within = runtime.as_ref().map(Handle::enter);
        let registered = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        registered.iter().for_each(Registration::unregister);
    }
}

/// The modules that come with the package: what each is called, what it does, and the JSON Schema of its options.
#[pyfunction]
pub(crate) fn builtin_modules<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for module in MODULES {
        let module = json!({ "name": module.name, "summary": module.summary, "config": module.schema() });
        list.append(encode::to_python(py, &module)?)?;
    }
    Ok(list)
}

/// Why there is no module of that name, with the name that was meant if one is close.
#[pyfunction]
pub(crate) fn no_module(name: &str) -> String {
    Module::named(name).err().unwrap_or_default()
}
