//! Agent sessions for Python, awaited in the caller's task.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_agent::tool::{McpServer, Tool, Workspace, standard};
use amplifier_agent::{Cancel, CancelLevel, Session, SessionBuilder, SessionError, SessionObserver, Store, TurnEnd};
use amplifier_core::{Approval, Display, DisplayMessage, Level, Map, Message, Registration, Role};
use amplifier_host::guards::{GuardSettings, SessionGuards};
use amplifier_host::{ApprovalMode, DenyAllApprovals};
use amplifier_link::LinkClient;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::json;

use crate::audit::AuditLog;
use crate::bridge::KernelFuture;
use crate::confine::Protection;
use crate::coordinator::{Coordinator, Part, approval_rules, in_background, session_config};
use crate::data::read_timestamp;
use crate::fields::read_word;
use crate::ports::{MissingApprovals, Port, PyApprovals, PyAudit, PyDisplay};
use crate::registry::HookRegistry;
use crate::server::{ServerConnection, ServerOptions};
use crate::timer::running_loop;
use crate::tool::PyTool;
use crate::{encode, options, provider, threads};

/// A session of the agent.
#[pyclass(module = "amplifier_core.session", frozen)]
pub(crate) struct AgentSession {
    hooks: Py<HookRegistry>,
    ports: Vec<Arc<Port>>,
    cancel: Cancel,
    /// Serializes operations, in request order.
    turns: Arc<tokio::sync::Mutex<()>>,
    guards: Mutex<ActiveGuards>,
    // A std lock: nothing calls Python while it is held.
    state: Mutex<SessionState>,
}

enum SessionState {
    Ready(Box<SessionSetup>),
    Starting,
    Running(Arc<RunningSession>),
    /// The conversation stays readable if the session had started.
    Ended(Option<Arc<RunningSession>>),
}

/// The built-in hooks of a session, while it runs.
#[derive(Default)]
struct ActiveGuards {
    /// The hook that denies commands which would change protected paths, if needed.
    protect: Option<Registration>,
    confirm: Option<SessionGuards>,
}

/// The parts of a session before its start.
struct SessionSetup {
    builder: SessionBuilder,
    guards: GuardSettings,
    /// The folder of `confirm`: the workspace, or the current folder.
    folder: Workspace,
    approvals: Option<PyApprovals>,
    server: Option<ServerOptions>,
    servers: BTreeMap<String, McpProgram>,
    workspace: Option<Workspace>,
    protection: Py<Protection>,
}

struct RunningSession {
    session: Session,
    remote: Mutex<Option<ServerConnection>>,
    /// MCP servers that end with the session.
    servers: Mutex<Vec<McpServer>>,
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the session as busy on the server, until dropped.
struct BusyGuard(Option<LinkClient>);

impl BusyGuard {
    fn begin(running: &RunningSession) -> Self {
        let client = lock(&running.remote).as_ref().map(ServerConnection::client);
        client.iter().for_each(|client| client.set_idle(false));
        Self(client)
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.iter().for_each(|client| client.set_idle(true));
    }
}

/// Shows problems on the display.
struct DisplayObserver(Arc<Port>);

impl SessionObserver for DisplayObserver {
    fn warning(&self, text: &str) {
        let display = PyDisplay(self.0.clone());
        let message = DisplayMessage { text: text.to_owned(), level: Level::Error, source: "kernel".to_owned() };
        if Python::attach(|py| running_loop(py).is_some()) {
            in_background(Box::pin(async move {
                // The display logs its own failures.
                _ = display.show_message(&message).await;
            }));
        }
    }
}

/// A session start in progress. Dropped before the session runs, it ends the session.
struct StartGuard(Py<AgentSession>);

impl Drop for StartGuard {
    fn drop(&mut self) {
        let mut state = self.0.get().state();
        if matches!(&*state, SessionState::Starting) {
            *state = SessionState::Ended(None);
            self.0.get().unguard();
        }
    }
}

/// A session end in progress.
struct EndGuard {
    session: Py<AgentSession>,
    is_done: bool,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let mut state = self.session.get().state();
        if let SessionState::Ended(Some(running)) = &*state
            && !self.is_done
        {
            *state = SessionState::Running(running.clone());
        }
    }
}

/// The command of an MCP server.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct McpProgram {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

/// A tool: the function, the name, the description, and the JSON Schema of the input.
type ToolParts<'py> = (Py<PyAny>, String, String, Bound<'py, PyDict>);

impl AgentSession {
    fn state(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }

