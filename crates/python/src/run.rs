//! A running emission.

mod call;
mod observers;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use amplifier_core::driving::{PersonWaits, contain};
use amplifier_core::{Action, Emission, EventData, HookError, Listeners};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use self::call::{CallProgress, CallResult, begin, raised, raised_while};
use crate::data::DictData;
use crate::emit::{EmitRequest, Purpose, SessionRef};
use crate::event_words::EventWords;
use crate::hook::SharedHook;
use crate::native::{self, NativeAnswer};
use crate::outcome::{self, Outcome, may_be_collected};
use crate::person_wait::MarkGuard;
use crate::registry::HookRegistry;
use crate::result::HookResult;
use crate::step::{AwaitedObject, Input, ResumeStep, is_awaitable};
use crate::timer::{Timer, cancelled, followed, is_an_interrupt, running_loop};
use crate::{answer, encode, log, send, trio};

pub(crate) struct Run {
    emission: Emission<DictData>,
    // The garbage collector sees handlers through their registry, so the registry must live as long as they can be called.
    registry: Py<HookRegistry>,
    /// The name as emitted.
    event: Py<PyString>,
    /// The data as emitted; modifications create new dicts.
    emitted: Py<PyDict>,
    purpose: Purpose,
    session: Option<SessionRef>,
    /// `true` if any hook returned more than a plain "continue".
    has_response: bool,
    // Boxed: most hooks do not wait, and emissions are moved.
    waiting: Option<Box<SuspendedCall>>,
    /// The data as JSON, for native hooks; `None` until needed after a change.
    // Boxed for the same reason.
    json: Option<Box<EventData>>,
    /// The nested values before the running hook, in strict mode.
    snapshot: Option<Py<PyAny>>,
    /// The start of the last hook, if durations are requested.
    since: Option<Instant>,
    /// The last hook that was called with a mark.
    marked: Option<(usize, MarkGuard)>,
}

struct SuspendedCall {
    awaiting: AwaitedObject,
    who: CallTarget,
    timer: Option<Arc<Timer>>,
    questions: PersonWaits,
    /// The mark in its context, for a Python hook.
    mark: Option<MarkGuard>,
}

enum CallTarget {
    Hook(usize),
    /// Concurrent observers, each with its own time limit.
    Observers(Vec<usize>),
}

impl Run {
    /// Returns the hooks of the event, and the data with the added fields.
    #[inline]
    pub(crate) fn prepare(py: Python<'_>, order: &EmitRequest) -> PyResult<(Listeners, DictData)> {
        let shared = order.registry.get();
        let listeners = shared.listeners(order.event.bind(py))?;
        let reserved = order.session.as_ref().and_then(|session| session.get().reserved.as_ref());
        let (base, stamped) = (shared.base(), !listeners.hooks().is_empty());
        let data = DictData::new(order.data.bind(py), base.as_deref(), reserved, stamped)?;
        Ok((listeners, data))
    }

    /// Starts an emission. Infallible, so that it is constructed in place: moving one costs as much as a hook.
    #[inline]
    pub(crate) fn new(py: Python<'_>, order: EmitRequest, listeners: Listeners, data: DictData) -> Self {
        let EmitRequest { registry, event, purpose, session, .. } = order;
        let emitted = data.current.clone_ref(py);
        let mut emission = Emission::new(listeners, data);
        if let Purpose::Collect(_) = purpose {
            emission = emission.collecting();
        }
        Self {
            emission,
            registry,
            event,
            emitted,
            purpose,
            session,
            has_response: false,
            waiting: None,
            json: None,
            snapshot: None,
            since: matches!(purpose, Purpose::Outcome).then(Instant::now),
            marked: None,
        }
    }

    /// The name as emitted.
    pub(crate) fn event(&self) -> &Py<PyString> {
        &self.event
    }

