//! Rust futures that Python awaits, and Python awaitables that Rust awaits.
//!
//! A future is polled in the task that awaits it. Awaitables that the future waits for run in separate tasks on the same loop, because the
//! future may wait for a time limit or another awaitable at the same time.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tokio::runtime::Handle;

use crate::step::{Input, ResumeStep, awaitable};
use crate::threads::{self, ThreadGuard};
use crate::timer::{is_a_cancellation, is_an_interrupt, running_loop};

type BoxFuture = Pin<Box<dyn Future<Output = PyResult<Py<PyAny>>> + Send>>;

/// A future of the kernel that Python awaits.
#[pyclass(name = "Driven", module = "amplifier_core.coordinator")]
pub(crate) struct KernelFuture {
    // Never locked: it is only accessed through `&mut self`, and makes the future `Sync`.
    future: Mutex<Option<BoxFuture>>,
    waker: Arc<TaskWaker>,
    /// Asks the future to end by itself when it is cancelled.
    stop: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// The cancellation after which `stop` was called.
    stopped: Option<PyErr>,
}

/// Wakes the task that awaits a [`KernelFuture`].
#[derive(Default)]
struct TaskWaker {
    is_woken: AtomicBool,
    /// The task, if it sleeps.
    sleeping: Mutex<Option<threads::Sleeper>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let sleeping = self.sleeping.lock().unwrap_or_else(PoisonError::into_inner).take();
        sleeping.into_iter().for_each(threads::wake);
    }
}

impl KernelFuture {
    pub(crate) fn new(future: impl Future<Output = PyResult<Py<PyAny>>> + Send + 'static) -> Self {
        Self { future: Mutex::new(Some(Box::pin(future))), waker: Arc::default(), stop: None, stopped: None }
    }

    /// Lets a cancelled future end by itself: `stop` asks it to, and returns whether there is something to end. A second cancellation drops
    /// the future.
    pub(crate) fn stopping(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop = Some(Box::new(stop));
        self
    }

