//! Parts of a session that are written in Python, called through their documented methods, which may be async.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amplifier_core::Clock as _;
use amplifier_core::{
    Actor, ApprovalAnswer, ApprovalError, ApprovalSystem, AuditLog, AuditRecord, ChosenRule, ContextManager, Display,
    DisplayMessage, InjectedMessage, Placement, PortError, Receipt,
};
use amplifier_host::guards::CONFIRM;
use futures::future::{Either, select};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};

use crate::approval::ApprovalRequest;
use crate::bridge::{CallFuture, ask, note_interrupt};
use crate::clock::LoopClock;
use crate::data::read_timestamp;
use crate::hook::failure;
use crate::person_wait::track_blocking_wait;
use crate::{encode, log, threads, trace};

/// A Python object that the kernel uses.
pub(crate) struct Port {
    // A std lock: nothing calls Python while it is held. Cleared by the garbage collector.
    object: Mutex<Option<Py<PyAny>>>,
    /// `true` if the method takes a single object.
    takes_one: bool,
}

impl Port {
    pub(crate) fn new(object: Py<PyAny>, takes_one: bool) -> Arc<Self> {
        Arc::new(Self { object: Mutex::new(Some(object)), takes_one })
    }

    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Skipped if in use.
        self.object.try_lock().map_or(Ok(()), |object| visit.call(&*object))
    }

    pub(crate) fn clear(&self) {
        let object = self.object.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(object);
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let object =
            self.object.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|object| object.clone_ref(py));
        object
            .map(|object| object.into_bound(py))
            .ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("this part of the session is gone"))
    }
}

/// Converts an exception of a part to an error and logs it with its traceback, which the kernel does not have.
fn failed(part: &str, error: &PyErr) -> PortError {
    Python::attach(|py| {
        log_failure(py, part, error);
        trace::is_logged(part);
        failure(py, error).to_string().into()
    })
}

/// Logs an exception unless it is an interrupt, which propagates.
fn log_failure(py: Python<'_>, part: &str, error: &PyErr) {
    if error.is_instance_of::<PyException>(py) {
        log::part_failed(py, part, &failure(py, error), Some(error));
    }
}

pub(crate) struct PyContext(pub(crate) Arc<Port>);

impl ContextManager for PyContext {
    async fn add_message(&self, message: InjectedMessage) -> Result<(), PortError> {
        let asked = ask(|py| {
            let metadata = encode::to_dict(py, message.metadata().iter().map(|(key, value)| (key.as_str(), value)))?;
            read_timestamp(&metadata)?;
            if message.placement.is_ephemeral() {
                metadata.set_item("ephemeral", true)?;
            }
            if message.placement == Placement::LastToolResult {
                metadata.set_item("append_to_last_tool_result", true)?;
            }
            if let Some(id) = &message.tool_call_id {
                metadata.set_item("tool_call_id", id)?;
            }
            let whole = PyDict::new(py);
            whole.set_item("role", message.role.as_str())?;
            whole.set_item("content", &message.content)?;
            whole.set_item("metadata", metadata)?;
            let manager = self.0.object(py)?;
            CallFuture::of(match self.0.takes_one {
                true => manager.call_method1("add_message", (whole,))?,
                false => manager.call_method("add_message", (), Some(&whole))?,
            })
        });
        asked.await.map(drop).map_err(|error| failed("context", &error))
    }
}

pub(crate) struct PyDisplay(pub(crate) Arc<Port>);

impl Display for PyDisplay {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        let asked = ask(|py| {
            let fields = PyDict::new(py);
            fields.set_item("message", &message.text)?;
            fields.set_item("level", message.level.as_str())?;
            fields.set_item("source", &message.source)?;
            CallFuture::of(self.0.object(py)?.call_method("show_message", (), Some(&fields))?)
        });
        asked.await.map(drop).map_err(|error| failed("display", &error))
    }
}

pub(crate) struct PyApprovals {
    pub(crate) port: Arc<Port>,
    /// The maximum time for an answer, regardless of the hook.
    pub(crate) longest: Option<Duration>,
}

