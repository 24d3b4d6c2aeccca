//! An emission on its way: whose turn it is, what is waited for, and what came of it.

use std::time::{Duration, Instant};

use amplifier_core::driving::{Questions, contain};
use amplifier_core::{Action, Emission, EventData, HookError};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::data::NativeData;
use crate::emitting::{Order, Purpose, SessionOf};
use crate::hook::{SharedHook, failure};
use crate::native::{self, NativeAnswer};
use crate::outcome::Outcome;
use crate::registry::HookRegistry;
use crate::result::HookResult;
use crate::step::{Awaiting, Input, Step, is_awaitable};
use crate::timer::{Timer, cancelled, is_a_cancellation, is_an_interrupt, is_being_cancelled};
use crate::{answer, encode, log};

/// An emission on its way.
pub(crate) struct Run {
    emission: Emission<NativeData>,
    // The garbage collector sees handlers through their registry: as long as they may be called, it has to be there.
    registry: Py<HookRegistry>,
    /// The name as emitted.
    event: Py<PyString>,
    /// The data as emitted; modifications make new dicts.
    emitted: Py<PyDict>,
    purpose: Purpose,
    session: Option<SessionOf>,
    /// Whether any hook said more than "go on".
    has_said: bool,
    // Boxed: most hooks do not wait, and emissions are moved around.
    waiting: Option<Box<Waiting>>,
    /// The data as JSON, for hooks that are not written in Python; none if it was not needed since it changed.
    // Boxed, as what is waited for.
    json: Option<Box<EventData>>,
    /// What the nested values were when the running hook got them, in strict mode.
    snapshot: Option<Py<PyAny>>,
    /// When the last hook began, where times are asked for.
    since: Option<Instant>,
}

/// What is waited for.
struct Waiting {
    awaiting: Awaiting,
    who: Who,
    timer: Option<Timer>,
    questions: Questions,
}

enum Who {
    Hook(usize),
    /// Observers that run side by side, each with its own time limit.
    Observers(Vec<usize>),
}

