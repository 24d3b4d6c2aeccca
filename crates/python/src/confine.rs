//! The sandbox for Python: programs are started through the interpreter as launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use amplifier_agent::tool::{McpServer, Workspace};
use amplifier_core::{ApprovalRuleSource, ApprovalRules, HookRegistry, PortError, Registration, ToolDefinition};
use amplifier_host::{
    ActiveSandbox, ApprovalRuleFiles, Environment, Home, McpDefinitionStore, Notice, Notices, ProtectedPaths,
    ProtectionPlan, SandboxLevel, bundles, guards, reasons,
};
use amplifier_modules::HookEnvironment;
use amplifier_process::files::create_private_folder;
use amplifier_process::sandbox::launch;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::audit::AuditLog;
use crate::bundle::{Bundle, mistake};

/// Runs the program in the arguments in a sandbox and returns the exit code.
#[pyfunction]
pub(crate) fn become_confined(arguments: Vec<OsString>) -> u8 {
    launch(arguments)
}

/// The protected paths of a session, and the sandbox that enforces them for programs.
#[pyclass(frozen, module = "amplifier_core._native")]
pub(crate) struct Protection {
    plan: ProtectionPlan,
    active: ActiveSandbox,
    home: Home,
    is_home_used: bool,
    /// `true` if commands are also analysed, because the sandbox alone does not protect all paths.
    is_guarded: bool,
    /// `true` if programs of hooks run in the sandbox of the agent's commands.
    is_shared: bool,
    warnings: Vec<String>,
}

impl Protection {
    /// Protects paths from file tools and commands.
    pub(crate) fn of(&self, workspace: Workspace) -> Workspace {
        self.plan.protect_workspace(workspace).sandboxed(self.active.sandbox.clone())
    }

    /// Registers the hook that denies commands which would change protected paths, if the sandbox alone cannot prevent that.
    pub(crate) fn guard(&self, hooks: &HookRegistry, workspace: &Workspace) -> Option<Registration> {
        let home = self.home.environment().home();
        self.is_guarded.then(|| guards::protect(hooks, workspace.clone(), home))
    }

    pub(crate) fn sandbox(&self) -> &amplifier_process::sandbox::Sandbox {
        &self.active.sandbox
    }

    /// Returns the approval rules of a session: those from the program, and those in the user's files for this folder, read for each approval
    /// request.
    pub(crate) fn rules(&self, given: ApprovalRules, workspace: &Path) -> PyResult<SessionRules> {
        let files = self.is_home_used.then(|| ApprovalRuleFiles::for_workspace(&self.home, workspace)).transpose();
        let files = files.map_err(|error| PyValueError::new_err(format!("approval rules: {}", reasons(&error))))?;
        Ok(SessionRules { given, files })
    }

    /// Limits rules that allow a tool of an MCP server to the definition for which they were given.
    pub(crate) fn follow_definitions(&self, server: &McpServer) -> PyResult<()> {
        if !self.is_home_used {
            return Ok(());
        }
        let notices = Notices::new(|Notice { text, .. }| tracing::warn!("{text}"));
        let followed = McpDefinitionStore::new(&self.home).follow(server, &notices);
        followed.map_err(|error| PyRuntimeError::new_err(reasons(&error)))
    }

    /// Returns the user's home, if the session uses it.
    pub(crate) fn used_home(&self) -> Option<&Home> {
        self.is_home_used.then_some(&self.home)
    }

    /// Returns the environment of a bundle's hooks.
    pub(crate) fn host(&self, workspace: &Path) -> PyResult<HookEnvironment> {
        let (plan, active) = (self.plan.clone(), self.active.clone());
        let host = match self.is_shared {
            true => bundles::hook_environment(workspace, plan, active),
            false => bundles::unpinned_hook_environment(workspace, plan, active),
        };
        host.map_err(|error| PyOSError::new_err(format!("the workspace cannot be used: {}", reasons(&error))))
    }
}

/// The approval rules from the program and from files.
pub(crate) struct SessionRules {
    given: ApprovalRules,
    files: Option<ApprovalRuleFiles>,
}

impl ApprovalRuleSource for SessionRules {
    async fn active_rules(&self) -> Result<ApprovalRules, PortError> {
        match &self.files {
            Some(files) => Ok(self.given.clone().and(files.active_rules().await?)),
            None => Ok(self.given.clone()),
        }
    }

    fn last_known_rules(&self) -> ApprovalRules {
        let files = self.files.as_ref().map(ApprovalRuleSource::last_known_rules);
        self.given.clone().and(files.unwrap_or_default())
    }

    async fn covers_definition(&self, tool: &ToolDefinition) -> Result<bool, PortError> {
        match &self.files {
            Some(files) => files.covers_definition(tool).await,
            None => Ok(true),
        }
    }

    async fn accept_definition(&self, tool: &ToolDefinition) -> Result<(), PortError> {
        match &self.files {
            Some(files) => files.accept_definition(tool).await,
            None => Ok(()),
        }
    }
}

