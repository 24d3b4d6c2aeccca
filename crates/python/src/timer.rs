//! Time limits of hooks on the caller's event loop.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyType};

use crate::deadlines::{DeadlineWatch, Waiter, WaiterKey};

/// The time that a hook has to clean up after its time limit.
const GRACE: Duration = Duration::from_secs(1);

/// The longest wait on a loop: about thirty years.
const LONGEST: f64 = 1e9;

/// Returns `asyncio` if the caller has imported it; it is not imported otherwise.
pub(crate) fn asyncio(py: Python<'_>) -> Option<&Bound<'_, PyModule>> {
    static ASYNCIO: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    if let Some(asyncio) = ASYNCIO.get(py) {
        return Some(asyncio.bind(py));
    }
    let modules = py.import("sys").ok()?.getattr("modules").ok()?;
    let asyncio = modules.call_method1("get", ("asyncio",)).ok()?.cast_into().ok()?.unbind();
    Some(ASYNCIO.get_or_init(py, || asyncio).bind(py))
}

pub(crate) fn running_loop(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    asyncio(py)?.call_method0(intern!(py, "get_running_loop")).ok()
}

pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64().min(LONGEST)
}

/// A time on a loop's clock, in nanoseconds. The clock may start at any value, even below zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) i64);

impl Moment {
    pub(crate) fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add((seconds(duration) * 1e9) as i64))
    }

    fn since(self, earlier: Self) -> Duration {
        let nanos = self.0.saturating_sub(earlier.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
    }
}

/// Cancels the caller's task at the time limit, like `asyncio.timeout`; the driver of the hook knows the cause of the cancellation.
pub(crate) struct Timer {
    watch: Py<DeadlineWatch>,
    running: Py<PyAny>,
    task: Py<PyAny>,
    /// The object that counts cancellations of the task: from Python 3.11 on, the task itself.
    counter: Py<PyAny>,
    // A std lock: nothing calls Python while it is held.
    pace: Mutex<Pace>,
    fired: Arc<AtomicU32>,
    /// The number of cancellations before: the task may be cleaning up, or may have continued.
    cancelled_before: u32,
}

struct Pace {
    left: Duration,
    armed: Option<WaiterKey>,
}

impl Timer {
    /// Creates a timer that is not armed. `None` without a loop, because nothing can wait then.
    pub(crate) fn new(py: Python<'_>, limit: Duration, counter: Option<Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(running) = running_loop(py) else { return Ok(None) };
        let Some(task) = current_task(&running)? else { return Ok(None) };
        let counter = counter.unwrap_or_else(|| task.clone());
        let cancelled_before = match cancellations(&counter)?.unwrap_or_default() {
            0 => 0,
            // The hook, or a signal, may have cancelled the task, which is notified at its next wait.
            known => known - u32::from(is_told_of_it_later(&task)?),
        };
        let (watch, running, task) = (DeadlineWatch::of(&running)?.unbind(), running.unbind(), task.unbind());
        Ok(Some(Self {
            watch,
            running,
            task,
            counter: counter.unbind(),
            pace: Mutex::new(Pace { left: limit, armed: None }),
            fired: Arc::default(),
            cancelled_before,
        }))
    }

    pub(crate) fn arm(&self, py: Python<'_>) -> PyResult<()> {
        let left = match &*self.pace() {
            Pace { armed: Some(_), .. } => return Ok(()),
            Pace { left, .. } => *left,
        };
        let running = self.running.bind(py);
        let until = time(running)?.after(if self.has_fired() { GRACE } else { left });
        let waiter = Waiter { task: self.task.clone_ref(py), fired: self.fired.clone() };
        self.pace().armed = Some(DeadlineWatch::add(self.watch.bind(py), running, until, waiter)?);
        Ok(())
    }

    pub(crate) fn pause(&self, py: Python<'_>) -> PyResult<()> {
        let now = time(self.running.bind(py))?;
        let mut pace = self.pace();
        if let Some(place) = pace.armed.take() {
            pace.left = place.0.since(now);
            drop(pace);
            self.watch.get().remove(place);
        }
        Ok(())
    }

    /// Returns `true` if the timer belongs to the running loop.
    pub(crate) fn is_on_running_loop(&self, py: Python<'_>) -> bool {
        running_loop(py).is_some_and(|running| running.is(&self.running))
    }

