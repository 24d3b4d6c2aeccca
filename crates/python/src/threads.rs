//! Threads beside Python's: those of tokio, which processes, sockets and timers need, and one that wakes tasks of Python. None is started
//! before something needs it, and all end before the interpreter does.

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

/// How long the end of the interpreter waits for work that blocks.
const ENDING: Duration = Duration::from_secs(1);

/// A task that sleeps: its loop, and the future that it waits for.
pub(crate) type Sleeper = (Py<PyAny>, Py<PyAny>);

/// Something that needs the interpreter.
type Job = Box<dyn FnOnce(Python<'_>) + Send>;

/// What was started.
#[derive(Default)]
struct Threads {
    /// In which process: a fork leaves threads behind.
    process: u32,
    runtime: Option<Runtime>,
    waking: Option<(Sender<Job>, JoinHandle<()>)>,
    /// Whether the interpreter ends, so that nothing is started any more.
    has_ended: bool,
}

/// The thread that ends the interpreter, once it does.
static ENDED_BY: OnceLock<ThreadId> = OnceLock::new();

/// How many threads of Python's are at work here.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

// A std lock: nothing calls Python while it is held.
static THREADS: Mutex<Option<Threads>> = Mutex::new(None);

thread_local! {
    /// Whether Python runs on this thread, which then has the interpreter whenever it is here.
    static IS_OF_PYTHON: Cell<bool> = const { Cell::new(false) };
    /// Tasks that are to be woken when what runs now has returned, if something runs that gathers them.
    static GATHERED: RefCell<Option<Vec<Sleeper>>> = const { RefCell::new(None) };
}

fn threads() -> MutexGuard<'static, Option<Threads>> {
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if threads.as_ref().is_none_or(|threads| threads.process != process) {
        // What another process started is not here: ending it would wait for threads that there are not.
        std::mem::forget(threads.replace(Threads { process, ..Threads::default() }));
    }
    threads
}

/// Starts tokio, unless it runs already.
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
        threads.runtime = Some(runtime.map_err(|error| PyRuntimeError::new_err(format!("no threads: {error}")))?);
    }
    trace::to_logging();
    end_with_the_interpreter(py)
}

/// Tokio, if it was started: what is polled meanwhile can use it.
pub(crate) fn handle() -> Option<Handle> {
    // Nobody started anything, so there is nothing to look for.
    let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = threads.as_ref().filter(|threads| threads.process == std::process::id())?;
    threads.runtime.as_ref().map(|runtime| runtime.handle().clone())
}

/// Whether what was started was left behind in another process.
pub(crate) fn is_forked() -> bool {
    let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    threads.as_ref().is_some_and(|threads| threads.process != std::process::id() && threads.runtime.is_some())
}

/// A thread of Python's that is at work here.
pub(crate) struct ThreadGuard(());

impl ThreadGuard {
    /// Begins to work, unless the interpreter ends. A thread that nobody waits for stays here then: where it goes on, it would be torn out of
    /// what runs here when it next asks for an interpreter that is gone.
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

/// Says that Python runs on this thread.
pub(crate) fn mark_python_thread() {
    IS_OF_PYTHON.set(true);
}

/// Lets a task go on that sleeps: when what gathers has returned, or soon. Never now: whoever wakes may hold a lock of a library, for which
/// another thread of Python's waits with the interpreter in its hands, and waking gives the interpreter away.
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

/// Does something on a thread of Python's, and wakes afterwards whom it wakes.
pub(crate) fn defer_wakes<T>(act: impl FnOnce() -> T) -> T {
    /// Also if it panics.
    struct WakeGuard(Option<Vec<Sleeper>>);

    impl Drop for WakeGuard {
        fn drop(&mut self) {
            wake_all(GATHERED.replace(self.0.take()));
        }
    }

    let _gathering = WakeGuard(GATHERED.replace(Some(Vec::new())));
    act()
}

/// Calls code of Python's within what gathers. It may wait for somebody who was woken before, or whom it wakes itself.
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

/// Does something that needs the interpreter: now on a thread of Python's, soon on any other.
pub(crate) fn with_python(job: impl FnOnce(Python<'_>) + Send + 'static) {
    match IS_OF_PYTHON.get() {
        true => Python::attach(job),
        false => run_soon(job),
    }
}

/// Does it on a thread that holds nothing which another one waits for.
fn run_soon(job: impl FnOnce(Python<'_>) + Send + 'static) {
    let mut threads = threads();
    let Some(threads) = threads.as_mut().filter(|threads| !threads.has_ended) else { return };
    if threads.waking.is_none() {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("amplifier-wake".to_owned()).spawn(move || do_all(receiver));
        // Without threads, the task sleeps until its loop wakes it: time limits are the loop's.
        let Ok(thread) = thread else { return };
        threads.waking = Some((sender, thread));
    }
    if let Some((sender, _)) = &threads.waking {
        // It ends after everything was sent.
        drop(sender.send(Box::new(job)));
    }
}

fn do_all(jobs: Receiver<Job>) {
    let _ = Python::try_attach(end_with_the_interpreter);
    for job in jobs {
        // If the interpreter is gone, everybody is who could have been interested.
        let _ = Python::try_attach(job);
    }
}

fn wake_now(py: Python<'_>, (running, future): &Sleeper) {
    let wake = py.import("amplifier_core._bridge").and_then(|bridge| bridge.getattr("wake"));
    let woken =
        wake.and_then(|wake| running.bind(py).call_method1(intern!(py, "call_soon_threadsafe"), (wake, future)));
    // A loop that is closed has nobody to wake.
    drop(woken);
}

/// Has the threads ended before the interpreter: one that came later would find it gone.
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
        // It keeps its panics inside.
        drop(thread.join());
    }
}
