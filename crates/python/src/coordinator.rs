//! The kernel's coordinator of a session, awaited in the caller's task.

use std::pin::Pin;
use std::sync::Arc;

use amplifier_core::{
    ApprovalRules, EventData, EventEffects, EventName, FlatAction, Injection, OperationPart, SessionConfig, Verdict,
};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use crate::audit::AuditLog;
use crate::bridge::KernelFuture;
use crate::emit::{EmitAwaitable, EmitRequest, Purpose};
use crate::outcome::{self, Outcome};
use crate::ports::{Port, PyApprovals, PyAudit, PyContext, PyDisplay};
use crate::registry::HookRegistry;
use crate::result::HookResult;
use crate::{answer, encode, trace};

/// Emits events for a session and routes the results of hooks.
#[pyclass(module = "amplifier_core.coordinator", frozen)]
pub(crate) struct Coordinator {
    pub(crate) kernel: amplifier_core::Coordinator,
    hooks: Py<HookRegistry>,
    pub(crate) reserved: Option<Py<PyDict>>,
    ports: Vec<Arc<Port>>,
    /// The owner of the session's parts, if different.
    owner: Option<Py<PyAny>>,
}

impl Coordinator {
    /// Creates a coordinator whose parts have another owner.
    pub(crate) fn of(
        kernel: amplifier_core::Coordinator,
        hooks: Py<HookRegistry>,
        reserved: Py<PyDict>,
        owner: Py<PyAny>,
    ) -> Self {
        Self { kernel, hooks, reserved: Some(reserved), ports: Vec::new(), owner: Some(owner) }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        // The coordinator of a session ends with the session.
        if self.owner.is_none() {
            self.hooks.get().release(self.kernel.session_id());
        }
    }
}

/// Runs background work of an emission in a task on the running loop.
pub(crate) fn in_background(future: Pin<Box<dyn Future<Output = ()> + Send>>) {
    let driven = KernelFuture::new(async {
        future.await;
        Ok(Python::attach(|py| py.None()))
    });
    Python::attach(|py| {
        let started = py.import("asyncio").and_then(|asyncio| asyncio.call_method1("ensure_future", (driven,)));
        if let Err(error) = started {
            error.write_unraisable(py, None);
        }
    });
}

pub(crate) fn invalid(error: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("invalid configuration: {error}"))
}

pub(crate) fn session_config(config: &Bound<'_, PyDict>) -> PyResult<SessionConfig> {
    serde_json::from_value(Value::Object(encode::to_map(config)?)).map_err(|error| invalid(&error))
}

pub(crate) fn approval_rules(rules: &Bound<'_, PyDict>) -> PyResult<ApprovalRules> {
    let rules = ApprovalRules::from_json(&Value::Object(encode::to_map(rules)?).to_string());
    rules.map_err(|error| invalid(&error))
}

fn event_name(event: &str) -> PyResult<EventName> {
    event.parse().map_err(|error: amplifier_core::InvalidEventName| PyValueError::new_err(error.to_string()))
}

/// A part of a session, and whether its method takes a single object.
pub(crate) type Part = (Py<PyAny>, bool);

/// Returns the source of and the reason for a denial, or `None`.
fn denial<'py>(py: Python<'py>, verdict: &Verdict) -> PyResult<Bound<'py, PyAny>> {
    match verdict {
        Verdict::Proceed(_) => Ok(py.None().into_bound(py)),
        Verdict::Denied { by, reason } => Ok((&**by, reason).into_pyobject(py)?.into_any()),
    }
}

#[pymethods]
impl Coordinator {
    #[new]
    #[pyo3(signature = (hooks, *, context, approvals, display, audit, config, session_id, rules, operations))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a session")]
    fn new(
        py: Python<'_>,
        hooks: Py<HookRegistry>,
        context: Option<Part>,
        approvals: Option<Part>,
        display: Option<Part>,
        audit: Option<Part>,
        config: &Bound<'_, PyDict>,
        session_id: Option<String>,
        rules: &Bound<'_, PyDict>,
        operations: &str,
    ) -> PyResult<Self> {
        let (config, rules) = (session_config(config)?, approval_rules(rules)?);
        let operations: Vec<OperationPart> = serde_json::from_str(operations).map_err(|error| invalid(&error))?;
        trace::to_logging();
        let mut ports = Vec::new();
        let mut port = |(object, takes_one): Part| {
            let port = Port::new(object, takes_one);
            ports.push(port.clone());
            port
        };
        let mut builder = amplifier_core::Coordinator::builder(hooks.get().kernel.clone())
            .config(config)
            .approval_rules(rules)
            .operations(operations)
            .background(in_background);
        if let Some(context) = context {
            builder = builder.context(PyContext(port(context)));
        }
        if let Some(approvals) = approvals {
            builder = builder.approvals(PyApprovals { port: port(approvals), longest: None });
        }
        if let Some(display) = display {
            builder = builder.display(PyDisplay(port(display)));
        }
        if let Some(audit) = audit {
            builder = match audit.0.bind(py).cast::<AuditLog>() {
                Ok(log) => builder.audit(log.get().log()?),
                Err(_) => builder.audit(PyAudit(port(audit))),
            };
        }
        hooks.get().reserve(py, session_id.as_deref())?;
        let mut reserved = None;
        if let Some(id) = session_id {
            let fields = PyDict::new(py);
            fields.set_item("session_id", &id)?;
            reserved = Some(fields.unbind());
            builder = builder.session_id(id);
        }
        Ok(Self { kernel: builder.build(), hooks, reserved, ports, owner: None })
    }