    fn running(&self) -> PyResult<Arc<RunningSession>> {
        match &*self.state() {
            SessionState::Running(running) => Ok(running.clone()),
            SessionState::Ready(_) | SessionState::Starting => {
                Err(PyRuntimeError::new_err("the session has not started"))
            }
            SessionState::Ended(_) => Err(PyRuntimeError::new_err("the session has ended")),
        }
    }

    /// Returns the session, even if it has ended.
    fn started(&self) -> PyResult<Arc<RunningSession>> {
        match &*self.state() {
            SessionState::Ended(Some(ended)) => return Ok(ended.clone()),
            SessionState::Ready(_) | SessionState::Starting | SessionState::Running(_) | SessionState::Ended(None) => {}
        }
        self.running()
    }

    /// Registers the built-in hooks.
    fn guard(
        &self,
        settings: GuardSettings,
        folder: Workspace,
        workspace: Option<&Workspace>,
        protection: &Protection,
    ) {
        let hooks = self.hooks.get();
        let protect = workspace.and_then(|workspace| protection.guard(&hooks.kernel, workspace));
        let sandbox = protection.sandbox().clone();
        let confirm = SessionGuards::register(&hooks.kernel, settings, folder, sandbox, hooks.guarded.scope());
        *lock(&self.guards) = ActiveGuards { protect, confirm: Some(confirm) };
    }

    fn unguard(&self) {
        let ActiveGuards { protect, confirm } = std::mem::take(&mut *lock(&self.guards));
        protect.iter().for_each(Registration::unregister);
        confirm.iter().for_each(SessionGuards::unregister);
    }

    /// Releases the registry for other sessions.
    fn disconnect(&self, running: &RunningSession) {
        self.unguard();
        self.hooks.get().release(Some(running.session.id()));
    }

    /// Runs an operation of the session in turn, unless the session has ended by then.
    fn with_session<F>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(Arc<RunningSession>) -> F + Send + 'static,
    ) -> PyResult<KernelFuture>
    where
        F: Future<Output = PyResult<Py<PyAny>>> + Send + 'static,
    {
        slf.get().running()?;
        let this = slf.clone().unbind();
        Ok(Self::kernel_future(slf, async move {
            let running = this.get().running()?;
            let _busy = BusyGuard::begin(&running);
            work(running).await
        }))
    }

    /// Converts an operation to a Python awaitable. Cancelling it stops the turn as a user would, so that the record is completed; if the
    /// operation still waits for its turn, nothing is stopped.
    fn kernel_future(
        slf: &Bound<'_, Self>,
        future: impl Future<Output = PyResult<Py<PyAny>>> + Send + 'static,
    ) -> KernelFuture {
        let (cancel, turns) = (slf.get().cancel.clone(), slf.get().turns.clone());
        let has_begun = Arc::new(AtomicBool::new(false));
        let begun = has_begun.clone();
        // Kept alive as long as its parts can be called.
        let this = slf.clone().unbind();
        let future = async move {
            let _alone = turns.lock().await;
            begun.store(true, Ordering::Relaxed);
            let done = future.await;
            drop(this);
            done
        };
        KernelFuture::new(future).stopping(move || {
            let has_begun = has_begun.load(Ordering::Relaxed);
            if has_begun {
                // Gracefully at first, at once at the second request.
                cancel.request();
                cancel.request();
            }
            has_begun
        })
    }
}

impl Drop for AgentSession {
    fn drop(&mut self) {
        if let SessionState::Running(running) = &*self.state() {
            self.disconnect(running);
        }
    }
}

/// Converts a failed start to a Python exception.
fn start_error(error: SessionError) -> PyErr {
    let text = error.to_string();
    match error {
        SessionError::Denied(refusal) => Python::attach(|py| {
            let class = py.import("amplifier_core.session").and_then(|module| module.getattr("SessionRefusedError"));
            match class.and_then(|class| class.call1((text, &*refusal.by, &refusal.reason))) {
                Ok(raised) => PyErr::from_value(raised),
                Err(error) => error,
            }
        }),
        SessionError::Store(_) | SessionError::UnknownTool { .. } | SessionError::TakenName => {
            PyValueError::new_err(text)
        }
        _ => PyRuntimeError::new_err(text),
    }
}