    /// Runs hooks until one waits, and returns its awaitable, or until all have answered.
    pub(crate) fn advance<'py>(
        &mut self,
        py: Python<'py>,
        mut input: Option<Input<'py>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(waiting) = self.waiting.take() {
            let input = input.take().unwrap_or_else(|| Input::Send(py.None().into_bound(py)));
            let (who, reached) = self.proceed(py, waiting, input)?;
            if let Some(yielded) = self.settle(py, who, reached)? {
                return Ok(Some(yielded));
            }
        }
        let shared = self.registry.get();
        let strict = shared.is_strict();
        // Concurrent observers are tasks of asyncio.
        let parallel_observers = shared.parallel_observers && running_loop(py).is_some();
        let is_on_trio = trio::is_running(py)?;
        while let Some(index) = self.emission.next_hook() {
            // Not in strict mode: with concurrent observers, the one that changed a value would be unknown.
            let (who, reached) = if parallel_observers && !strict && index >= self.emission.gates() {
                self.begin_observers(py, index)?
            } else if is_on_trio {
                (CallTarget::Hook(index), self.begin_on_trio(py, index, strict)?)
            } else {
                let view = self.view(py, strict)?;
                match self.call(index, view, begin) {
                    // Most hooks answer immediately with a plain "continue".
                    Ok(Ok(CallResult::Answered(answer))) => {
                        self.take(py, index, &answer)?;
                        continue;
                    }
                    called => (CallTarget::Hook(index), self.begun(py, index, called)?),
                }
            };
            if let Some(yielded) = self.settle(py, who, reached)? {
                return Ok(Some(yielded));
            }
        }
        Ok(None)
    }

    /// Processes the progress of a call, or returns its awaitable.
    #[inline(never)]
    fn settle<'py>(
        &mut self,
        py: Python<'py>,
        who: CallTarget,
        reached: CallProgress<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match (reached, who) {
            (CallProgress::Waits(yielded), _) => return Ok(Some(yielded)),
            (CallProgress::Returned(answer), CallTarget::Hook(index)) => self.take(py, index, &answer)?,
            (CallProgress::Returned(answers), CallTarget::Observers(all)) => self.take_all(py, all, &answers)?,
            (CallProgress::Failed(error, cause), CallTarget::Hook(index)) => self.fail(py, index, error, cause)?,
            (CallProgress::Failed(..), CallTarget::Observers(_)) => {
                return Err(PyRuntimeError::new_err("observers failed"));
            }
        }
        Ok(None)
    }

    /// Converts the result of starting a hook to its progress.
    #[inline(never)]
    fn begun<'py>(
        &mut self,
        py: Python<'py>,
        index: usize,
        called: Result<PyResult<CallResult<'py>>, HookError>,
    ) -> PyResult<CallProgress<'py>> {
        match called {
            Ok(Ok(CallResult::Answered(answer))) => Ok(CallProgress::Returned(answer)),
            Ok(Ok(CallResult::Waits(awaiting, yielded))) => self.begin_to_wait(py, index, awaiting, yielded),
            Ok(Err(error)) if trio::is_time_limit(py, &error)? => {
                Ok(self.timed_out(&CallTarget::Hook(index), error.cause(py), py))
            }
            Ok(Err(error)) => raised(py, error),
            Err(error) => Ok(CallProgress::Failed(error, None)),
        }
    }

    /// Starts a hook within a cancel scope of trio.
    fn begin_on_trio<'py>(&mut self, py: Python<'py>, index: usize, strict: bool) -> PyResult<CallProgress<'py>> {
        let view = self.view(py, strict)?;
        let limit = self.limit(index);
        let called = self.call(index, view, |answer| match is_awaitable(&answer)? {
            true => begin(trio::limited(&answer, limit)?),
            false => Ok(CallResult::Answered(answer)),
        });
        self.begun(py, index, called)
    }

    fn begin_to_wait<'py>(
        &mut self,
        py: Python<'py>,
        index: usize,
        mut awaiting: AwaitedObject,
        mut yielded: Bound<'py, PyAny>,
    ) -> PyResult<CallProgress<'py>> {
        let mark = self.mark_of(py, index)?;
        let is_on_trio = trio::is_running(py)?;
        let followed = if is_on_trio { None } else { followed(awaiting.object(py), &yielded)? };
        if let Some(followed) = &followed {
            awaiting = AwaitedObject::of(followed)?.unwrap_or(awaiting);
            let first = awaiting.resume(py, Input::Send(py.None().into_bound(py)));
            match first {
                Ok(ResumeStep::Yield(first)) => yielded = first,
                Ok(ResumeStep::Return(answer)) => return Ok(CallProgress::Returned(answer)),
                Err(error) => return raised(py, error),
            }
        }
        let timer = if is_on_trio { None } else { Timer::new(py, self.limit(index), followed)?.map(Arc::new) };
        if timer.is_none() && !is_on_trio {
            trio::warn_unlimited(py, &self.emission.hook(index).info().name);
        }
        let mut waiting =
            SuspendedCall { awaiting, who: CallTarget::Hook(index), timer, questions: PersonWaits::default(), mark };
        self.keep_time(py, &mut waiting)?;
        self.waiting = Some(Box::new(waiting));
        Ok(CallProgress::Waits(yielded))
    }

    /// Returns the data for a hook: a separate dict, so that setting keys does not affect others.
    #[inline]
    fn view<'py>(&mut self, py: Python<'py>, strict: bool) -> PyResult<Bound<'py, PyDict>> {
        let view = self.emission.data().current.bind(py).copy()?;
        if strict {
            self.snapshot = Some(in_strict(py, intern!(py, "snapshot"))?.call1((&view,))?.unbind());
        }
        Ok(view)
    }

    /// Calls a hook and passes its return value to `then`. The inner error is an exception of the hook.
    #[inline]
    fn call<'py, T>(
        &mut self,
        index: usize,
        view: Bound<'py, PyDict>,
        then: impl FnOnce(Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Result<PyResult<T>, HookError> {
        let py = view.py();
        let hook = self.emission.hook(index);
        let Some(shared) = hook.downcast_ref::<SharedHook>() else {
            return contain(|| {
                let data = self.as_json(&view)?;
                let data = self.words(&data).map_or_else(|| data.clone(), |words| words.to_ours(&data));
                then(Bound::new(py, native::call(self.emission.hook(index).clone(), data))?.into_any())
            });
        };
        // The hook may change nested values in place, and later hooks must see the actual values.
        self.json = None;
        let other;
        let told = if self.registry.get().compat || hook.event() == self.emission.event() {
            self.event.bind(py)
        } else {
            other = PyString::new(py, hook.event().as_str());
            &other
        };
        let call = || contain(|| then(send::call(shared.handler.bind(py), told, &view)?));
        if shared.waits.load(Ordering::Relaxed) {
            return match MarkGuard::new(py).and_then(|mark| Ok((mark.around(py, call)?, mark))) {
                Ok((called, mark)) => {
                    self.marked = Some((index, mark));
                    called
                }
                Err(error) => Ok(Err(error)),
            };
        }
        call()
    }

    /// Returns the mark of a hook that has started to wait.
    fn mark_of(&mut self, py: Python<'_>, index: usize) -> PyResult<Option<MarkGuard>> {
        let Some(shared) = self.emission.hook(index).downcast_ref::<SharedHook>() else { return Ok(None) };
        if let Some((_, mark)) = self.marked.take_if(|(marked, _)| *marked == index) {
            return Ok(Some(mark));
        }
        shared.waits.store(true, Ordering::Relaxed);
        // Without a loop there are no tasks.
        running_loop(py).map(|_| MarkGuard::after_start(py)).transpose()
    }

    /// Returns the data for a native hook.
    fn as_json(&mut self, view: &Bound<'_, PyDict>) -> PyResult<EventData> {
        let data = match self.json.take() {
            Some(data) => data,
            None => Box::new(EventData::from(encode::to_map(view)?)),
        };
        Ok(EventData::clone(self.json.insert(data)))
    }

    /// Returns the words of the event that differ from those of native hooks.
    fn words(&self, data: &EventData) -> Option<EventWords> {
        EventWords::find(self.emission.event().as_str(), data, self.registry.get().compat)
    }

    /// Resumes the waiting call.
    fn proceed<'py>(
        &mut self,
        py: Python<'py>,
        mut waiting: Box<SuspendedCall>,
        input: Input<'py>,
    ) -> PyResult<(CallTarget, CallProgress<'py>)> {
        let resumed = match &waiting.timer {
            // The clean-up time is over, and the hook still runs.
            Some(timer) if timer.is_over() => waiting.awaiting.close(py).and(Err(cancelled(py)?)),
            _ => {
                let resume = || contain(|| waiting.awaiting.resume(py, input));
                let resumed = match &waiting.mark {
                    Some(mark) => mark.around(py, resume)?,
                    None => resume(),
                };
                match resumed {
                    Ok(resumed) => resumed,
                    Err(error) => return Ok((waiting.who, CallProgress::Failed(error, None))),
                }
            }
        };
        if let Ok(ResumeStep::Yield(yielded)) = resumed {
            self.keep_time(py, &mut waiting)?;
            self.waiting = Some(waiting);
            return Ok((CallTarget::Observers(Vec::new()), CallProgress::Waits(yielded)));
        }
        let SuspendedCall { who, timer, .. } = *waiting;
        let timed_out = timer.as_ref().is_some_and(|timer| timer.has_fired());
        let cancelled_by_others = timer.as_ref().map_or(Ok(false), |timer| timer.end(py))?;
        let reached = match resumed {
            Err(error) if timed_out && cancelled_by_others && !error.is_instance_of::<PyException>(py) => {
                return Err(error);
            }
            Err(error) if timed_out && !is_an_interrupt(py, &error)? => self.timed_out(&who, Some(error), py),
            Ok(_) if timed_out => self.timed_out(&who, None, py),
            Ok(ResumeStep::Return(answer)) => CallProgress::Returned(answer),
            Ok(ResumeStep::Yield(yielded)) => CallProgress::Waits(yielded),
            Err(error) if timer.is_none() && trio::is_time_limit(py, &error)? => {
                self.timed_out(&who, error.cause(py), py)
            }
            Err(error) => match &timer {
                Some(timer) => raised_while(py, error, || timer.was_cancelled(py))?,
                None => raised_while(py, error, || true)?,
            },
        };
        Ok((who, reached))
    }

    fn timed_out<'py>(&self, who: &CallTarget, error: Option<PyErr>, py: Python<'py>) -> CallProgress<'py> {
        let limit = match who {
            CallTarget::Hook(index) => self.limit(*index),
            CallTarget::Observers(_) => Duration::ZERO,
        };
        // The cancellation came from the time limit; all other exceptions deserve a traceback.
        let error = error.filter(|error| error.is_instance_of::<PyException>(py));
        CallProgress::Failed(HookError::TimedOut(limit), error)
    }

    fn limit(&self, index: usize) -> Duration {
        match self.purpose {
            Purpose::Collect(limit) => limit,
            Purpose::Flat | Purpose::Outcome => self.emission.hook(index).info().timeout,
        }
    }

    /// Arms a timer for a hook that actually waits, and pauses it while the hook waits for a user.
    fn keep_time(&self, py: Python<'_>, waiting: &mut SuspendedCall) -> PyResult<()> {
        let Some(timer) = &waiting.timer else { return Ok(()) };
        let is_asking = waiting.questions.is_any_open();
        let is_one_open = waiting.mark.as_ref().map_or(is_asking, |mark| mark.is_one_open(timer, is_asking));
        if timer.has_fired() {
            timer.rearm_after_firing();
            timer.arm(py)
        } else if is_one_open {
            timer.pause(py)
        } else {
            timer.arm(py)
        }
    }

    #[inline]
    fn take(&mut self, py: Python<'_>, index: usize, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        if answer::is_silent(answer) {
            self.emission.answer_continue(index);
            return self.answered(py, index);
        }
        self.read(py, index, answer)
    }

    #[inline(never)]
    fn read(&mut self, py: Python<'_>, index: usize, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        let read = match self.emission.hook(index).downcast_ref::<SharedHook>() {
            Some(_) => answer::read(answer),
            None => {
                let native = answer.cast::<NativeAnswer>()?.get();
                let before = self.json.as_deref();
                let words = before.and_then(|before| self.words(before));
                native.read(self.emission.data().current.bind(py), before, words.as_ref())
            }
        };
        match read {
            Ok(None) => self.emission.answer_continue(index),
            Ok(Some(answer)) => {
                self.has_response = true;
                if matches!(answer.action, Action::Modify(_)) {
                    self.json = None;
                }
                self.emission.answer(index, Ok(answer));
            }
            Err(error) => {
                self.log_failure(py, index, &error, None);
                self.has_response = true;
                self.emission.answer(index, Err(error));
            }
        }
        self.answered(py, index)
    }

    fn fail(&mut self, py: Python<'_>, index: usize, error: HookError, cause: Option<PyErr>) -> PyResult<()> {
        self.log_failure(py, index, &error, cause.as_ref());
        self.has_response = true;
        self.emission.answer(index, Err(error));
        self.answered(py, index)
    }

    fn log_failure(&self, py: Python<'_>, index: usize, error: &HookError, cause: Option<&PyErr>) {
        let hook = self.emission.hook(index);
        log::failed(py, &hook.info().name, hook.event().as_str(), error, cause);
    }

    #[inline]
    fn answered(&mut self, py: Python<'_>, index: usize) -> PyResult<()> {
        if let Some(since) = &mut self.since {
            let now = Instant::now();
            let took = now.duration_since(std::mem::replace(since, now));
            self.emission.record_duration(took.as_nanos().try_into().unwrap_or(u64::MAX));
        }
        if let Some(snapshot) = self.snapshot.take() {
            let name = &*self.emission.hook(index).info().name;
            in_strict(py, intern!(py, "check"))?.call1((name, snapshot))?;
        }
        Ok(())
    }

    /// Returns the result, if it is the flat view of plain "continue" results.
    #[inline]
    pub(crate) fn finish_silent<'py>(&self, py: Python<'py>) -> Option<PyResult<Bound<'py, PyAny>>> {
        (matches!(self.purpose, Purpose::Flat) && !self.has_response && !may_be_collected()).then(|| {
            let data = Some(self.emission.data().current.clone_ref(py));
            Ok(Bound::new(py, HookResult { data, ..HookResult::default() })?.into_any())
        })
    }

    #[inline(never)]
    pub(crate) fn finish(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        if let Some(silent) = self.finish_silent(py) {
            return silent;
        }
        let Self { emission, emitted, purpose, .. } = self;
        match purpose {
            Purpose::Flat if may_be_collected() => {
                let outcome = Outcome { kernel: emission.finish(), emitted };
                let flat = Bound::new(py, outcome.flat(py)?)?;
                outcome::collect(Bound::new(py, outcome)?, &flat)?;
                Ok(flat.into_any())
            }
            Purpose::Flat => Ok(Bound::new(py, HookResult::from_flat(py, emission.finish().flat())?)?.into_any()),
            Purpose::Outcome => Ok(Bound::new(py, Outcome { kernel: emission.finish(), emitted })?.into_any()),
            Purpose::Collect(_) => {
                let outcome = emission.finish();
                let answers = outcome.responses().iter().map(|answer| answer.value.clone_ref(py));
                Ok(PyList::new(py, answers.collect::<Vec<_>>())?.into_any())
            }
        }
    }

    /// Ends the emission: the running hook is closed, and the others are not called.
    pub(crate) fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let closed = self.waiting.take().map_or(Ok(()), |waiting| waiting.awaiting.close(py));
        self.give_up(py);
        closed
    }

    /// The awaited object may refer back to the task that awaits the hook.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.registry)?;
        visit.call(&self.emitted)?;
        visit.call(&self.emission.data().current)?;
        let Some(waiting) = &self.waiting else { return Ok(()) };
        waiting.awaiting.visit(visit)?;
        waiting.timer.as_ref().map_or(Ok(()), |timer| timer.visit(visit))
    }

    /// Returns the error that ended the emission.
    pub(crate) fn given_up(&self, py: Python<'_>, error: PyErr) -> PyErr {
        self.give_up(py);
        error
    }

    /// Records the results so far in the session's log.
    fn give_up(&self, py: Python<'_>) {
        let Some(session) = &self.session else { return };
        match encode::to_cut_map(self.emission.data().current.bind(py)) {
            Ok(data) => session.get().kernel.record_given_up(&self.emission, &data.into()),
            Err(error) => error.write_unraisable(py, None),
        }
    }
}

pub(crate) fn in_strict<'py>(py: Python<'py>, function: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    py.import("amplifier_core._strict")?.getattr(function)
}