    fn future(&mut self) -> &mut Option<BoxFuture> {
        self.future.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn resume<'py>(&mut self, py: Python<'py>, input: Input<'py>) -> PyResult<ResumeStep<'py>> {
        let _at_work = ThreadGuard::begin(py)?;
        threads::mark_python_thread();
        let runtime = threads::handle();
        let _within = runtime.as_ref().map(Handle::enter);
        if let Input::Throw(error) = input {
            match self.stop.as_ref().filter(|_| self.stopped.is_none()) {
                Some(stop) if is_a_cancellation(py, &error)? && stop() => self.stopped = Some(error),
                _ => {
                    self.give_up();
                    return Err(error);
                }
            }
        }
        let waker = Waker::from(self.waker.clone());
        loop {
            self.waker.is_woken.store(false, Ordering::Release);
            let Some(future) = self.future() else {
                return Err(PyRuntimeError::new_err("cannot reuse already awaited future"));
            };
            let polled = threads::defer_wakes(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
            if let Some(interrupt) = INTERRUPT.take() {
                self.give_up();
                // A future that is cancelled while interrupted raises only once.
                INTERRUPT.take();
                return Err(interrupt);
            }
            if let Poll::Ready(result) = polled {
                *self.future() = None;
                if let Some(cancelled) = self.stopped.take() {
                    return Err(cancelled);
                }
                return result.map(|value| ResumeStep::Return(value.into_bound(py)));
            }
            if let Some(waits) = self.sleep(py)? {
                return Ok(ResumeStep::Yield(waits));
            }
        }
    }

    /// Returns the awaitable for the loop, unless the future was woken meanwhile.
    fn sleep<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.waker.is_woken.load(Ordering::Acquire) {
            return Ok(None);
        }
        let running = running_loop(py).ok_or_else(no_loop)?;
        let future = running.call_method0(intern!(py, "create_future"))?;
        let sleeper = (running.unbind(), future.clone().unbind());
        {
            let mut sleeping = self.waker.sleeping.lock().unwrap_or_else(PoisonError::into_inner);
            // Checked under the lock, so that a later wake finds the sleeper.
            if self.waker.is_woken.load(Ordering::Acquire) {
                return Ok(None);
            }
            *sleeping = Some(sleeper);
        }
        // Tells the task that it may sleep until the future is done.
        future.setattr(intern!(py, "_asyncio_future_blocking"), true)?;
        Ok(Some(future))
    }

    /// Drops the future, which withdraws everything it waits for.
    fn give_up(&mut self) {
        let runtime = threads::handle();
        let _within = runtime.as_ref().map(Handle::enter);
        threads::defer_wakes(|| *self.future() = None);
    }

    fn end(&mut self, _py: Python<'_>) -> PyResult<()> {
        self.give_up();
        Ok(())
    }
}

awaitable!(KernelFuture {});

impl Drop for KernelFuture {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// The error for work that waits where no loop of asyncio runs, for example on trio.
fn no_loop() -> PyErr {
    PyRuntimeError::new_err(
        "no running event loop of asyncio: only handlers in Python can wait on trio; coordinators, sessions and bundles need asyncio",
    )
}

thread_local! {
    /// An error that ends more than the part that raised it, such as `KeyboardInterrupt`.
    static INTERRUPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Stores an error that the kernel must not handle; everything that waits here is cancelled.
pub(crate) async fn interrupt(error: PyErr) -> std::convert::Infallible {
    INTERRUPT.set(Some(error));
    std::future::pending().await
}

/// Stores such an error until the future is polled no more.
pub(crate) fn note_interrupt(py: Python<'_>, error: &PyErr) {
    if is_an_interrupt(py, error).unwrap_or_default() {
        INTERRUPT.set(Some(error.clone_ref(py)));
    }
}

/// Calls Python and waits for the result.
pub(crate) async fn ask(call: impl FnOnce(Python<'_>) -> PyResult<CallFuture>) -> PyResult<Py<PyAny>> {
    uninterrupted().await;
    awaited(threads::call_python(call)).await
}

/// Continues unless an interrupt was raised, after which Python is no longer called.
pub(crate) async fn uninterrupted() {
    if is_interrupted() {
        std::future::pending().await
    }
}

/// Waits for the result of a Python call. An interrupt returns no result: the whole future is cancelled.
pub(crate) async fn awaited(asked: PyResult<CallFuture>) -> PyResult<Py<PyAny>> {
    let answer = match asked {
        Ok(pending) => pending.await,
        Err(error) => Err(error),
    };
    if let Err(error) = &answer {
        Python::attach(|py| note_interrupt(py, error));
        uninterrupted().await;
    }
    answer
}

fn is_interrupted() -> bool {
    INTERRUPT.with_borrow(Option::is_some)
}

/// A one-time alarm that wakes its waiter.
#[derive(Clone, Default)]
pub(crate) struct Alarm(Arc<Mutex<(bool, Option<Waker>)>>);

impl Alarm {
    pub(crate) fn has_rung(&self) -> bool {
        self.state().0
    }

    pub(crate) fn wakes(&self, context: &Context<'_>) {
        self.state().1 = Some(context.waker().clone());
    }

    fn ring(&self) {
        let waker = {
            let mut state = self.state();
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, (bool, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The callback with which Python rings an alarm.
#[pyclass(frozen)]
pub(crate) struct AlarmCallback(pub(crate) Alarm);

#[pymethods]
impl AlarmCallback {
    #[pyo3(signature = (*_done))]
    fn __call__(&self, _done: &Bound<'_, PyTuple>) {
        threads::mark_python_thread();
        threads::defer_wakes(|| self.0.ring());
    }
}

/// The result of a Python call: immediate, or a task that Rust awaits.
pub(crate) enum CallFuture {
    Now(Option<PyResult<Py<PyAny>>>),
    Task { task: Py<PyAny>, alarm: Alarm },
}

impl CallFuture {
    /// Converts the return value of a call. An awaitable becomes a task.
    pub(crate) fn of(answer: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = answer.py();
        if answer.getattr_opt(intern!(py, "__await__"))?.is_none() {
            return Ok(Self::Now(Some(Ok(answer.unbind()))));
        }
        if running_loop(py).is_none() {
            // Closed, so that it is not reported as never awaited.
            if let Some(close) = answer.getattr_opt(intern!(py, "close"))? {
                close.call0()?;
            }
            return Err(no_loop());
        }
        let task = py.import("asyncio")?.call_method1("ensure_future", (answer,))?;
        let alarm = Alarm::default();
        task.call_method1(intern!(py, "add_done_callback"), (AlarmCallback(alarm.clone()),))?;
        Ok(Self::Task { task: task.unbind(), alarm })
    }
}

impl Future for CallFuture {
    type Output = PyResult<Py<PyAny>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Self::Task { task, alarm } => Python::attach(|py| {
                let task = task.bind(py);
                let is_done = task.call_method0(intern!(py, "done")).and_then(|done| done.extract::<bool>());
                match is_done {
                    Ok(false) => {
                        alarm.wakes(context);
                        Poll::Pending
                    }
                    Ok(true) => Poll::Ready(task.call_method0(intern!(py, "result")).map(Bound::unbind)),
                    Err(error) => Poll::Ready(Err(error)),
                }
            }),
        }
    }
}

impl Drop for CallFuture {
    fn drop(&mut self) {
        if let Self::Task { task, .. } = self {
            // Cancelling a finished task has no effect.
            Python::attach(|py| {
                if let Err(error) = task.bind(py).call_method0(intern!(py, "cancel")) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }
}