#[pymethods]
impl AgentSession {
    #[new]
    #[pyo3(signature = (hooks, *, provider, tools, place, has_workspace, only, system, confirm, mode, approvals, approval_timeout, display, audit, config, rules, options, orchestrator, servers, store, mount_plan, protection, server))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a session")]
    fn new(
        py: Python<'_>,
        hooks: Py<HookRegistry>,
        provider: &Bound<'_, PyAny>,
        tools: Vec<ToolParts<'_>>,
        place: PathBuf,
        has_workspace: bool,
        only: Vec<Vec<String>>,
        system: Option<String>,
        confirm: &str,
        mode: &str,
        approvals: Option<Part>,
        approval_timeout: Option<f64>,
        display: Option<Part>,
        audit: Option<Part>,
        config: &Bound<'_, PyDict>,
        rules: &Bound<'_, PyDict>,
        options: &Bound<'_, PyDict>,
        orchestrator: &str,
        servers: BTreeMap<String, McpProgram>,
        store: Option<PathBuf>,
        mount_plan: &Bound<'_, PyDict>,
        protection: Py<Protection>,
        server: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        threads::start(py)?;
        // A core dump would contain the provider's key and the key of the audit log.
        if let Err(error) = amplifier_process::forbid_core_dumps() {
            tracing::warn!(%error, "cannot disable core dumps");
        }
        let mut ports = Vec::new();
        let provider = provider::of(provider, &mut ports)?;
        let mut port = |(object, takes_one): Part| {
            let port = Port::new(object, takes_one);
            ports.push(port.clone());
            port
        };
        let mut all: Vec<Arc<dyn Tool>> = Vec::new();
        let shown = place.display();
        let folder = Workspace::new(&place)
            .map_err(|error| PyOSError::new_err(format!("the workspace `{shown}` cannot be used: {error}")))?;
        let folder = protection.get().of(folder);
        if has_workspace {
            all.extend(standard(&folder));
        }
        for (function, name, description, schema) in tools {
            // The session's own tools come later and replace others with the same name.
            all.push(Arc::new(PyTool::new(port((function, true)), name, description, encode::to_kept_map(&schema)?)));
        }
        let cancel = Cancel::default();
        let mut builder = Session::builder(provider)
            .hooks(hooks.get().kernel.clone())
            .tools(all)
            .config(session_config(config)?)
            .approval_rules(protection.get().rules(approval_rules(rules)?, &place)?)
            .options(options::read(options)?)
            .orchestrator(read_word("orchestrator", orchestrator)?)
            .cancel(cancel.clone())
            .background(in_background)
            .mount_plan(encode::to_kept_map(mount_plan)?);
        for names in only {
            builder = builder.only(names);
        }
        if let Some(system) = system {
            builder = builder.system(system);
        }
        let longest = approval_timeout.map(seconds).transpose()?;
        let guards = GuardSettings {
            confirm: read_word("confirm", confirm)?,
            timeout: longest.unwrap_or(Approval::TIMEOUT),
            mode: read_word("mode", mode)?,
        };
        let approvals = approvals.map(|approvals| PyApprovals { port: port(approvals), longest });
        if let Some(display) = display {
            let display = port(display);
            builder = builder.observer(DisplayObserver(display.clone())).display(PyDisplay(display));
        }
        let mut log = None;
        if let Some(audit) = audit {
            builder = match audit.0.bind(py).cast::<AuditLog>() {
                Ok(own) => builder.audit(log.insert(own.get().log()?).clone()),
                Err(_) => builder.recorder(PyAudit(port(audit))),
            };
        }
        if let Some(folder) = store {
            builder = builder.store(Store::new(folder));
        }
        let server = server.map(|commands| {
            let home = protection
                .get()
                .used_home()
                .ok_or_else(|| unseen("a home, in which the server is: leave out `home=False`"))?;
            let log = log.ok_or_else(|| unseen("an `AuditLog` as `audit`, which has who answered what"))?;
            let commands = Arc::new(commands);
            PyResult::Ok(ServerOptions {
                home: home.clone(),
                workspace: place,
                log,
                commands,
                longest,
                mode: guards.mode,
            })
        });
        let server = server.transpose()?;
        let workspace = has_workspace.then(|| folder.clone());
        let ready = SessionSetup { builder, guards, folder, approvals, server, servers, workspace, protection };
        let state = Mutex::new(SessionState::Ready(Box::new(ready)));
        Ok(Self { hooks, ports, cancel, turns: Arc::default(), guards: Mutex::default(), state })
    }

