//! Pauses a hook's timer while the hook waits for a user, also in tasks that the hook created.
//!
//! Tasks inherit the context of their creator, so the tasks of a hook are recognized by a mark in the context. Setting the mark costs more
//! than calling most hooks, which never wait. Therefore a hook is marked before the call only if it has waited before, and otherwise when it
//! first waits: its tasks have not started by then.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};

use amplifier_core::driving::PersonWait;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::clock::loop_nanos;
use crate::timer::Timer;

/// One call of a hook that waits, stored in the context of its tasks.
#[pyclass(frozen)]
pub(crate) struct Mark {
    /// The mark of the hook around this one.
    around: Option<Py<Mark>>,
    /// `true` once the call has ended. Its tasks may continue, but this mark no longer counts for them.
    has_ended: AtomicBool,
    // A std lock: nothing calls Python while it is held.
    state: Mutex<MarkState>,
}

#[derive(Default)]
struct MarkState {
    /// The number of open approval requests with this mark.
    open: u32,
    /// `true` if the hook itself waits for a request.
    is_asking: bool,
    // Weak, because tasks of the hook keep the mark alive.
    timer: Weak<Timer>,
    /// The waker of the kernel, if it waits for the hook.
    waker: Option<Waker>,
}

impl MarkState {
    fn is_one_open(&self) -> bool {
        self.open > 0 || self.is_asking
    }
}

/// The mark of a call, until dropped.
pub(crate) struct MarkGuard(Py<Mark>);

impl MarkGuard {
    /// Creates the mark of a new call.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let mut around = Mark::current(py)?;
        // Marks of ended calls are skipped, so that tasks which emit events forever do not build up a chain.
        while let Some(ended) = around.take_if(|mark| mark.get().has_ended.load(Ordering::Relaxed)) {
            around = ended.get().around.as_ref().map(|around| around.clone_ref(py));
        }
        Ok(Self(Py::new(py, Mark { around, has_ended: AtomicBool::default(), state: Mutex::default() })?))
    }

    /// Creates the mark of a call that has started to wait, and adds it to the tasks created so far.
    pub(crate) fn after_start(py: Python<'_>) -> PyResult<Self> {
        let marked = Self::new(py)?;
        py.import("amplifier_core._tasks")?.call_method1("mark", (variable(py)?, &marked.0))?;
        Ok(marked)
    }

    /// Runs a part of the hook with its mark.
    pub(crate) fn around<T>(&self, py: Python<'_>, piece: impl FnOnce() -> T) -> PyResult<T> {
        let variable = variable(py)?;
        let token = variable.call_method1(intern!(py, "set"), (&self.0,))?;
        let done = piece();
        // Code that runs in this context before the next part does not belong to the hook.
        variable.call_method1(intern!(py, "reset"), (token,))?;
        Ok(done)
    }
}

impl Deref for MarkGuard {
    type Target = Mark;

    fn deref(&self) -> &Mark {
        self.0.get()
    }
}

impl Drop for MarkGuard {
    fn drop(&mut self) {
        self.0.get().has_ended.store(true, Ordering::Relaxed);
    }
}

impl Mark {
    fn current(py: Python<'_>) -> PyResult<Option<Py<Self>>> {
        Ok(variable(py)?.call_method1(intern!(py, "get"), (py.None(),))?.extract()?)
    }

    /// Sets the hook's timer, and whether the hook itself waits for a user. Returns `true` if a user is waited for.
    pub(crate) fn is_one_open(&self, timer: &Arc<Timer>, is_asking: bool) -> bool {
        let mut state = self.state();
        state.timer = Arc::downgrade(timer);
        // A closed request with this mark notifies the timer.
        state.is_asking = is_asking && state.open == 0;
        state.is_one_open()
    }

    /// Sets the kernel's waker, which is woken when requests with this mark open or close.
    pub(crate) fn tell(&self, context: &Context<'_>, question: &mut Option<PersonWait>) {
        let mut state = self.state();
        state.waker = Some(context.waker().clone());
        match (state.open > 0, &question) {
            (true, None) => *question = Some(PersonWait::open()),
            (false, Some(_)) => *question = None,
            _ => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, MarkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an opened or closed request for this hook and the hooks around it.
    fn note(slf: &Bound<'_, Self>, change: impl Fn(&mut u32)) -> PyResult<()> {
        let py = slf.py();
        let (timer, waker) = {
            let mut state = slf.get().state();
            change(&mut state.open);
            (state.timer.upgrade(), state.waker.take())
        };
        waker.into_iter().for_each(Waker::wake);
        match timer {
            None => {}
            Some(timer) if timer.is_on_running_loop(py) => slf.get().look(py)?,
            // The loop's clock can be read only on its own thread.
            Some(timer) => timer.call_on_its_loop(&slf.getattr(intern!(py, "look"))?),
        }
        slf.get().around.as_ref().map_or(Ok(()), |around| Self::note(around.bind(py), change))
    }
}

#[pymethods]
impl Mark {
    /// Starts or pauses the hook's timer as required.
    fn look(&self, py: Python<'_>) -> PyResult<()> {
        let (timer, is_one_open) = {
            let state = self.state();
            (state.timer.upgrade(), state.is_one_open())
        };
        match timer {
            // A timer that has fired counts the clean-up time, which is never paused.
            Some(timer) if !timer.has_fired() => match is_one_open {
                true => timer.pause(py),
                false => timer.arm(py),
            },
            _ => Ok(()),
        }
    }
}

fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = VARIABLE.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("contextvars")?.call_method1("ContextVar", ("amplifier_core.hook",))?.unbind())
    });
    made.map(|made| made.bind(py))
}

thread_local! {
    static BLOCKED: Cell<u64> = const { Cell::new(0) };
}

/// Returns the total time for which prompts have blocked this thread.
pub(crate) fn blocked_nanos() -> u64 {
    BLOCKED.get()
}

/// Runs a prompt that may block the thread and its loop.
pub(crate) fn track_blocking_wait<T>(ask: impl FnOnce() -> T) -> T {
    let since = loop_nanos();
    let asked = ask();
    let took = since.zip(loop_nanos()).map_or(0, |(since, now)| now.saturating_sub(since));
    BLOCKED.set(BLOCKED.get().saturating_add(took));
    asked
}

/// An open approval request, for the hooks that wait for it.
pub(crate) struct OpenPrompt(Py<Mark>);

impl OpenPrompt {
    /// Registers a new request, if a marked hook waits for it.
    pub(crate) fn open(py: Python<'_>) -> PyResult<Option<Self>> {
        let Some(mark) = Mark::current(py)? else { return Ok(None) };
        Mark::note(mark.bind(py), |open| *open += 1)?;
        Ok(Some(Self(mark)))
    }
}

impl Drop for OpenPrompt {
    fn drop(&mut self) {
        Python::attach(|py| {
            if let Err(error) = Mark::note(self.0.bind(py), |open| *open -= 1) {
                error.write_unraisable(py, None);
            }
        });
    }
}
