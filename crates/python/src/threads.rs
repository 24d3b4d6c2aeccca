//! Threads outside of Python: those of tokio, for processes, sockets and timers, and one that wakes Python tasks. Each starts on first use,
//! and all end before the interpreter does.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::trace;

/// The time that the end of the interpreter waits for blocking work.
const ENDING: Duration = Duration::from_secs(1);

/// A sleeping task: its loop, and the future that it waits for.
pub(crate) type Sleeper = (Py<PyAny>, Py<PyAny>);

type Job = Box<dyn FnOnce(Python<'_>) + Send>;

#[derive(Default)]
struct Threads {
    /// The id of the process; threads do not survive a fork.
    process: u32,
    runtime: Option<Runtime>,
    waking: Option<(Sender<Job>, JoinHandle<()>)>,
    /// `true` once the interpreter ends; nothing is started any more.
    has_ended: bool,
}

/// The thread that ends the interpreter.
static ENDED_BY: OnceLock<ThreadId> = OnceLock::new();

/// The number of Python threads that run native code.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

// A std lock: nothing calls Python while it is held.
static THREADS: Mutex<Option<Threads>> = Mutex::new(None);

thread_local! {
    /// `true` on Python threads, which hold the interpreter while they run native code.
    static IS_OF_PYTHON: Cell<bool> = const { Cell::new(false) };
    /// Tasks to wake when the current call returns, if the current call collects them.
    static GATHERED: RefCell<Option<Vec<Sleeper>>> = const { RefCell::new(None) };
}

fn threads() -> MutexGuard<'static, Option<Threads>> {
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if threads.as_ref().is_none_or(|threads| threads.process != process) {
        // Threads of another process do not exist here, so waiting for them would never end.
        std::mem::forget(threads.replace(Threads { process, ..Threads::default() }));
    }
    threads
}

/// Starts tokio, unless already running.
pub(crate) fn start(py: Python<'_>) -> PyResult<()> {
    {
        let mut threads = threads();
        let Some(threads) = threads.as_mut() else { return Ok(()) };
        if threads.has_ended {
            return Err(PyRuntimeError::new_err("the interpreter is about to end"));
        }
        if threads.runtime.is_some() {
            return Ok(());
        }
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("amplifier").enable_all().build();
        threads.runtime =
            Some(runtime.map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?);
    }
    trace::to_logging();
    end_with_the_interpreter(py)
}

/// Returns the handle of tokio, if started.
pub(crate) fn handle() -> Option<Handle> {
    // Nothing was started.
    let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = threads.as_ref().filter(|threads| threads.process == std::process::id())?;
    threads.runtime.as_ref().map(|runtime| runtime.handle().clone())
}

/// Returns `true` if the threads were started in a parent process.
pub(crate) fn is_forked() -> bool {
    let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    threads.as_ref().is_some_and(|threads| threads.process != std::process::id() && threads.runtime.is_some())
}

/// A Python thread that runs native code.
pub(crate) struct ThreadGuard(());

impl ThreadGuard {
    /// Enters native code, unless the interpreter ends. Another thread is then parked forever: otherwise it would fail in native code when it
    /// next needs the interpreter.
    ///
    /// # Errors
    /// On the thread that ends the interpreter.
    pub(crate) fn begin(py: Python<'_>) -> PyResult<Self> {
        let work = Self::count();
        let Some(&ended_by) = ENDED_BY.get() else { return Ok(work) };
        drop(work);
        if ended_by == std::thread::current().id() {
            return Err(PyRuntimeError::new_err("the interpreter is about to end"));
        }
        py.detach(|| {
            loop {
                std::thread::park();
            }
        })
    }