    /// Starts a new session, resumes a stored one, or forks one.
    #[pyo3(signature = (resume=None, fork=None, turn=None))]
    fn start(
        slf: &Bound<'_, Self>,
        resume: Option<String>,
        fork: Option<String>,
        turn: Option<u64>,
    ) -> PyResult<KernelFuture> {
        let ready = {
            let mut state = slf.get().state();
            match std::mem::replace(&mut *state, SessionState::Starting) {
                SessionState::Ready(ready) => ready,
                other => {
                    *state = other;
                    return Err(PyRuntimeError::new_err("the session has already started"));
                }
            }
        };
        let this = slf.clone().unbind();
        let begin = async move {
            let SessionSetup { mut builder, guards, folder, approvals, server, servers, workspace, protection } =
                *ready;
            let protection = protection.get();
            this.get().guard(guards, folder, workspace.as_ref(), protection);
            let sandbox = protection.sandbox();
            sandbox.prepare();
            let mut started = Vec::new();
            for (name, McpProgram { command, args, env }) in servers {
                let server = McpServer::start_in(sandbox, &name, &command, &args, &env).await;
                let server = server.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
                protection.follow_definitions(&server)?;
                builder = builder.tools(server.tools());
                started.push(server);
            }
            let (builder, remote) = match (server, approvals) {
                _ if guards.mode == ApprovalMode::Deny => (builder.approvals(DenyAllApprovals), None),
                (Some(server), own) => {
                    let (builder, remote) = server.connect(builder, own, &this.get().cancel);
                    (builder, Some(remote))
                }
                (None, Some(own)) => (builder.approvals(own), None),
                (None, None) => (builder.approvals(MissingApprovals), None),
            };
            let session = match (resume, fork) {
                (Some(id), _) => builder.resume(&id).await,
                (None, Some(id)) => builder.fork(&id, turn).await,
                (None, None) => builder.start().await,
            };
            let session = match (session, &remote) {
                (Ok(session), None) => session,
                (Ok(session), Some(remote)) => {
                    remote.started(&session);
                    session
                }
                (Err(error), _) => {
                    if let Some(remote) = remote {
                        remote.close("error").await;
                    }
                    return Err(start_error(error));
                }
            };
            let running =
                Arc::new(RunningSession { session, remote: Mutex::new(remote), servers: Mutex::new(started) });
            let session = this.get();
            if let Some(guards) = &lock(&session.guards).confirm {
                guards.begin(running.session.id());
            }
            Python::attach(|py| {
                session.hooks.get().reserve(py, Some(running.session.id()))?;
                *session.state() = SessionState::Running(running);
                Ok(py.None())
            })
        };
        let starting = StartGuard(slf.clone().unbind());
        Ok(Self::kernel_future(slf, async move {
            let begun = begin.await;
            drop(starting);
            begun
        }))
    }

    /// Runs a turn. Returns its status, the text, and the source of and the reason for a denial.
    fn prompt(
        slf: &Bound<'_, Self>,
        prompt: &Bound<'_, PyString>,
        metadata: &Bound<'_, PyDict>,
    ) -> PyResult<KernelFuture> {
        // Terminal input may contain invalid characters; the rest is kept.
        let prompt = prompt.to_string_lossy().into_owned();
        let metadata = encode::to_kept_map(metadata)?;
        Self::with_session(slf, async move |running| {
            let end = running.session.prompt_with(&prompt, metadata).await;
            Python::attach(|py| turn_result(py, &end))
        })
    }

    /// Calls a tool outside of a turn. Returns the call id, the success, the result, and the text for the model.
    fn execute_tool(slf: &Bound<'_, Self>, name: String, input: &Bound<'_, PyDict>) -> PyResult<KernelFuture> {
        let input = encode::to_kept_map(input)?;
        Self::with_session(slf, async move |running| {
            let used = running.session.execute_tool(&name, input).await;
            Python::attach(|py| {
                let result = used.result.map(|result| encode::to_python(py, &result)).transpose()?;
                Ok((used.id, used.success, result, used.text).into_pyobject(py)?.into_any().unbind())
            })
        })
    }

    /// Summarizes the conversation now. Returns `None`, or the reason for a failure.
    fn compact(slf: &Bound<'_, Self>) -> PyResult<KernelFuture> {
        Self::with_session(slf, async |running| {
            let compacted = running.session.compact().await;
            Python::attach(|py| match compacted {
                Ok(()) => Ok(py.None()),
                Err(end) => turn_result(py, &end),
            })
        })
    }