    /// Calls a function on the timer's loop, from any thread.
    pub(crate) fn call_on_its_loop(&self, call: &Bound<'_, PyAny>) {
        let py = call.py();
        // A closed loop has no running timers.
        drop(self.running.bind(py).call_method1(intern!(py, "call_soon_threadsafe"), (call,)));
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_fired(&self) -> bool {
        self.fired.load(Ordering::Relaxed) > 0
    }

    /// Returns `true` if the clean-up time has also passed.
    pub(crate) fn is_over(&self) -> bool {
        self.fired.load(Ordering::Relaxed) > 1
    }

    /// A timer that has fired is armed again only for the clean-up time.
    pub(crate) fn rearm_after_firing(&self) {
        self.pace().armed = None;
    }

    /// Returns `true` if the task was cancelled since the hook started to wait, or may have been.
    pub(crate) fn was_cancelled(&self, py: Python<'_>) -> bool {
        let known = cancellations(self.counter.bind(py)).ok().flatten();
        known.is_none_or(|now| now > self.cancelled_before)
    }

    /// Stops the timer. Returns `true` if the task was also cancelled by others.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<bool> {
        self.disarm();
        if !self.has_fired() {
            return Ok(false);
        }
        let counter = self.counter.bind(py);
        if let Some(uncancel) = counter.getattr_opt(intern!(py, "uncancel"))? {
            for _ in 0..self.fired.load(Ordering::Relaxed) {
                uncancel.call0()?;
            }
        }
        Ok(cancellations(counter)?.is_some_and(|now| now > self.cancelled_before))
    }

    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.watch)?;
        visit.call(&self.running)?;
        visit.call(&self.counter)?;
        visit.call(&self.task)
    }

    fn disarm(&self) {
        let armed = self.pace().armed.take();
        if let Some(place) = armed {
            self.watch.get().remove(place);
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.disarm();
    }
}

pub(crate) fn time(running: &Bound<'_, PyAny>) -> PyResult<Moment> {
    let seconds = running.call_method0(intern!(running.py(), "time"))?.extract::<f64>()?;
    Ok(Moment((seconds * 1e9) as i64))
}

/// Returns the current task of a loop, if any.
fn current_task<'py>(running: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = running.py();
    let Some(asyncio) = asyncio(py) else { return Ok(None) };
    Ok(Some(asyncio.call_method1(intern!(py, "current_task"), (running,))?).filter(|task| !task.is_none()))
}

/// Returns the number of cancellations of the task, if known.
fn cancellations(counter: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    let cancelling = counter.getattr_opt(intern!(counter.py(), "cancelling"))?;
    cancelling.map(|cancelling| cancelling.call0()?.extract()).transpose()
}

/// Returns `true` if a running task was cancelled and will notice at its next wait.
fn is_told_of_it_later(task: &Bound<'_, PyAny>) -> PyResult<bool> {
    task.getattr_opt(intern!(task.py(), "_must_cancel"))?.map_or(Ok(false), |told| told.is_truthy())
}

/// Returns `true` if the current task is being cancelled. Without a task this is unknown, and assumed.
pub(crate) fn is_being_cancelled(py: Python<'_>) -> bool {
    let task = running_loop(py).map_or(Ok(None), |running| current_task(&running));
    let known = task.and_then(|task| {
        let Some(task) = task else { return Ok(true) };
        // Before Python 3.11 a task does not report cancellation. The task was not notified while it ran, so the exception has another cause.
        cancellations(&task)?.map_or_else(|| is_told_of_it_later(&task), |known| Ok(known > 0))
    });
    known.unwrap_or(true)
}

/// Returns the object that a hook awaits, with a counter of cancellations where tasks have none: before Python 3.11.
pub(crate) fn followed<'py>(
    hook: &Bound<'py, PyAny>,
    yielded: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = hook.py();
    static IS_COUNTED: PyOnceLock<bool> = PyOnceLock::new();
    let is_counted = IS_COUNTED.get_or_try_init(py, || {
        asyncio(py).map_or(Ok(true), |asyncio| asyncio.getattr("Task")?.hasattr(intern!(py, "cancelling")))
    })?;
    if *is_counted {
        return Ok(None);
    }
    py.import("amplifier_core._tasks")?.call_method1("Followed", (hook, yielded)).map(Some)
}

fn cancelled_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CANCELLED.import(py, "asyncio", "CancelledError")
}

pub(crate) fn cancelled(py: Python<'_>) -> PyResult<PyErr> {
    Ok(PyErr::from_value(cancelled_error(py)?.call0()?))
}

pub(crate) fn is_a_cancellation(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    // Without an import of `asyncio`, its exception cannot have been raised.
    Ok(asyncio(py).is_some() && error.is_instance(py, cancelled_error(py)?))
}

/// Returns `true` for an interrupt: `KeyboardInterrupt`, `SystemExit` and similar, or the failure of a strict test.
pub(crate) fn is_an_interrupt(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    match error.is_instance_of::<PyException>(py) {
        true => is_of_a_strict_test(py, error),
        false => Ok(!is_a_cancellation(py, error)?),
    }
}

/// Returns `true` for an in-place change in strict mode. Without strict mode, the class is not loaded.
fn is_of_a_strict_test(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let loaded = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.get_item("amplifier_core._strict")?;
    let Some(strict) = loaded else { return Ok(false) };
    strict.call_method1("is_found", (error.value(py),))?.extract()
}
