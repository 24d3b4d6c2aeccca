//! `HookRegistry` for Python.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amplifier_core::driving::RegistrySessions;
use amplifier_core::{EventKey, EventPattern, HookInfo, HookRole, Listeners, OnError, Registration};
use amplifier_host::GuardedSessions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyList, PyString, PyTuple};

use crate::clock::LoopClock;
use crate::data::Base;
use crate::emit::{EmitAwaitable, EmitRequest, Purpose};
use crate::fields::{read_word, wrong_type};
use crate::hook::{PyHook, SharedHook, default_name};
use crate::{encode, log};

/// The field with the session id of an event.
const SESSION_ID: &str = "session_id";

/// The hooks of each event, in running order.
// With a dict, so that tests can replace `emit`.
#[pyclass(module = "amplifier_core.hooks", subclass, frozen, weakref, dict)]
pub(crate) struct HookRegistry {
    pub(crate) kernel: amplifier_core::HookRegistry,
    pub(crate) parallel_observers: bool,
    /// `true` for events of an Amplifier session: handlers are told the emitted name, and all words of Amplifier are known.
    pub(crate) compat: bool,
    /// Shared with the hooks, because a session does not call them through the registry.
    strict: Arc<AtomicBool>,
    // Std locks: nothing calls Python while they are held.
    base: Mutex<Option<Arc<Base>>>,
    sessions: Mutex<RegistrySessions>,
    /// The sessions with built-in hooks of their own.
    pub(crate) guarded: GuardedSessions,
    book: Arc<Mutex<HookTable>>,
}

/// Data that Python needs about the hooks in the kernel.
#[derive(Default)]
struct HookTable {
    registrations: u64,
    hooks: HashMap<u64, RegisteredHook>,
    names: HashMap<String, Names>,
}

struct RegisteredHook {
    registration: Registration,
    hook: SharedHook,
    /// The default name in use.
    name: Option<(String, Identity)>,
}

/// Hooks with the same default name. Remembered answers are stored by hook name, so two different functions must have different names; one
/// function for several events may keep the same.
#[derive(Default)]
struct Names {
    /// The highest number taken, and the free numbers below it.
    taken: u64,
    free: BTreeSet<u64>,
    /// The number of each handler, and its count of registrations.
    numbers: HashMap<Identity, (u64, u64)>,
}

/// The identity of a handler: an object, or an object and a function of its type.
type Identity = (usize, usize);

