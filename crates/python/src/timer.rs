//! The time limit of a hook, on the event loop of the caller.

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

/// How long a hook may clean up after its time is up.
const GRACE: Duration = Duration::from_secs(1);

/// What no loop has to wait for: some thirty years.
const LONGEST: f64 = 1e9;

/// `asyncio`, if the caller uses it. It is not imported for anybody else.
pub(crate) fn asyncio(py: Python<'_>) -> Option<&Bound<'_, PyModule>> {
    static ASYNCIO: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    if let Some(asyncio) = ASYNCIO.get(py) {
        return Some(asyncio.bind(py));
    }
    let modules = py.import("sys").ok()?.getattr("modules").ok()?;
    let asyncio = modules.call_method1("get", ("asyncio",)).ok()?.cast_into().ok()?.unbind();
    Some(ASYNCIO.get_or_init(py, || asyncio).bind(py))
}

/// The loop that runs now, if there is one.
pub(crate) fn running_loop(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    asyncio(py)?.call_method0(intern!(py, "get_running_loop")).ok()
}

pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64().min(LONGEST)
}

/// A time on a loop's clock, in nanoseconds. Such a clock begins anywhere, before zero or long after.
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

/// Cancels the caller's task when the time is up, as `asyncio.timeout` does; whoever drives the hook knows why it was cancelled.
pub(crate) struct Timer {
    watch: Py<DeadlineWatch>,
    running: Py<PyAny>,
    task: Py<PyAny>,
    /// Who knows how often the task is cancelled: the task itself, from Python 3.11 on.
    counter: Py<PyAny>,
    // A std lock: nothing calls Python while it is held.
    pace: Mutex<Pace>,
    fired: Arc<AtomicU32>,
    /// How often the task had been cancelled before: it may be cleaning up, or have gone on all the same.
    cancelled_before: u32,
}

struct Pace {
    left: Duration,
    armed: Option<WaiterKey>,
}

impl Timer {
    /// A timer that is not armed yet. There is none without a loop: then nobody can wait, either.
    pub(crate) fn new(py: Python<'_>, limit: Duration, counter: Option<Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(running) = running_loop(py) else { return Ok(None) };
        let Some(task) = current_task(&running)? else { return Ok(None) };
        let counter = counter.unwrap_or_else(|| task.clone());
        let cancelled_before = match cancellations(&counter)?.unwrap_or_default() {
            0 => 0,
            // The hook, or a signal while it ran, may have cancelled the task, which learns of it when it waits.
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

    /// Lets the time run.
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

    /// Lets the time stand still.
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

    /// Whether it counts the time of the loop that runs now.
    pub(crate) fn is_on_running_loop(&self, py: Python<'_>) -> bool {
        running_loop(py).is_some_and(|running| running.is(&self.running))
    }

    /// Calls something on the loop whose time it counts, from whatever thread.
    pub(crate) fn call_on_its_loop(&self, call: &Bound<'_, PyAny>) {
        let py = call.py();
        // A loop that is closed counts no time.
        drop(self.running.bind(py).call_method1(intern!(py, "call_soon_threadsafe"), (call,)));
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the time is up.
    pub(crate) fn has_fired(&self) -> bool {
        self.fired.load(Ordering::Relaxed) > 0
    }

    /// Whether even the time for cleaning up is over.
    pub(crate) fn is_over(&self) -> bool {
        self.fired.load(Ordering::Relaxed) > 1
    }

    /// A timer that fired is armed again only for the cleaning up.
    pub(crate) fn rearm_after_firing(&self) {
        self.pace().armed = None;
    }

    /// Whether the task was cancelled since the hook began to wait. Where that is not known, it may have been.
    pub(crate) fn was_cancelled(&self, py: Python<'_>) -> bool {
        let known = cancellations(self.counter.bind(py)).ok().flatten();
        known.is_none_or(|now| now > self.cancelled_before)
    }

    /// Ends it. Gives whether the task was cancelled by somebody else, too.
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

/// What the clock of a loop says.
pub(crate) fn time(running: &Bound<'_, PyAny>) -> PyResult<Moment> {
    let seconds = running.call_method0(intern!(running.py(), "time"))?.extract::<f64>()?;
    Ok(Moment((seconds * 1e9) as i64))
}

/// The task that runs now on a loop, if there is one.
fn current_task<'py>(running: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = running.py();
    let Some(asyncio) = asyncio(py) else { return Ok(None) };
    Ok(Some(asyncio.call_method1(intern!(py, "current_task"), (running,))?).filter(|task| !task.is_none()))
}

/// How often the task was cancelled, if that is known.
fn cancellations(counter: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    let cancelling = counter.getattr_opt(intern!(counter.py(), "cancelling"))?;
    cancelling.map(|cancelling| cancelling.call0()?.extract()).transpose()
}

/// Whether a task that runs was cancelled, and will see that when it waits.
fn is_told_of_it_later(task: &Bound<'_, PyAny>) -> PyResult<bool> {
    task.getattr_opt(intern!(task.py(), "_must_cancel"))?.map_or(Ok(false), |told| told.is_truthy())
}

/// Whether somebody cancels the task that runs now. Without a task, that is not known, and may be.
pub(crate) fn is_being_cancelled(py: Python<'_>) -> bool {
    let task = running_loop(py).map_or(Ok(None), |running| current_task(&running));
    let known = task.and_then(|task| {
        let Some(task) = task else { return Ok(true) };
        // Before Python 3.11 a task does not say so; but it was not told of it while it ran, so that is not what was raised.
        cancellations(&task)?.map_or_else(|| is_told_of_it_later(&task), |known| Ok(known > 0))
    });
    known.unwrap_or(true)
}

/// What a hook waits for, with what knows how often its task is cancelled, where tasks do not: before Python 3.11.
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
    // Where `asyncio` was never imported, nobody can have raised it.
    Ok(asyncio(py).is_some() && error.is_instance(py, cancelled_error(py)?))
}

/// Whether it ends more than the hook: `KeyboardInterrupt`, `SystemExit` and their like, and what fails a strict test.
pub(crate) fn is_an_interrupt(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    match error.is_instance_of::<PyException>(py) {
        true => is_of_a_strict_test(py, error),
        false => Ok(!is_a_cancellation(py, error)?),
    }
}

/// Whether a hook changed nested values in place. Where none is strict, the class is not loaded.
fn is_of_a_strict_test(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let loaded = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.get_item("amplifier_core._strict")?;
    let Some(strict) = loaded else { return Ok(false) };
    strict.call_method1("is_found", (error.value(py),))?.extract()
}
