//! The policy of a workspace around a session whose agent is written in Python.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_agent::Cancel;
use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, OpenRequest};
use amplifier_host::{
    ApprovalChannel, ApprovalFanOut, Config, LinkTarget, Notice, Notices, Overrides, Policy, RemoteControl,
    SandboxLevel, ServerLink, Setting, Source, guards, reasons,
};
use amplifier_link::{Command, LinkClient};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::KernelFuture;
use crate::confine::{environment, find_home};
use crate::coordinator::{Coordinator, Part, in_background};
use crate::ports::{MissingApprovals, Port, PyApprovals, PyContext, PyDisplay};
use crate::registry::HookRegistry;
use crate::threads;

/// A session with the policy of its workspace: the hooks of the bundles, the rules, the log, and the link to a server.
#[pyclass(module = "amplifier_core.observation", frozen)]
pub(crate) struct ObservedSession {
    id: String,
    hooks: Py<HookRegistry>,
    kernel: amplifier_core::Coordinator,
    ports: Vec<Arc<Port>>,
    client: Option<LinkClient>,
    workspace: String,
    audit_folder: PathBuf,
    warnings: Vec<String>,
    // A std lock: nothing calls Python while it is held. `None` once the observation has ended.
    running: Mutex<Option<RunningPolicy>>,
}

/// The parts of an observation that end with it.
struct RunningPolicy {
    policy: Policy,
    link: Option<RemoteControl>,
}

/// Sends approval requests to the session's own approval system, to the server, or to both.
enum Approvers {
    Own(PyApprovals),
    Server(LinkClient),
    Both(Box<ApprovalFanOut<PyApprovals, LinkClient>>),
    None,
}

impl ApprovalSystem for Approvers {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        match self {
            Self::Own(own) => own.request_approval(request).await,
            Self::Server(client) => client.request_approval(request).await,
            Self::Both(both) => both.request_approval(request).await,
            Self::None => MissingApprovals.request_approval(request).await,
        }
    }
}

fn unusable(error: &amplifier_host::Error) -> PyErr {
    PyValueError::new_err(reasons(error))
}

/// Loads the policy of a workspace, and registers its hooks with the registry of a session. `commands` receives the commands of the server:
/// `interrupt()` and `end()`.
#[pyfunction]
#[pyo3(signature = (hooks, *, session_id, workspace, home, bundle, mode, confirm, serve, context, approvals, display, commands))]
#[allow(clippy::too_many_arguments, reason = "the parts of a session")]
pub(crate) fn observe_session(
    py: Python<'_>,
    hooks: Py<HookRegistry>,
    session_id: String,
    workspace: PathBuf,
    home: Option<PathBuf>,
    bundle: Option<PathBuf>,
    mode: Option<String>,
    confirm: Option<String>,
    serve: Option<bool>,
    context: Part,
    approvals: Option<Part>,
    display: Option<Part>,
    commands: Py<PyAny>,
) -> PyResult<KernelFuture> {
    threads::start(py)?;
    // A core dump would contain the key of the audit log.
    if let Err(error) = amplifier_process::forbid_core_dumps() {
        tracing::warn!(%error, "cannot disable core dumps");
    }
    let home = find_home(home, true, environment(py).0)?;
    let overrides = Overrides { workspace: Some(workspace), bundle, mode, confirm, ..Overrides::default() };
    let config = Config::load(&overrides, &home).map_err(|error| unusable(&error))?;
    let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
    let list = warnings.clone();
    let notices = Notices::new(move |Notice { text, .. }| {
        tracing::warn!("{text}");
        list.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    });
    let mut ports = Vec::new();
    let mut port = |(object, takes_one): Part| {
        let port = Port::new(object, takes_one);
        ports.push(port.clone());
        port
    };
    let context = PyContext(port(context));
    let own = approvals.map(|approvals| PyApprovals { port: port(approvals), longest: None });
    let display = display.map(|display| PyDisplay(port(display)));
    Ok(KernelFuture::new(async move {
        let registry = hooks.get().kernel.clone();
        let policy = Policy::builder(&config, &home).hooks(registry).notices(notices).load().await;
        let policy = policy.map_err(|error| unusable(&error))?;
        guard(&policy, hooks.get());
        let is_served = serve.unwrap_or(policy.config().approvals == ApprovalChannel::Server);
        let link = is_served.then(|| {
            let target = LinkTarget::Socket { takes_prompts: false };
            ServerLink::open(policy.link_options(), &target, own.is_some())
        });
        let client = link.as_ref().map(|link| link.client.clone());
        let approvers = match (own, &client) {
            (Some(own), Some(client)) => Approvers::Both(Box::new(ApprovalFanOut::new(own, client.clone()))),
            (Some(own), None) => Approvers::Own(own),
            (None, Some(client)) => Approvers::Server(client.clone()),
            (None, None) => Approvers::None,
        };
        let builder = policy.coordinator(&session_id, approvers).context(context).background(in_background);
        let kernel = match display {
            Some(display) => builder.display(display).build(),
            None => builder.build(),
        };
        if let Some(client) = &client {
            client.begin(&session_id, kernel.clone());
            client.set_mode(policy.mode().current().as_str());
            client.set_idle(true);
        }
        let link = link.map(|link| obey(link, commands));
        let workspace = policy.workspace().root().display().to_string();
        let audit_folder = home.audit_folder();
        let running = Mutex::new(Some(RunningPolicy { policy, link }));
        let warnings = std::mem::take(&mut *warnings.lock().unwrap_or_else(PoisonError::into_inner));
        Python::attach(|py| {
            hooks.get().reserve(py, Some(&session_id))?;
            let observed = ObservedSession {
                id: session_id,
                hooks,
                kernel,
                ports,
                client,
                workspace,
                audit_folder,
                warnings,
                running,
            };
            Ok(Py::new(py, observed)?.into_any())
        })
    }))
}