#[pymethods]
impl Protection {
    /// `bundle`, an `AuditLog` and `store` are protected, together with the user's home; without any of them, only with `confine` or a home
    /// with active rules. `home` overrides the default folder; its rules apply to the session if `is_home_used`. A sandbox is set up if the
    /// session `starts` programs.
    #[new]
    #[pyo3(signature = (workspace, *, bundle=None, audit=None, store=None, home=None, is_home_used=false, confine=None, starts=false))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a session")]
    fn new(
        py: Python<'_>,
        workspace: PathBuf,
        bundle: Option<&Bound<'_, Bundle>>,
        audit: Option<&Bound<'_, PyAny>>,
        store: Option<PathBuf>,
        home: Option<PathBuf>,
        is_home_used: bool,
        confine: Option<bool>,
        starts: bool,
    ) -> PyResult<Self> {
        let log = audit.and_then(|audit| audit.cast::<AuditLog>().ok());
        let is_confined = starts && confine != Some(false);
        let has_something =
            bundle.is_some() || log.is_some() || store.is_some() || is_home_used || confine == Some(true);
        if !has_something {
            let home = Home::nonexistent();
            let active = ActiveSandbox::none("nothing is protected", home.environment());
            let (plan, warnings) = (ProtectionPlan::default(), Vec::new());
            return Ok(Self { plan, active, home, is_home_used, is_guarded: false, is_shared: false, warnings });
        }
        let (environment, launcher) = environment(py);
        let mut own = ProtectedPaths::default();
        let mut unavailable = None;
        match launcher {
            Ok(parts) => own.read_only = parts,
            Err(error) => unavailable = Some(error.value(py).to_string()),
        }
        let home = find_home(home, is_home_used, environment)?;
        if let Some(log) = log {
            let (protected, key) = log.get().paths();
            own.read_only.extend(protected);
            own.hidden.push(key);
        }
        if let Some(store) = store {
            // Missing paths cannot be protected.
            create_private_folder(&store)
                .map_err(|error| PyOSError::new_err(format!("the folder `{}`: {error}", store.display())))?;
            own.read_only.push(store);
        }
        if let Some(bundle) = bundle {
            let (code, names) = code_of(bundle)?;
            own.read_only.extend(code);
            own.reserved = names;
        }
        let loaded = bundle.map(|bundle| bundle.get().loaded());
        // Detached: searches for files, starts a process and waits for it.
        let (plan, active) = py.detach(|| {
            let plan = ProtectionPlan::embedded(own, &home, is_home_used, &workspace, loaded)
                .map_err(|error| PyValueError::new_err(reasons(&error)))?;
            let active = match unavailable {
                Some(reason) => ActiveSandbox::none(reason, home.environment()),
                None if is_confined => ActiveSandbox::find(true, &plan, home.environment()),
                None => ActiveSandbox::none("commands are not to be confined", home.environment()),
            };
            PyResult::Ok((plan, active))
        })?;
        let mut warnings = Vec::new();
        if is_confined {
            if let Some(reason) = active.level.reason().filter(|_| confine == Some(true)) {
                return Err(PyRuntimeError::new_err(format!("sandboxing is not available: {reason}")));
            }
            warnings.extend(active.level.warning());
            if active.level.is_sandbox() {
                warnings.extend(plan.link_warnings());
            }
            if let Some(loose) = warnings.first().filter(|_| confine == Some(true)) {
                return Err(PyRuntimeError::new_err(loose.clone()));
            }
        }
        let is_guarded = is_confined && active.level != SandboxLevel::Namespaces;
        let is_shared = is_confined && active.level.is_sandbox();
        Ok(Self { plan, active, home, is_home_used, is_guarded, is_shared, warnings })
    }

    /// The reasons for reduced protection, as text.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Raises if a new version of the bundle uses a file that is not protected. Protected paths are fixed at the start of a session.
    fn check(&self, bundle: &Bound<'_, Bundle>) -> PyResult<()> {
        let (code, _) = code_of(bundle)?;
        self.plan.check_bundle(bundle.get().loaded(), code).map_err(|error| mistake(&error))
    }
}

/// Returns the environment of this process with the sandbox launcher, and the files of the launcher. A program that can change one of them can
/// escape the sandbox.
pub(crate) fn environment(py: Python<'_>) -> (Environment, PyResult<Vec<PathBuf>>) {
    let environment = Environment::from_process();
    match launcher(py) {
        Ok((words, parts)) => (environment.launcher(words), Ok(parts)),
        Err(error) => (environment, Err(error)),
    }
}

/// Returns the folders of this program: those in `home`, else the default ones. Missing folders are an error only if rules in them apply.
pub(crate) fn find_home(home: Option<PathBuf>, is_used: bool, environment: Environment) -> PyResult<Home> {
    if let Some(folder) = home {
        return Ok(Home::at(std::path::absolute(folder)?).with(environment));
    }
    match Home::find(environment.clone()) {
        Ok(home) => Ok(home),
        Err(_) if !is_used => Ok(Home::nonexistent().with(environment)),
        Err(error) => Err(PyValueError::new_err(format!("{}; or give `home`", reasons(&error)))),
    }
}

fn launcher(py: Python<'_>) -> PyResult<(Vec<OsString>, Vec<PathBuf>)> {
    let module = py.import("amplifier_core._confine")?;
    Ok((module.call_method0("starter")?.extract()?, module.call_method0("parts")?.extract()?))
}

/// Returns the Python code of a bundle's modules, and the paths that would be imported instead of them.
fn code_of(bundle: &Bound<'_, Bundle>) -> PyResult<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut code, mut names) = (Vec::new(), Vec::new());
    let foreign = bundle.get().foreign_modules();
    if !foreign.is_empty() {
        let module = bundle.py().import("amplifier_core._code")?;
        for (name, folder) in foreign {
            code.extend(module.call_method1("code_of", (name, folder))?.extract::<Vec<PathBuf>>()?);
            for before in module.call_method1("names_before", (name,))?.try_iter()? {
                names.push(before?.extract()?);
            }
        }
    }
    Ok((code, names))
}