fn identity(handler: &Bound<'_, PyAny>) -> PyResult<Identity> {
    let py = handler.py();
    // A bound method is a new object at each access.
    match (handler.getattr_opt(intern!(py, "__self__"))?, handler.getattr_opt(intern!(py, "__func__"))?) {
        (Some(object), Some(function)) => Ok((object.as_ptr() as usize, function.as_ptr() as usize)),
        _ => Ok((handler.as_ptr() as usize, 0)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HookTable {
    fn name(&mut self, name: String, identity: Identity) -> String {
        let names = self.names.entry(name.clone()).or_default();
        let (number, uses) = names.numbers.entry(identity).or_insert_with(|| {
            let free = names.free.pop_first().unwrap_or_else(|| {
                names.taken += 1;
                names.taken
            });
            (free, 0)
        });
        *uses += 1;
        if *number > 1 { format!("{name}#{number}") } else { name }
    }

    fn remove(&mut self, id: u64) -> Option<RegisteredHook> {
        let removed = self.hooks.remove(&id)?;
        if let Some((name, identity)) = &removed.name
            && let Some(names) = self.names.get_mut(name)
            && let Some((number, uses)) = names.numbers.get_mut(identity)
        {
            *uses -= 1;
            if *uses == 0 {
                names.free.insert(*number);
                names.numbers.remove(identity);
            }
            if names.numbers.is_empty() {
                self.names.remove(name);
            }
        }
        Some(removed)
    }
}

struct Settings {
    event: String,
    priority: i64,
    name: Option<String>,
    role: HookRole,
    on_error: OnError,
    timeout: Duration,
}

/// Returns `true` if the pattern matches an event with a constant.
fn is_known(pattern: &EventPattern) -> bool {
    crate::events::names().any(|event| pattern.matches(event))
}

fn invalid_name(error: &amplifier_core::InvalidEventName) -> PyErr {
    PyValueError::new_err(error.to_string())
}

struct Seconds(f64);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let seconds = object.extract().map_err(|_| wrong_type("timeout", "a number of seconds", &object))?;
        Ok(Self(seconds))
    }
}

pub(crate) fn duration(what: &str, seconds: f64) -> PyResult<Duration> {
    if seconds.is_finite() && seconds >= 0.0 {
        // A value beyond the range of clocks is still a valid time limit.
        return Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    Err(PyValueError::new_err(format!("`{what}` must be a finite number of seconds, 0 or more; found {seconds}")))
}

impl HookRegistry {
    pub(crate) fn is_strict(&self) -> bool {
        self.strict.load(Ordering::Relaxed)
    }

    /// Returns the fields to add to the data of every event, if any.
    pub(crate) fn base(&self) -> Option<Arc<Base>> {
        lock(&self.base).clone()
    }

    pub(crate) fn listeners(&self, event: &Bound<'_, PyString>) -> PyResult<Listeners> {
        self.kernel.listeners(event.to_str()?).map_err(|error| invalid_name(&error))
    }

    fn add(&self, handler: &Bound<'_, PyAny>, settings: &Settings) -> PyResult<Unregister> {
        let py = handler.py();
        if !handler.is_callable() {
            let found = crate::fields::type_name(handler);
            return Err(PyTypeError::new_err(format!("a handler must be callable; found {found}")));
        }
        let defaulted = match settings.name {
            Some(_) => None,
            None => Some((default_name(handler)?, identity(handler)?)),
        };
        // Checked before a name is taken.
        let pattern = settings.event.as_str().event_pattern().map_err(|error| invalid_name(&error))?;
        let checks = py.import(intern!(py, "amplifier_core._handlers"))?;
        let shown = settings.name.as_ref().or(defaulted.as_ref().map(|(name, _)| name));
        checks.call_method1(intern!(py, "check"), (handler, shown, &settings.event))?;
        let handler = handler.clone().unbind();
        let mut book = lock(&self.book);
        let name = match (&settings.name, &defaulted) {
            (Some(name), _) => name.clone(),
            (None, Some((name, identity))) => book.name(name.clone(), *identity),
            (None, None) => String::new(),
        };
        let hook = SharedHook::new(PyHook::new(handler, name.clone(), self.strict.clone()));
        let registration = self
            .kernel
            .hook(settings.event.as_str())
            .named(name.as_str())
            .priority(settings.priority)
            .role(settings.role)
            .on_error(settings.on_error)
            .timeout(settings.timeout)
            .handler(hook.clone())
            .map_err(|error| invalid_name(&error))?;
        book.registrations += 1;
        let id = book.registrations;
        book.hooks.insert(id, RegisteredHook { registration, hook, name: defaulted });
        drop(book);
        log::debug(py, "Registered hook '%s' for event '%s'", &name, &settings.event);
        if !is_known(&pattern) {
            checks.call_method1(intern!(py, "warn_unknown"), (&settings.event, &name))?;
        }
        Ok(Unregister { book: Arc::downgrade(&self.book), id, name, event: settings.event.clone() })
    }

    fn emitting(
        slf: &Bound<'_, Self>,
        event: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        purpose: Purpose,
    ) -> PyResult<EmitAwaitable> {
        Ok(EmitAwaitable::new(EmitRequest::new(slf.clone().unbind(), event, data, purpose, None)?))
    }

    /// Records that a session uses the registry, until [`release`](Self::release).
    pub(crate) fn reserve(&self, py: Python<'_>, id: Option<&str>) -> PyResult<()> {
        self.change_sessions(py, |sessions| sessions.begin(id))
    }

    /// Records that a session no longer uses the registry.
    pub(crate) fn release(&self, id: Option<&str>) {
        let _ = Python::try_attach(|py| {
            if let Err(error) = self.change_sessions(py, |sessions| sessions.end(id)) {
                error.write_unraisable(py, None);
            }
        });
    }

    /// Sets the session of events that hooks emit here, while exactly one session uses the registry.
    fn change_sessions(&self, py: Python<'_>, change: impl FnOnce(&mut RegistrySessions)) -> PyResult<()> {
        let sole = |sessions: &RegistrySessions| sessions.sole().map(str::to_owned);
        let (before, now) = {
            let mut sessions = lock(&self.sessions);
            let before = sole(&sessions);
            change(&mut sessions);
            (before, sole(&sessions))
        };
        if before == now {
            return Ok(());
        }
        self.change_base(|base| {
            let reserved =
                base.reserved.as_ref().map_or_else(|| Ok(PyDict::new(py)), |fields| fields.bind(py).copy())?;
            let known = reserved.get_item(SESSION_ID)?;
            // Fields that were reserved otherwise are kept.
            let is_its = match (&known, &before) {
                (Some(known), Some(before)) => known.eq(before)?,
                (known, before) => known.is_none() && before.is_none(),
            };
            match now {
                Some(now) if is_its => reserved.set_item(SESSION_ID, now)?,
                None if is_its => reserved.del_item(SESSION_ID)?,
                _ => {}
            }
            let defaults = base.defaults.as_ref().map(|fields| fields.clone_ref(py));
            Ok(Base { defaults, reserved: (!reserved.is_empty()).then(|| reserved.unbind()) })
        })
    }

    fn change_base(&self, change: impl FnOnce(&Base) -> PyResult<Base>) -> PyResult<()> {
        let next = Some(Arc::new(change(&self.base().unwrap_or_default())?));
        // The old value is dropped after the lock is released, because dropping may run code.
        let last = std::mem::replace(&mut *lock(&self.base), next);
        drop(last);
        Ok(())
    }
}

/// Creates an object with a `__dict__`, so that pyo3 detects the layout of such objects. Other threads run meanwhile and the object is
/// incomplete, so its type must not be tracked by the garbage collector.
#[pyclass(dict, frozen)]
struct WithDict;

impl WithDict {
    fn is_known(py: Python<'_>) -> PyResult<()> {
        static MADE: PyOnceLock<Py<WithDict>> = PyOnceLock::new();
        MADE.get_or_try_init(py, || Py::new(py, Self)).map(drop)
    }
}

#[pymethods]
impl HookRegistry {
    /// Creates an empty registry. `parallel_observers` runs observers concurrently; `strict`, for tests, detects in-place changes of nested
    /// values; `compat` is for events of an Amplifier session.
    #[new]
    #[pyo3(
        signature = (*args, parallel_observers=false, strict=false, compat=false, **_named),
        text_signature = "(*, parallel_observers=False, strict=False, compat=False)"
    )]
    fn new(
        args: &Bound<'_, PyTuple>,
        parallel_observers: bool,
        strict: bool,
        compat: bool,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        WithDict::is_known(args.py())?;
        let builder = amplifier_core::HookRegistry::builder().clock(LoopClock::new());
        let builder = if parallel_observers { builder.parallel_observers() } else { builder };
        let (base, sessions, book) = (Mutex::default(), Mutex::default(), Arc::default());
        let (strict, guarded) = (Arc::new(strict.into()), GuardedSessions::default());
        Ok(Self { kernel: builder.build(), parallel_observers, compat, strict, base, sessions, guarded, book })
    }

    /// Accepts the arguments that a subclass passes on from its own `__init__`, and rejects others.
    #[pyo3(signature = (*, parallel_observers=None, strict=None, compat=None))]
    fn __init__(&self, parallel_observers: Option<bool>, strict: Option<bool>, compat: Option<bool>) -> PyResult<()> {
        let fixed =
            [("parallel_observers", parallel_observers, self.parallel_observers), ("compat", compat, self.compat)];
        if let Some((name, ..)) = fixed.iter().find(|(_, given, own)| given.is_some_and(|given| given != *own)) {
            let text = format!("`{name}` counts when a registry is made: give it as an argument of its class");
            return Err(PyTypeError::new_err(text));
        }
        if let Some(strict) = strict {
            self.strict.store(strict, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Registers a handler and returns a function that unregisters it. Without a handler, returns a decorator.
    #[pyo3(
        signature = (event, handler=None, priority=0, name=None, *, role="gate", on_error="continue", timeout=Seconds(30.0)),
        text_signature = "($self, event, handler=None, priority=0, name=None, *, role='gate', on_error='continue', timeout=30.0)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they are the documented ones")]
    fn register<'py>(
        slf: &Bound<'py, Self>,
        event: String,
        handler: Option<Bound<'py, PyAny>>,
        priority: i64,
        name: Option<String>,
        role: &str,
        on_error: &str,
        timeout: Seconds,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (role, on_error) = (read_word("role", role)?, read_word("on_error", on_error)?);
        let settings = Settings { event, priority, name, role, on_error, timeout: duration("timeout", timeout.0)? };
        if let Some(handler) = handler {
            return Ok(Bound::new(py, slf.get().add(&handler, &settings)?)?.into_any());
        }
        let registry = slf.clone().unbind();
        let decorator = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<Py<PyAny>> {
            let Ok((handler,)) = args.extract::<(Bound<'_, PyAny>,)>() else {
                return Err(PyTypeError::new_err("the decorator takes only a handler"));
            };
            registry.get().add(&handler, &settings)?;
            Ok(handler.unbind())
        };
        Ok(PyCFunction::new_closure(py, None, None, decorator)?.into_any())
    }

    /// The same as `register`.
    #[pyo3(
        signature = (event, handler=None, priority=0, name=None, *, role="gate", on_error="continue", timeout=Seconds(30.0)),
        text_signature = "($self, event, handler=None, priority=0, name=None, *, role='gate', on_error='continue', timeout=30.0)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they are the documented ones")]
    fn on<'py>(
        slf: &Bound<'py, Self>,
        event: String,
        handler: Option<Bound<'py, PyAny>>,
        priority: i64,
        name: Option<String>,
        role: &str,
        on_error: &str,
        timeout: Seconds,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::register(slf, event, handler, priority, name, role, on_error, timeout)
    }

    /// Sets the fields that are merged under every event's data, replacing earlier ones.
    #[pyo3(signature = (**defaults))]
    fn set_default_fields(&self, py: Python<'_>, defaults: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let defaults = defaults.map(|fields| fields.copy()).transpose()?;
        self.kernel.set_default_fields(defaults.as_ref().map(encode::to_map).transpose()?.unwrap_or_default());
        self.change_base(|base| {
            let reserved = base.reserved.as_ref().map(|fields| fields.clone_ref(py));
            Ok(Base { defaults: defaults.map(Bound::unbind), reserved })
        })
    }

    /// Sets fields that neither emitters nor hooks can change. Earlier reserved fields are kept.
    #[pyo3(signature = (**fields))]
    fn set_reserved_fields(&self, py: Python<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let Some(fields) = fields else { return Ok(()) };
        self.kernel.set_reserved_fields(encode::to_map(fields)?);
        self.change_base(|base| {
            let reserved = match &base.reserved {
                Some(reserved) => reserved.bind(py).copy()?,
                None => PyDict::new(py),
            };
            reserved.update(fields.as_mapping())?;
            let defaults = base.defaults.as_ref().map(|fields| fields.clone_ref(py));
            Ok(Base { defaults, reserved: Some(reserved.unbind()) })
        })
    }

    /// Emits an event: the handlers run in order when the result is awaited.
    fn emit(slf: &Bound<'_, Self>, event: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> PyResult<EmitAwaitable> {
        Self::emitting(slf, event, data, Purpose::Flat)
    }

    /// Emits an event and returns the complete outcome.
    fn emit_with_outcome(
        slf: &Bound<'_, Self>,
        event: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<EmitAwaitable> {
        Self::emitting(slf, event, data, Purpose::Outcome)
    }

    /// Calls every handler with a time limit of `timeout` seconds, and returns the data of those that answered.
    #[pyo3(signature = (event, data, timeout=Seconds(1.0)), text_signature = "($self, event, data, timeout=1.0)")]
    fn emit_and_collect(
        slf: &Bound<'_, Self>,
        event: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        timeout: Seconds,
    ) -> PyResult<EmitAwaitable> {
        Self::emitting(slf, event, data, Purpose::Collect(duration("timeout", timeout.0)?))
    }

    /// Returns the names of the handlers in running order, by registered event, or for one event.
    #[pyo3(signature = (event=None))]
    fn list_handlers<'py>(&self, py: Python<'py>, event: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let list = PyDict::new(py);
        let names = |infos: Vec<HookInfo>| PyList::new(py, infos.iter().map(|info| &*info.name));
        if let Some(event) = event {
            let infos = self.kernel.list_handlers_of(event).map_err(|error| invalid_name(&error))?;
            list.set_item(event, names(infos)?)?;
            return Ok(list);
        }
        for info in self.kernel.list_handlers() {
            match list.get_item(&*info.event)? {
                Some(names) => names.cast_into::<PyList>()?.append(&*info.name)?,
                None => list.set_item(&*info.event, [&*info.name])?,
            }
        }
        Ok(list)
    }

    fn __repr__(&self) -> String {
        format!("<HookRegistry with {} hooks>", self.kernel.list_handlers().len())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Skipped if in use.
        if let Ok(book) = self.book.try_lock() {
            book.hooks.values().try_for_each(|registered| registered.hook.visit(&visit))?;
        }
        if let Ok(base) = self.base.try_lock()
            && let Some(base) = &*base
        {
            visit.call(&base.defaults)?;
            visit.call(&base.reserved)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let hooks = std::mem::take(&mut lock(&self.book).hooks);
        hooks.values().for_each(|registered| registered.registration.unregister());
        let base = std::mem::take(&mut *lock(&self.base));
        drop(base);
    }
}

/// Unregisters a handler. Calling it again has no effect.
#[pyclass(module = "amplifier_core.hooks", frozen)]
pub(crate) struct Unregister {
    // Weak, because a handler may hold this object, and the registry holds the handler.
    book: std::sync::Weak<Mutex<HookTable>>,
    id: u64,
    name: String,
    event: String,
}

#[pymethods]
impl Unregister {
    /// The name of the hook.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("<Unregister of '{}'>", self.name)
    }

    fn __call__(&self, py: Python<'_>) {
        let Some(book) = self.book.upgrade() else { return };
        let removed = lock(&book).remove(self.id);
        if let Some(removed) = removed {
            removed.registration.unregister();
            log::debug(py, "Unregistered hook '%s' from event '%s'", &self.name, &self.event);
        }
    }
}
