//! Deadlines of hooks on an event loop.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyWeakrefMethods, PyWeakrefReference};

use crate::timer::{Moment, running_loop, time};

/// The deadlines of all hooks that wait on a loop. One timer of the loop serves all of them, because a timer per hook would cost more than
/// most hooks. Nearly all hooks end in time, so that the timer usually finds nothing to cancel.
// Held by the loop's timer and by the waiting hooks.
#[pyclass(frozen, weakref)]
pub(crate) struct DeadlineWatch {
    running: Option<Py<PyWeakrefReference>>,
    // A std lock: nothing calls Python while it is held.
    book: Mutex<WaiterTable>,
}

#[derive(Default)]
struct WaiterTable {
    waiters: BTreeMap<WaiterKey, Waiter>,
    added: u64,
    /// The time of the loop's timer, and a weak reference to its handle, which would otherwise keep the loop alive.
    call: Option<(Moment, Option<Py<PyWeakrefReference>>)>,
}

/// A deadline, with a number that distinguishes equal times.
pub(crate) type WaiterKey = (Moment, u64);

pub(crate) struct Waiter {
    pub(crate) task: Py<PyAny>,
    pub(crate) fired: Arc<AtomicU32>,
}

impl DeadlineWatch {
    /// Returns the deadlines of a loop. A thread runs one loop at a time, usually the same one, but may alternate between several.
    pub(crate) fn of<'py>(running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        thread_local! {
            static KNOWN: RefCell<Vec<Py<PyWeakrefReference>>> = const { RefCell::new(Vec::new()) };
        }
        let py = running.py();
        let upgraded = |known: &Py<PyWeakrefReference>| known.bind(py).upgrade()?.cast_into::<Self>().ok();
        let is_its = |watch: &Bound<'_, Self>| watch.get().is_of(running);
        if let Some(watch) = KNOWN.with_borrow(|known| known.iter().filter_map(upgraded).find(is_its)) {
            return Ok(watch);
        }
        let watch = Bound::new(py, Self { running: weak(running), book: Mutex::default() })?;
        KNOWN.with_borrow_mut(|known| {
            known.retain(|known| upgraded(known).is_some());
            known.extend(weak(watch.as_any()));
        });
        Ok(watch)
    }

    fn is_of(&self, running: &Bound<'_, PyAny>) -> bool {
        let known = self.running.as_ref().and_then(|known| known.bind(running.py()).upgrade());
        known.is_some_and(|known| known.is(running))
    }

    fn book(&self) -> MutexGuard<'_, WaiterTable> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(
        slf: &Bound<'_, Self>,
        running: &Bound<'_, PyAny>,
        until: Moment,
        waiter: Waiter,
    ) -> PyResult<WaiterKey> {
        let mut book = slf.get().book();
        book.added += 1;
        let place = (until, book.added);
        book.waiters.insert(place, waiter);
        let is_in_time = book.call.as_ref().is_some_and(|(when, _)| *when <= until);
        drop(book);
        if !is_in_time && let Err(error) = Self::call_at(slf, running, until) {
            slf.get().remove(place);
            return Err(error);
        }
        Ok(place)
    }

    pub(crate) fn remove(&self, place: WaiterKey) {
        let waiter = self.book().waiters.remove(&place);
        // After the lock is released, because dropping may run code.
        drop(waiter);
    }

    /// Replaces the loop's timer with one at an earlier time.
    fn call_at(slf: &Bound<'_, Self>, running: &Bound<'_, PyAny>, when: Moment) -> PyResult<()> {
        let py = slf.py();
        // In an empty context, so that the first hook's context variables do not leak to others.
        let context = py.import("contextvars")?.getattr("Context")?.call0()?;
        let named = [("context", context)].into_py_dict(py)?;
        let handle = running.call_method(intern!(py, "call_at"), (when.seconds(), slf, when.0), Some(&named))?;
        let call = (when, weak(&handle));
        let last = slf.get().book().call.replace(call);
        if let Some(last) = last.and_then(|(_, last)| last?.bind(py).upgrade()) {
            last.call_method0(intern!(py, "cancel"))?;
        }
        Ok(())
    }
}

#[pymethods]
impl DeadlineWatch {
    /// Called by the loop with the scheduled time; cancels all hooks whose deadline has passed.
    fn __call__(slf: &Bound<'_, Self>, when: i64) -> PyResult<()> {
        let py = slf.py();
        let Some(running) = running_loop(py) else { return Ok(()) };
        // Loops call slightly early, by less than the resolution of their clocks.
        let now = time(&running)?.max(Moment(when));
        let mut book = slf.get().book();
        let later = book.waiters.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut book.waiters, later);
        let over = book.call.take_if(|(next, _)| *next <= now);
        let first = book.waiters.first_key_value().map(|((until, _), _)| *until);
        let next = first.filter(|_| book.call.is_none());
        drop(book);
        drop(over);
        for waiter in due.into_values() {
            waiter.fired.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = waiter.task.bind(py).call_method0(intern!(py, "cancel")) {
                error.write_unraisable(py, None);
            }
        }
        next.map_or(Ok(()), |next| Self::call_at(slf, &running, next))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Skipped if in use.
        let Ok(book) = self.book.try_lock() else { return Ok(()) };
        book.waiters.values().try_for_each(|waiter| visit.call(&waiter.task))
    }

    fn __clear__(&self) {
        let waiters = std::mem::take(&mut self.book().waiters);
        drop(waiters);
    }
}

/// Returns a weak reference. Objects without support for weak references, such as those of other loop implementations, are forgotten: a timer
/// that is not cancelled finds nothing, and a loop that is not found again gets new deadlines.
fn weak(object: &Bound<'_, PyAny>) -> Option<Py<PyWeakrefReference>> {
    PyWeakrefReference::new(object).ok().map(Bound::unbind)
}