    /// Emits an event for the session. The caller passes the outcome to `route`.
    fn emit(slf: &Bound<'_, Self>, event: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> PyResult<EmitAwaitable> {
        let (registry, session) = (slf.get().hooks.clone_ref(slf.py()), slf.clone().unbind());
        Ok(EmitAwaitable::new(EmitRequest::new(registry, event, data, Purpose::Outcome, Some(session))?))
    }

    /// Returns the context variable that collects outcomes of nested emissions.
    #[staticmethod]
    fn collector(py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(outcome::collector(py)?.clone().unbind())
    }

    /// Routes an outcome. Returns the data to proceed with and the flat result, or the source of and the reason for a denial.
    fn route(slf: Py<Self>, outcome: Py<Outcome>) -> KernelFuture {
        // The garbage collector sees the parts of a session through this object, so it must live as long as they can be called.
        KernelFuture::new(async move {
            let kernel = &slf.get().kernel;
            let routed = outcome.get();
            let observed = routed.kernel.event().effects() == EventEffects::Observed;
            let verdict = if kernel.has_to_route(&routed.kernel) {
                let (data, tool_call_id) = Python::attach(|py| -> PyResult<(EventData, Option<String>)> {
                    let emitted = routed.emitted.bind(py);
                    let counts = if observed { emitted } else { routed.kernel.data.current.bind(py) };
                    let id = emitted.get_item("tool_call_id")?.and_then(|id| id.extract().ok());
                    Ok((encode::to_cut_map(counts)?.into(), id))
                })?;
                kernel.route_outcome_of(&routed.kernel, data, tool_call_id).await
            } else {
                Verdict::Proceed(EventData::new())
            };
            Python::attach(|py| {
                let denied = denial(py, &verdict)?;
                let mut result = routed.flat(py)?;
                if let Verdict::Denied { reason, .. } = &verdict {
                    result.action = FlatAction::Deny;
                    result.data = None;
                    result.reason = Some(PyString::new(py, reason).unbind());
                } else {
                    let counts = if observed { &routed.emitted } else { &routed.kernel.data.current };
                    result.data = Some(counts.clone_ref(py));
                    if matches!(result.action, FlatAction::Deny | FlatAction::AskUser) {
                        // Granted, or without effect at this event.
                        result.action = FlatAction::Continue;
                    }
                }
                Ok((result, denied).into_pyobject(py)?.into_any().unbind())
            })
        })
    }

    /// Routes the result of a single hook, or the flat view of several. Returns the source of and the reason for a denial, or `None`.
    fn process(
        slf: &Bound<'_, Self>,
        result: &Bound<'_, HookResult>,
        event: &str,
        hook_name: String,
        data: &Bound<'_, PyDict>,
    ) -> PyResult<KernelFuture> {
        let event = event_name(event)?;
        let data = EventData::from(encode::to_cut_map(data)?);
        let py = slf.py();
        let flat = result.borrow().to_flat(py).and_then(|flat| {
            let stands_beside = matches!(flat.action, FlatAction::Deny | FlatAction::AskUser);
            let injection = flat.injection().filter(|_| stands_beside);
            Ok((answer::in_json(py, flat)?, injection))
        });
        let (result, injection) = flat.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let slf = slf.clone().unbind();
        Ok(KernelFuture::new(async move {
            let kernel = &slf.get().kernel;
            let verdict = kernel.process_with_injection(&event, &hook_name, result, injection, data).await;
            let verdict = verdict.map_err(|too_large| PyValueError::new_err(too_large.to_string()))?;
            Python::attach(|py| Ok(denial(py, &verdict)?.unbind()))
        }))
    }

    /// Records the end of an operation whose agent emits no event with its result.
    #[pyo3(signature = (event, tool_call_id=None, success=None))]
    fn record_outcome(&self, event: &str, tool_call_id: Option<String>, success: Option<bool>) -> PyResult<()> {
        let recorded = self.kernel.record_outcome(&event_name(event)?, tool_call_id, success);
        recorded.map_err(|error| PyOSError::new_err(format!("the audit log failed: {error}")))
    }

    /// Raises if the session would refuse the text because of its size.
    fn check_injection(&self, hook: &str, text: &str) -> PyResult<()> {
        let checked = self.kernel.check_injection(hook, &Injection::new(text));
        checked.map_err(|too_large| PyValueError::new_err(too_large.to_string()))
    }

    /// Starts a turn and resets the injection budget.
    fn begin_turn(&self) {
        self.kernel.begin_turn();
    }

    /// Forgets the remembered answers of the session.
    fn forget_answers(&self) {
        self.kernel.forget_answers();
    }

    /// Returns the number of tokens that hooks injected in the current turn.
    #[getter]
    fn injected_tokens(&self) -> usize {
        self.kernel.injected_tokens()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hooks)?;
        visit.call(&self.reserved)?;
        visit.call(&self.owner)?;
        self.ports.iter().try_for_each(|port| port.visit(&visit))
    }

    fn __clear__(&self) {
        self.ports.iter().for_each(|port| port.clear());
    }
}