    fn count() -> Self {
        AT_WORK.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Marks this thread as a Python thread.
pub(crate) fn mark_python_thread() {
    IS_OF_PYTHON.set(true);
}

/// Wakes a sleeping task: after the current call has returned, or soon. Never immediately, because the caller may hold a lock that another
/// Python thread waits for with the interpreter held, and waking releases the interpreter.
pub(crate) fn wake(sleeper: Sleeper) {
    let left = GATHERED.with_borrow_mut(|gathered| match gathered {
        Some(gathered) => {
            gathered.push(sleeper);
            None
        }
        None => Some(sleeper),
    });
    if let Some(sleeper) = left {
        run_soon(move |py| wake_now(py, &sleeper));
    }
}

/// Runs a function on a Python thread, and wakes the collected tasks afterwards.
pub(crate) fn defer_wakes<T>(act: impl FnOnce() -> T) -> T {
    /// Also wakes them after a panic.
    struct WakeGuard(Option<Vec<Sleeper>>);

    impl Drop for WakeGuard {
        fn drop(&mut self) {
            wake_all(GATHERED.replace(self.0.take()));
        }
    }

    let _gathering = WakeGuard(GATHERED.replace(Some(Vec::new())));
    act()
}

/// Calls Python code within a function that collects wakes. Tasks are woken before, because the code may wait for them.
pub(crate) fn call_python<T>(call: impl FnOnce(Python<'_>) -> T) -> T {
    let gathered = GATHERED.take();
    let gathers = gathered.is_some();
    wake_all(gathered);
    let given = Python::attach(call);
    if gathers {
        GATHERED.set(Some(Vec::new()));
    }
    given
}

fn wake_all(sleepers: Option<Vec<Sleeper>>) {
    if let Some(sleepers) = sleepers.filter(|sleepers| !sleepers.is_empty()) {
        Python::attach(|py| sleepers.iter().for_each(|sleeper| wake_now(py, sleeper)));
    }
}

/// Runs work that needs the interpreter: immediately on a Python thread, soon on any other.
pub(crate) fn with_python(job: impl FnOnce(Python<'_>) + Send + 'static) {
    match IS_OF_PYTHON.get() {
        true => Python::attach(job),
        false => run_soon(job),
    }
}

/// Runs a job on a thread that holds no locks.
fn run_soon(job: impl FnOnce(Python<'_>) + Send + 'static) {
    let mut threads = threads();
    let Some(threads) = threads.as_mut().filter(|threads| !threads.has_ended) else { return };
    if threads.waking.is_none() {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("amplifier-wake".to_owned()).spawn(move || do_all(receiver));
        // Without threads, the task sleeps until its loop wakes it: the loop implements the time limits.
        let Ok(thread) = thread else { return };
        threads.waking = Some((sender, thread));
    }
    if let Some((sender, _)) = &threads.waking {
        // Ends after all jobs were sent.
        drop(sender.send(Box::new(job)));
    }
}

fn do_all(jobs: Receiver<Job>) {
    let _ = Python::try_attach(end_with_the_interpreter);
    for job in jobs {
        // If the interpreter has ended, no task is left to wake.
        let _ = Python::try_attach(job);
    }
}

fn wake_now(py: Python<'_>, (running, future): &Sleeper) {
    let wake = py.import("amplifier_core._bridge").and_then(|bridge| bridge.getattr("wake"));
    let woken =
        wake.and_then(|wake| running.bind(py).call_method1(intern!(py, "call_soon_threadsafe"), (wake, future)));
    // A closed loop has no tasks to wake.
    drop(woken);
}

/// Ends the threads before the interpreter, because a later job would fail.
fn end_with_the_interpreter(py: Python<'_>) -> PyResult<()> {
    let end = PyCFunction::new_closure(py, None, None, |args, _| args.py().detach(end))?;
    py.import("atexit")?.call_method1("register", (end,)).map(drop)
}

fn end() {
    _ = ENDED_BY.set(std::thread::current().id());
    let deadline = Instant::now() + ENDING;
    while AT_WORK.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let ended = threads().as_mut().map(|threads| {
        threads.has_ended = true;
        (threads.runtime.take(), threads.waking.take())
    });
    let Some((runtime, waking)) = ended else { return };
    if let Some(runtime) = runtime {
        runtime.shutdown_timeout(ENDING);
    }
    if let Some((sender, thread)) = waking {
        drop(sender);
        // Panics stay inside the thread.
        drop(thread.join());
    }
}