    /// Ends the session and seals its part of the audit log. If cancelled earlier, the session continues.
    fn end(slf: &Bound<'_, Self>, reason: String) -> PyResult<KernelFuture> {
        let running = slf.get().running()?;
        *slf.get().state() = SessionState::Ended(Some(running.clone()));
        let mut ending = EndGuard { session: slf.clone().unbind(), is_done: false };
        Ok(KernelFuture::new(async move {
            let sealed = running.session.end_shared(&reason).await;
            ending.is_done = true;
            ending.session.get().disconnect(&running);
            drop(std::mem::take(&mut *lock(&running.servers)));
            drop(ending);
            // The last turn may have requested approval there.
            let remote = lock(&running.remote).take();
            if let Some(remote) = remote {
                remote.close(&reason).await;
            }
            sealed.map_err(|error| PyOSError::new_err(error.to_string()))?;
            Ok(Python::attach(|py| py.None()))
        }))
    }

    /// Stops the running turn: gracefully at first, at once when called again. Returns which of both.
    fn cancel(&self) -> &'static str {
        match &*self.state() {
            // Nothing to stop yet, and a later start must not be stopped.
            SessionState::Ready(_) => CancelLevel::Graceful.as_str(),
            SessionState::Starting | SessionState::Running(_) | SessionState::Ended(_) => {
                self.cancel.request().as_str()
            }
        }
    }

    /// `True` if the session has ended completely.
    #[getter]
    fn has_ended(&self) -> bool {
        matches!(&*self.state(), SessionState::Ended(_))
    }

    /// The id of the session.
    #[getter]
    fn id(&self) -> PyResult<String> {
        Ok(self.started()?.session.id().to_owned())
    }

    /// The number of tokens used so far, including sub-agents.
    #[getter]
    fn tokens(&self) -> PyResult<u64> {
        Ok(self.started()?.session.tokens())
    }

    /// The names of the tools.
    #[getter]
    fn tools(&self) -> PyResult<Vec<String>> {
        Ok(self.started()?.session.tools().map(str::to_owned).collect())
    }

    /// The conversation so far.
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for message in self.started()?.session.history() {
            let message = serde_json::to_value(message).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let message = encode::to_python(py, &message)?;
            let metadata = message.cast::<PyDict>()?.get_item("metadata")?;
            if let Some(metadata) = metadata.and_then(|metadata| metadata.cast_into::<PyDict>().ok()) {
                // Those of hooks are the kernel's; others are as they were given.
                if metadata
                    .get_item("source")?
                    .is_some_and(|source| source.extract::<&str>().is_ok_and(|by| by == "hook"))
                {
                    read_timestamp(&metadata)?;
                }
            }
            list.append(message)?;
        }
        Ok(list)
    }

    /// Adds a message to the conversation.
    fn add_message(&self, role: &str, content: &Bound<'_, PyString>, metadata: &Bound<'_, PyDict>) -> PyResult<()> {
        let metadata: Map = encode::to_kept_map(metadata)?;
        let role: Role = read_word("role", role)?;
        let message = json!({ "role": role, "content": content.to_string_lossy(), "metadata": metadata });
        let message: Message =
            serde_json::from_value(message).map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.running()?.session.add_message(message);
        Ok(())
    }

    /// The coordinator, which emits for the session and routes the results of hooks.
    fn coordinator(slf: &Bound<'_, Self>) -> PyResult<Coordinator> {
        let py = slf.py();
        let running = slf.get().started()?;
        let kernel = running.session.coordinator().clone();
        let reserved = reserved_fields(py, running.session.id())?;
        Ok(Coordinator::of(kernel, slf.get().hooks.clone_ref(py), reserved, slf.clone().into_any().unbind()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hooks)?;
        self.ports.iter().try_for_each(|port| port.visit(&visit))
    }

    fn __clear__(&self) {
        self.ports.iter().for_each(|port| port.clear());
    }
}

/// Returns the error for a part that a server connection requires.
fn unseen(missing: &str) -> PyErr {
    PyValueError::new_err(format!("a session with a server needs {missing}; or set `serve=False`"))
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn reserved_fields(py: Python<'_>, id: &str) -> PyResult<Py<PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("session_id", id)?;
    Ok(fields.unbind())
}

fn turn_result(py: Python<'_>, end: &TurnEnd) -> PyResult<Py<PyAny>> {
    let (by, reason) = match end {
        TurnEnd::Denied(refusal) => (Some(&*refusal.by), Some(refusal.reason.as_str())),
        TurnEnd::Failed(error) => (None, Some(error.as_str())),
        TurnEnd::Answered(_) | TurnEnd::Interrupted => (None, None),
    };
    let how = match end {
        TurnEnd::Answered(_) => "answered",
        TurnEnd::Denied(_) => "refused",
        TurnEnd::Interrupted => "interrupted",
        TurnEnd::Failed(_) => "failed",
    };
    Ok((how, end.text(), by, reason).into_pyobject(py)?.into_any().unbind())
}
