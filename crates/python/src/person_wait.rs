//! A hook's time stands still while it waits for a person, also where it asks in a task of its own.
//!
//! Tasks inherit the context of whoever makes them. What a hook makes is known by a mark there, for hooks that wait: for the others,
//! which are nearly all, setting it would cost more than calling them. So a hook is marked before it is called if it has ever waited,
//! and the first time when it begins to wait: the tasks that it has made by then have not begun.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};

use amplifier_core::driving::Question;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::clock::loop_nanos;
use crate::timer::Timer;

/// One call of a hook that waits, in the context of what it runs.
#[pyclass(frozen)]
pub(crate) struct Mark {
    /// That of the hook inside of which this one runs.
    around: Option<Py<Mark>>,
    /// Whether the call has ended. What it began may go on, and begin more: nobody waits for that by this mark.
    has_ended: AtomicBool,
    // A std lock: nothing calls Python while it is held.
    state: Mutex<MarkState>,
}

#[derive(Default)]
struct MarkState {
    /// How many questions are open that carry the mark.
    open: u32,
    /// Whether one is open that the hook itself waits for.
    is_asking: bool,
    // Weak: the mark lives as long as any task that the hook made.
    timer: Weak<Timer>,
    /// Who waits for the hook, if that is the kernel.
    waker: Option<Waker>,
}

impl MarkState {
    fn is_one_open(&self) -> bool {
        self.open > 0 || self.is_asking
    }
}

/// The mark of a call, for as long as that lasts.
pub(crate) struct MarkGuard(Py<Mark>);

impl MarkGuard {
    /// The mark of a call that begins now.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let mut around = Mark::current(py)?;
        // A task that a hook made may emit, and the hooks of that make tasks, for ever: what has ended is not kept.
        while let Some(ended) = around.take_if(|mark| mark.get().has_ended.load(Ordering::Relaxed)) {
            around = ended.get().around.as_ref().map(|around| around.clone_ref(py));
        }
        Ok(Self(Py::new(py, Mark { around, has_ended: AtomicBool::default(), state: Mutex::default() })?))
    }

    /// The mark of a call that has begun to wait, for the tasks that it has made so far.
    pub(crate) fn after_start(py: Python<'_>) -> PyResult<Self> {
        let marked = Self::new(py)?;
        py.import("amplifier_core._tasks")?.call_method1("mark", (variable(py)?, &marked.0))?;
        Ok(marked)
    }

    /// Runs a piece of the hook with its mark.
    pub(crate) fn around<T>(&self, py: Python<'_>, piece: impl FnOnce() -> T) -> PyResult<T> {
        let variable = variable(py)?;
        let token = variable.call_method1(intern!(py, "set"), (&self.0,))?;
        let done = piece();
        // What runs in this context before the next piece is not the hook's.
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

    /// Says by which timer the hook's time runs, and whether the hook itself waits for a person. Gives whether a person is waited for.
    pub(crate) fn is_one_open(&self, timer: &Arc<Timer>, is_asking: bool) -> bool {
        let mut state = self.state();
        state.timer = Arc::downgrade(timer);
        // Of a question that carries the mark, it is told when it is closed.
        state.is_asking = is_asking && state.open == 0;
        state.is_one_open()
    }

    /// Lets the kernel, which waits for the hook, hear of the questions that carry the mark.
    pub(crate) fn tell(&self, context: &Context<'_>, question: &mut Option<Question>) {
        let mut state = self.state();
        state.waker = Some(context.waker().clone());
        match (state.open > 0, &question) {
            (true, None) => *question = Some(Question::open()),
            (false, Some(_)) => *question = None,
            _ => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, MarkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a question was opened or closed, for this hook and those around it.
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
            // Its loop is another one, whose clock only it can read.
            Some(timer) => timer.call_on_its_loop(&slf.getattr(intern!(py, "look"))?),
        }
        slf.get().around.as_ref().map_or(Ok(()), |around| Self::note(around.bind(py), change))
    }
}

#[pymethods]
impl Mark {
    /// Lets the hook's time run, or stand still, as it has to by now.
    fn look(&self, py: Python<'_>) -> PyResult<()> {
        let (timer, is_one_open) = {
            let state = self.state();
            (state.timer.upgrade(), state.is_one_open())
        };
        match timer {
            // One that has fired counts the time for cleaning up, for which nobody is asked.
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

/// How long people have blocked this thread so far.
pub(crate) fn blocked_nanos() -> u64 {
    BLOCKED.get()
}

/// Asks a person in a way that may block the thread, and its loop.
pub(crate) fn track_blocking_wait<T>(ask: impl FnOnce() -> T) -> T {
    let since = loop_nanos();
    let asked = ask();
    let took = since.zip(loop_nanos()).map_or(0, |(since, now)| now.saturating_sub(since));
    BLOCKED.set(BLOCKED.get().saturating_add(took));
    asked
}

/// A question that is open, for the hooks that wait for it.
pub(crate) struct OpenPrompt(Py<Mark>);

impl OpenPrompt {
    /// The question that comes up now, if a hook that is marked waits for it.
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