/// Registers the built-in hooks of an agent that runs its tools by itself, outside of the sandbox.
fn guard(policy: &Policy, hooks: &HookRegistry) {
    // Otherwise registered with the policy.
    if policy.sandbox().level == SandboxLevel::Namespaces {
        let home = policy.home().environment().home();
        guards::protect(&hooks.kernel, policy.workspace().clone(), home);
    }
    // The agent's own modules may request approval, so `confirm` is off unless somebody chose it.
    let is_chosen = |setting: &Setting| setting.name == "confirm" && setting.source != Source::Default;
    if policy.config().settings.iter().any(is_chosen) {
        policy.confirm_changes();
    }
}

/// Passes the commands of the server on to Python. Prompts come from the agent's own program.
fn obey(link: ServerLink, commands: Py<PyAny>) -> RemoteControl {
    let commands = Arc::new(commands);
    link.control(&Cancel::default(), move |command| {
        let method = match command {
            Command::Interrupt => "interrupt",
            Command::End => "end",
            Command::Prompt(_) => return,
        };
        let commands = commands.clone();
        threads::with_python(move |py| {
            if let Err(error) = commands.call_method0(py, method) {
                error.write_unraisable(py, None);
            }
        });
    })
}

#[pymethods]
impl ObservedSession {
    /// The coordinator, which emits for the session and routes the results of hooks.
    fn coordinator(slf: &Bound<'_, Self>) -> PyResult<Coordinator> {
        let py = slf.py();
        let observed = slf.get();
        let reserved = PyDict::new(py);
        reserved.set_item("session_id", &observed.id)?;
        let owner = slf.clone().into_any().unbind();
        Ok(Coordinator::of(observed.kernel.clone(), observed.hooks.clone_ref(py), reserved.unbind(), owner))
    }

    /// The workspace of the policy.
    #[getter]
    fn workspace(&self) -> &str {
        &self.workspace
    }

    /// The folder of the audit log.
    #[getter]
    fn audit_folder(&self) -> PathBuf {
        self.audit_folder.clone()
    }

    /// The warnings about the policy, as text.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// `True` if the session is connected to a server, or waits for one.
    #[getter]
    fn is_served(&self) -> bool {
        self.client.is_some()
    }

    /// Shows the session as idle or busy on the server.
    fn set_idle(&self, idle: bool) {
        self.client.iter().for_each(|client| client.set_idle(idle));
    }

    /// Leaves the server, seals the session's part of the log, and closes the log. Calling it again has no effect.
    fn end(slf: &Bound<'_, Self>, reason: String) -> KernelFuture {
        let running = slf.get().running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let this = slf.clone().unbind();
        KernelFuture::new(async move {
            let Some(RunningPolicy { policy, link }) = running else { return Ok(Python::attach(|py| py.None())) };
            let sealed = policy.log().seal(&this.get().id, &reason).await;
            if let Some(link) = link {
                link.close(&reason).await;
            }
            let closed = policy.close().await;
            this.get().hooks.get().release(Some(&this.get().id));
            sealed.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            closed.map_err(|error| PyRuntimeError::new_err(reasons(&error)))?;
            Ok(Python::attach(|py| py.None()))
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hooks)?;
        self.ports.iter().try_for_each(|port| port.visit(&visit))
    }

    fn __clear__(&self) {
        self.ports.iter().for_each(|port| port.clear());
    }
}