impl ApprovalSystem for PyApprovals {
    async fn request_approval(
        &self,
        request: Arc<amplifier_core::OpenRequest>,
    ) -> Result<ApprovalAnswer, ApprovalError> {
        let timeout = self.longest.map_or(request.timeout, |longest| longest.min(request.timeout));
        let asked = ask(|py| {
            let system = self.port.object(py)?;
            let question = ApprovalRequest(request.clone(), timeout);
            if self.port.takes_one {
                return CallFuture::of(track_blocking_wait(|| system.call_method1("ask", (question,)))?);
            }
            let fields = PyDict::new(py);
            fields.set_item("prompt", &request.prompt)?;
            fields.set_item("options", request.options.iter().map(|option| &option.label).collect::<Vec<_>>())?;
            fields.set_item("timeout", timeout.as_secs_f64())?;
            fields.set_item("default", question.default())?;
            CallFuture::of(track_blocking_wait(|| system.call_method("request_approval", (), Some(&fields)))?)
        });
        let answer = within(self.longest, request.timeout, asked).await.ok_or(ApprovalError::TimedOut)?;
        Python::attach(|py| match answer {
            Ok(answer) => match answer.bind(py).cast::<PyString>() {
                Ok(label) => {
                    let failed = |error: PyErr| ApprovalError::Failed(failure(py, &error).to_string());
                    let (by, rule) = (answerer(label).map_err(failed)?, chosen_rule(label).map_err(failed)?);
                    Ok(ApprovalAnswer { by, rule, ..label.to_string_lossy().into_owned().into() })
                }
                Err(_) => {
                    let found = crate::fields::type_name(answer.bind(py));
                    Err(ApprovalError::Failed(format!("the answer must be the label of an option; found {found}")))
                }
            },
            Err(error) if timeout_error(py).is_ok_and(|class| error.is_instance(py, class)) => {
                Err(ApprovalError::TimedOut)
            }
            Err(error) => {
                log_failure(py, "approvals", &error);
                Err(ApprovalError::Failed(failure(py, &error).to_string()))
            }
        })
    }
}

/// Denies every approval request of a session without an approval system; the reason says what to do.
pub(crate) struct MissingApprovals;

impl ApprovalSystem for MissingApprovals {
    async fn request_approval(
        &self,
        request: Arc<amplifier_core::OpenRequest>,
    ) -> Result<ApprovalAnswer, ApprovalError> {
        let other =
            if request.hook == CONFIRM { ", or `confirm=\"off\"` to run everything without approval" } else { "" };
        let text =
            format!("no approval system and no terminal to ask on; give the `Session` an `approval_system`{other}");
        Err(ApprovalError::Unavailable(text))
    }
}

/// Waits for an answer within the request's time limit, at most `longest`. Returns `None` without an answer in time.
pub(crate) async fn within<T>(
    longest: Option<Duration>,
    timeout: Duration,
    asked: impl Future<Output = T>,
) -> Option<T> {
    let Some(longest) = longest.filter(|longest| *longest < timeout) else { return Some(asked.await) };
    match select(pin!(asked), LoopClock::new().sleep(longest)).await {
        Either::Left((answer, _)) => Some(answer),
        Either::Right(_) => None,
    }
}

/// Returns the actor of an answer, if it names one (`ApprovalAnswer`).
fn answerer(answer: &Bound<'_, PyString>) -> PyResult<Option<Actor>> {
    let Some(by) = answer.getattr_opt("by")?.filter(|by| !by.is_none()) else { return Ok(None) };
    let (name, via) = by.extract()?;
    Ok(Some(Actor { name, via }))
}

/// Returns the rule that an answer creates, if it names one: a dict with `operations` and `scope`.
fn chosen_rule(answer: &Bound<'_, PyString>) -> PyResult<Option<ChosenRule>> {
    let Some(rule) = answer.getattr_opt("rule")?.filter(|rule| !rule.is_none()) else { return Ok(None) };
    let rule = encode::to_map(rule.cast()?)?;
    serde_json::from_value(rule.into())
        .map(Some)
        .map_err(|error| PyValueError::new_err(format!("invalid rule: {error}")))
}

fn timeout_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TIMEOUT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TIMEOUT.import(py, "amplifier_core.approval", "ApprovalTimeoutError")
}

/// An audit log: `record` is called with a dict for each record and must not wait.
pub(crate) struct PyAudit(pub(crate) Arc<Port>);

impl AuditLog for PyAudit {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        let record = serde_json::to_value(&record)?;
        let recorded = threads::call_python(|py| {
            let record = encode::to_python(py, &record)?;
            let recorded = self.0.object(py)?.call_method1("record", (record,));
            let recorded = recorded.inspect_err(|error| note_interrupt(py, error))?;
            // An awaitable would never run, so nothing would be recorded.
            match recorded.getattr_opt(intern!(py, "__await__"))? {
                Some(_) => Err(PyTypeError::new_err("`record` must not be async")),
                None => Ok(()),
            }
        });
        recorded.map(|()| Receipt::default()).map_err(|error| failed("audit", &error))
    }

    async fn flush(&self, _since: Receipt) -> Result<(), PortError> {
        let asked = ask(|py| match self.0.object(py)?.getattr_opt("flush")? {
            Some(flush) => CallFuture::of(flush.call0()?),
            None => Ok(CallFuture::Now(Some(Ok(py.None())))),
        });
        asked.await.map(drop).map_err(|error| failed("audit", &error))
    }
}