/// What a hook that was called gave.
enum Called<'py> {
    Answered(Bound<'py, PyAny>),
    Waits(Awaiting, Bound<'py, PyAny>),
}

/// How far a hook came.
enum Reached<'py> {
    Waits(Bound<'py, PyAny>),
    Returned(Bound<'py, PyAny>),
    Failed(HookError, Option<PyErr>),
}

impl Run {
    /// Begins an emission of what is registered now.
    pub(crate) fn new(py: Python<'_>, order: Order) -> PyResult<Self> {
        let Order { registry, event, data, purpose, session } = order;
        let shared = registry.get();
        let listeners = shared.listeners(event.bind(py))?;
        let reserved = session.as_ref().and_then(|session| session.get().reserved.as_ref());
        let data = NativeData::new(data.bind(py), &shared.base(), reserved, !listeners.hooks().is_empty())?;
        let emitted = data.current.clone_ref(py);
        let emission = Emission::new(listeners, data);
        let (emission, timed) = match purpose {
            Purpose::Collect(_) => (emission.collecting(), false),
            Purpose::Flat => (emission, false),
            Purpose::Outcome => (emission, true),
        };
        Ok(Self {
            emission,
            registry,
            event,
            emitted,
            purpose,
            session,
            has_said: false,
            waiting: None,
            json: None,
            snapshot: None,
            since: timed.then(Instant::now),
        })
    }

    /// Runs hooks until one waits (what it waits for comes back) or all have answered.
    pub(crate) fn advance<'py>(
        &mut self,
        py: Python<'py>,
        mut input: Option<Input<'py>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let (who, reached) = match self.waiting.take() {
                Some(waiting) => {
                    let input = input.take().unwrap_or_else(|| Input::Send(py.None().into_bound(py)));
                    self.proceed(py, waiting, input)?
                }
                None => {
                    let Some(index) = self.emission.next_hook() else { return Ok(None) };
                    if self.registry.get().parallel_observers && index >= self.emission.gates() {
                        self.begin_observers(py, index)?
                    } else {
                        (Who::Hook(index), self.begin(py, index)?)
                    }
                }
            };
            match (reached, who) {
                (Reached::Waits(yielded), _) => return Ok(Some(yielded)),
                (Reached::Returned(answer), Who::Hook(index)) => self.take(py, index, &answer)?,
                (Reached::Returned(answers), Who::Observers(all)) => self.take_all(py, all, &answers)?,
                (Reached::Failed(error, cause), Who::Hook(index)) => self.fail(py, index, error, cause)?,
                (Reached::Failed(..), Who::Observers(_)) => return Err(PyRuntimeError::new_err("observers failed")),
            }
        }
    }

    /// Calls a hook, and lets it run until it waits or answers.
    fn begin<'py>(&mut self, py: Python<'py>, index: usize) -> PyResult<Reached<'py>> {
        let called = self.call(py, index, |answer| {
            if answer.is_none() || answer.is_instance_of::<HookResult>() {
                return Ok(Called::Answered(answer));
            }
            let Some(awaiting) = Awaiting::of(&answer)? else { return Ok(Called::Answered(answer)) };
            Ok(match awaiting.resume(py, Input::Send(py.None().into_bound(py)))? {
                Step::Return(answer) => Called::Answered(answer),
                Step::Yield(yielded) => Called::Waits(awaiting, yielded),
            })
        });
        match called? {
            Ok(Called::Answered(answer)) => Ok(Reached::Returned(answer)),
            Ok(Called::Waits(awaiting, yielded)) => {
                let questions = Questions::default();
                let mut waiting = Waiting { awaiting, who: Who::Hook(index), timer: None, questions };
                self.keep_time(py, index, &mut waiting)?;
                self.waiting = Some(Box::new(waiting));
                Ok(Reached::Waits(yielded))
            }
            Err(failed) => Ok(failed),
        }
    }

    /// Calls a hook, and does something with what the call gave.
    fn call<'py, T>(
        &mut self,
        py: Python<'py>,
        index: usize,
        then: impl FnOnce(Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<Result<T, Reached<'py>>> {
        // A dict of its own, so that setting keys in place changes nothing for anyone.
        let view = self.emission.data().current.bind(py).copy()?;
        if self.registry.get().strict {
            self.snapshot = Some(strict(py, intern!(py, "snapshot"))?.call1((&view,))?.unbind());
        }
        let hook = self.emission.hook(index);
        let Some(handler) = hook.downcast_ref::<SharedHook>() else {
            let data = match self.json.take() {
                Some(data) => data,
                None => Box::new(EventData::from(encode::to_map(&view)?)),
            };
            let call = native::call(hook.clone(), EventData::clone(&data));
            self.json = Some(data);
            return match contain(|| then(Bound::new(py, call)?.into_any())) {
                Ok(Ok(called)) => Ok(Ok(called)),
                Ok(Err(error)) => raised(py, error).map(Err),
                Err(error) => Ok(Err(Reached::Failed(error, None))),
            };
        };
        let told = match hook.told() == self.emission.event() {
            true => self.event.bind(py).clone(),
            false => PyString::new(py, hook.told().as_str()),
        };
        match contain(|| then(handler.handler.bind(py).call1((told, view))?)) {
            Ok(Ok(called)) => Ok(Ok(called)),
            Ok(Err(error)) => raised(py, error).map(Err),
            Err(error) => Ok(Err(Reached::Failed(error, None))),
        }
    }

    /// Lets what is waited for go on.
    fn proceed<'py>(
        &mut self,
        py: Python<'py>,
        mut waiting: Box<Waiting>,
        input: Input<'py>,
    ) -> PyResult<(Who, Reached<'py>)> {
        let resumed = match &waiting.timer {
            // It had its time to clean up, and did not take the hint.
            Some(timer) if timer.is_over() => waiting.awaiting.close(py).and(Err(cancelled(py)?)),
            _ => match contain(|| waiting.awaiting.resume(py, input)) {
                Ok(resumed) => resumed,
                Err(error) => return Ok((waiting.who, Reached::Failed(error, None))),
            },
        };
        if let Ok(Step::Yield(yielded)) = resumed {
            if let Who::Hook(index) = waiting.who {
                self.keep_time(py, index, &mut waiting)?;
            }
            self.waiting = Some(waiting);
            return Ok((Who::Observers(Vec::new()), Reached::Waits(yielded)));
        }
        let Waiting { who, mut timer, .. } = *waiting;
        let timed_out = timer.as_ref().is_some_and(Timer::has_fired);
        let cancelled_by_others = timer.as_mut().map_or(Ok(false), |timer| timer.end(py))?;
        let reached = match resumed {
            Err(error) if timed_out && cancelled_by_others && !error.is_instance_of::<PyException>(py) => {
                return Err(error);
            }
            Err(error) if timed_out && !is_an_interrupt(py, &error)? => self.timed_out(&who, Some(error), py),
            Ok(_) if timed_out => self.timed_out(&who, None, py),
            Ok(Step::Return(answer)) => Reached::Returned(answer),
            Ok(Step::Yield(yielded)) => Reached::Waits(yielded),
            Err(error) => raised(py, error)?,
        };
        Ok((who, reached))
    }

    fn timed_out<'py>(&self, who: &Who, error: Option<PyErr>, py: Python<'py>) -> Reached<'py> {
        let limit = match who {
            Who::Hook(index) => self.limit(*index),
            Who::Observers(_) => Duration::ZERO,
        };
        // That it was cancelled is our doing; anything else is worth a traceback.
        let error = error.filter(|error| error.is_instance_of::<PyException>(py));
        Reached::Failed(HookError::TimedOut(limit), error)
    }

    fn limit(&self, index: usize) -> Duration {
        match self.purpose {
            Purpose::Collect(limit) => limit,
            Purpose::Flat | Purpose::Outcome => self.emission.hook(index).info().timeout,
        }
    }

    /// A timer is armed for a hook that really waits, and stands still while the hook waits for a person.
    fn keep_time(&self, py: Python<'_>, index: usize, waiting: &mut Waiting) -> PyResult<()> {
        if waiting.timer.is_none() {
            waiting.timer = Timer::new(py, self.limit(index));
        }
        let Some(timer) = &mut waiting.timer else { return Ok(()) };
        if timer.has_fired() {
            timer.rearm_after_firing();
            timer.arm(py)
        } else if waiting.questions.is_one_open() {
            timer.pause(py)
        } else {
            timer.arm(py)
        }
    }

    /// Starts all observers from that one on, side by side.
    fn begin_observers<'py>(&mut self, py: Python<'py>, first: usize) -> PyResult<(Who, Reached<'py>)> {
        let rest: Vec<usize> = std::iter::once(first).chain(std::iter::from_fn(|| self.emission.next_hook())).collect();
        let (mut indexes, calls) = (Vec::new(), PyList::empty(py));
        for index in rest {
            match self.call(py, index, Ok)? {
                Ok(answer) if is_awaitable(&answer)? => {
                    calls.append((answer, crate::timer::seconds(self.limit(index))))?;
                    indexes.push(index);
                }
                Ok(answer) => self.take(py, index, &answer)?,
                Err(Reached::Failed(error, cause)) => self.fail(py, index, error, cause)?,
                Err(_) => {}
            }
        }
        let observe = py.import("amplifier_core._parallel")?.getattr("observe")?;
        let Some(awaiting) = Awaiting::of(&observe.call1((calls,))?)? else {
            return Err(PyRuntimeError::new_err("observers cannot be awaited"));
        };
        let waiting = Waiting { awaiting, who: Who::Observers(indexes), timer: None, questions: Questions::default() };
        self.proceed(py, Box::new(waiting), Input::Send(py.None().into_bound(py)))
    }

    /// Takes the answers of observers: for each whether it answered, timed out or failed, and with what.
    fn take_all(&mut self, py: Python<'_>, all: Vec<usize>, answers: &Bound<'_, PyAny>) -> PyResult<()> {
        for (index, answer) in all.into_iter().zip(answers.try_iter()?) {
            let answer = answer?.cast_into::<PyTuple>()?;
            let (how, what) = (answer.get_item(0)?.extract::<String>()?, answer.get_item(1)?);
            match how.as_str() {
                "answered" => self.take(py, index, &what)?,
                "timed_out" => self.fail(py, index, HookError::TimedOut(self.limit(index)), None)?,
                _ => {
                    let error = PyErr::from_value(what);
                    self.fail(py, index, failure(py, &error), Some(error))?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, py: Python<'_>, index: usize, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        let read = match self.emission.hook(index).downcast_ref::<SharedHook>() {
            Some(_) => answer::read(answer),
            None => {
                let native = answer.cast::<NativeAnswer>()?.get();
                native.read(self.emission.data().current.bind(py), self.json.as_deref())
            }
        };
        match read {
            Ok(None) => self.emission.go_on(index),
            Ok(Some(answer)) => {
                self.has_said = true;
                if matches!(answer.action, Action::Modify(_)) {
                    self.json = None;
                }
                self.emission.answer(index, Ok(answer));
            }
            Err(error) => {
                self.log_failure(py, index, &error, None);
                self.has_said = true;
                self.emission.answer(index, Err(error));
            }
        }
        self.answered(py, index)
    }

    fn fail(&mut self, py: Python<'_>, index: usize, error: HookError, cause: Option<PyErr>) -> PyResult<()> {
        self.log_failure(py, index, &error, cause.as_ref());
        self.has_said = true;
        self.emission.answer(index, Err(error));
        self.answered(py, index)
    }

    fn log_failure(&self, py: Python<'_>, index: usize, error: &HookError, cause: Option<&PyErr>) {
        let hook = self.emission.hook(index);
        log::failed(py, &hook.info().name, hook.told().as_str(), error, cause);
    }

    fn answered(&mut self, py: Python<'_>, index: usize) -> PyResult<()> {
        if let Some(since) = &mut self.since {
            let now = Instant::now();
            let took = now.duration_since(std::mem::replace(since, now));
            self.emission.took(took.as_nanos().try_into().unwrap_or(u64::MAX));
        }
        if let Some(snapshot) = self.snapshot.take() {
            let name = &*self.emission.hook(index).info().name;
            strict(py, intern!(py, "check"))?.call1((name, snapshot))?;
        }
        Ok(())
    }

    /// What came of it.
    pub(crate) fn finish(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let Self { emission, emitted, purpose, has_said, .. } = self;
        match purpose {
            Purpose::Flat if !has_said => {
                let data = Some(emission.data().current.clone_ref(py));
                Ok(Bound::new(py, HookResult { data, ..HookResult::default() })?.into_any())
            }
            Purpose::Flat => Ok(Bound::new(py, HookResult::from_flat(py, emission.finish().flat())?)?.into_any()),
            Purpose::Outcome => Ok(Bound::new(py, Outcome { kernel: emission.finish(), emitted })?.into_any()),
            Purpose::Collect(_) => {
                let outcome = emission.finish();
                let answers = outcome.responses().iter().map(|answer| answer.said.clone_ref(py));
                Ok(PyList::new(py, answers.collect::<Vec<_>>())?.into_any())
            }
        }
    }

    /// Ends it: the hook that runs is closed, the others are not called.
    pub(crate) fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let closed = self.waiting.take().map_or(Ok(()), |waiting| waiting.awaiting.close(py));
        self.give_up(py);
        closed
    }

    /// The error that ended it.
    pub(crate) fn given_up(&self, py: Python<'_>, error: PyErr) -> PyErr {
        self.give_up(py);
        error
    }

    /// The record of the session says what the hooks had said by then.
    fn give_up(&self, py: Python<'_>) {
        let Some(session) = &self.session else { return };
        match encode::to_map(self.emission.data().current.bind(py)) {
            Ok(data) => session.get().kernel.record_given_up(&self.emission, &data.into()),
            Err(error) => error.write_unraisable(py, None),
        }
    }
}

/// What a hook raised: its failure, or something that ends more than the hook.
fn raised<'py>(py: Python<'py>, error: PyErr) -> PyResult<Reached<'py>> {
    let is_its_own = error.is_instance_of::<PyException>(py)
        // A hook that awaits something which others cancelled has failed; one whose caller is cancelled has not.
        || is_a_cancellation(py, &error)? && !is_being_cancelled(py);
    if is_its_own { Ok(Reached::Failed(failure(py, &error), Some(error))) } else { Err(error) }
}

fn strict<'py>(py: Python<'py>, function: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    py.import("amplifier_core._strict")?.getattr(function)
}
