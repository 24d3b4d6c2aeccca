//! The kernel's driver of emissions: calls hooks, waits for them, and catches panics and time-outs.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;
use tracing::Instrument;

use super::emission::Emission;
use super::hook::{Answer, Reply, RunningHook, poll};
use super::hook_time_limit::{self, HookTimer};
use super::progress::Progress;
use super::settings::HookRole;
use super::table::ListedHook;
use super::trace;

use crate::contain;
use crate::event::EventData;
use crate::ports::BoxFuture;
use crate::ports::clock::Clock;
use crate::result::{HookError, HookResult};

/// Reading the clock takes longer than calling a synchronous hook: beyond this many hooks, four share a reading.
const TIMED_ALONE: usize = 16;

pub(super) struct Driver<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) limit: Option<Duration>,
    pub(super) parallel_observers: bool,
    /// `true` once the registry waits for no hook any more.
    pub(super) given_up: &'a watch::Sender<bool>,
}

impl Driver<'_> {
    /// # Cancel safety
    /// Dropping the future drops the running hook; results of earlier hooks stay, later hooks are not called.
    pub(super) async fn run(&self, emission: &mut Emission) {
        let mut clock = SplitTimer { clock: self.clock, last: self.clock.nanos() };
        loop {
            let end = {
                let (hooks, data, progress) = emission.parts();
                let mut slot = Slot(pin!(None));
                let run = poll_fn(|context| {
                    Poll::Ready(self.run_silent(hooks, data, progress, &mut clock, slot.0.as_mut(), context))
                });
                match run.await {
                    SilentRun::Waiting(index) => {
                        let reply = self.wait(&hooks[index], slot.0.as_mut()).await;
                        SilentRun::Answered(index, Box::new(answer(reply)))
                    }
                    end => end,
                }
            };
            match end {
                SilentRun::Answered(index, answer) => {
                    if let Err(error) = &*answer {
                        trace::failed(emission.hook(index), error);
                    }
                    emission.answer(index, *answer);
                    emission.record_duration(clock.lap());
                }
                SilentRun::Observers(first) => return Box::pin(self.observe(emission, first)).await,
                SilentRun::Over | SilentRun::Waiting(_) => return,
            }
        }
    }

    /// Runs hooks one after another as long as they return `continue` at once.
    ///
    /// Nearly all hooks do, so an emission spends its time in this loop.
    #[inline]
    fn run_silent<'a>(
        &self,
        hooks: &'a [ListedHook],
        data: &'a EventData,
        progress: &mut Progress,
        clock: &mut SplitTimer<'_>,
        mut running: Pin<&mut RunningHook<'a>>,
        context: &mut Context<'_>,
    ) -> SilentRun {
        while let Some(index) = progress.next_hook() {
            let hook = &hooks[index];
            if self.parallel_observers && hook.info().role == HookRole::Observer {
                return SilentRun::Observers(index);
            }
            match guarded(|| hook.start(data, running.as_mut(), context)) {
                Poll::Ready(None) => progress.continued(index),
                Poll::Ready(Some(answer)) => return SilentRun::Answered(index, answer),
                Poll::Pending => return SilentRun::Waiting(index),
            }
            if index < TIMED_ALONE || index % 4 == 3 || progress.is_over() {
                progress.record_duration(clock.lap());
            }
        }
        SilentRun::Over
    }

    pub(super) async fn run_traced(&self, emission: &mut Emission) {
        let mut clock = SplitTimer { clock: self.clock, last: self.clock.nanos() };
        while let Some(index) = emission.next_hook() {
            if self.parallel_observers && index >= emission.gates() {
                return self.observe(emission, index).await;
            }
            let answer = self.call_traced(emission.hook(index), emission.data()).await;
            emission.answer(index, answer);
            emission.record_duration(clock.lap());
        }
    }

    async fn observe(&self, emission: &mut Emission, first: usize) {
        let rest: Vec<usize> = std::iter::once(first).chain(std::iter::from_fn(|| emission.next_hook())).collect();
        let all = rest.iter().map(async |&index| {
            let mut clock = SplitTimer { clock: self.clock, last: self.clock.nanos() };
            let answer = self.call_traced(emission.hook(index), emission.data()).await;
            (index, answer, clock.lap())
        });
        for (index, answer, nanos) in futures::future::join_all(all).await {
            emission.answer(index, answer);
            emission.record_duration(nanos);
        }
    }

    async fn call_traced(&self, hook: &ListedHook, data: &EventData) -> Answer {
        let span = trace::hook(hook);
        let call = async {
            let mut slot = Slot(pin!(None));
            let first = poll_fn(|context| Poll::Ready(guarded(|| hook.start(data, slot.0.as_mut(), context))));
            match first.await {
                Poll::Ready(reply) => reply,
                Poll::Pending => self.wait(hook, slot.0.as_mut()).await,
            }
        };
        let answer = answer(call.instrument(span.clone()).await);
        trace::answered(&span, hook, &answer);
        answer
    }

    // Timers are armed only here, because arming one takes longer than most hooks.
    #[cold]
    async fn wait(&self, hook: &ListedHook, mut running: Pin<&mut RunningHook<'_>>) -> Reply {
        let limit = self.limit.unwrap_or(hook.info().timeout);
        let mut timer = HookTimer::new(self.clock, limit);
        let mut person_waits = hook_time_limit::PersonWaits::default();
        let mut given_up = self.given_up();
        let reply = poll_fn(|context| match guarded(|| poll(running.as_mut(), context)) {
            Poll::Pending if given_up.as_mut().poll(context).is_ready() => {
                Poll::Ready(failed(HookError::failed("was cancelled, because the program is ending")))
            }
            Poll::Pending if person_waits.is_any_open() => {
                timer.pause();
                Poll::Pending
            }
            Poll::Pending => timer.poll(context).map(|()| failed(HookError::TimedOut(limit))),
            ready => ready,
        })
        .await;
        // A panic while the hook's future is dropped is caught, too.
        match guarded(|| {
            running.set(None);
            Poll::Pending
        }) {
            Poll::Ready(panicked) => panicked,
            Poll::Pending => reply,
        }
    }
}

impl Driver<'_> {
    /// Waits until the registry gives up its hooks. Boxed, so that it does not make every emission's future larger.
    fn given_up(&self) -> BoxFuture<'static, ()> {
        let mut given_up = self.given_up.subscribe();
        Box::pin(async move {
            // A dropped registry never gives up.
            if given_up.wait_for(|given_up| *given_up).await.is_err() {
                std::future::pending().await
            }
        })
    }
}

impl ListedHook {
    /// Calls the hook. A panic becomes its result; the caller is responsible for the time limit.
    pub async fn call(&self, data: &EventData) -> Result<HookResult, HookError> {
        let mut slot = Slot(pin!(None));
        let first = poll_fn(|context| Poll::Ready(guarded(|| self.start(data, slot.0.as_mut(), context))));
        answer(match first.await {
            Poll::Ready(reply) => reply,
            Poll::Pending => poll_fn(|context| guarded(|| poll(slot.0.as_mut(), context))).await,
        })
    }
}

/// The future of a running hook. A panic in its `drop` is caught.
struct Slot<'p, 'a>(Pin<&'p mut RunningHook<'a>>);

impl Drop for Slot<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            contain::quietly(|| self.0.set(None));
        }
    }
}

enum SilentRun {
    Over,
    Answered(usize, Box<Answer>),
    Waiting(usize),
    /// The observers from this one on run concurrently.
    Observers(usize),
}

struct SplitTimer<'a> {
    clock: &'a dyn Clock,
    last: u64,
}

impl SplitTimer<'_> {
    #[inline]
    fn lap(&mut self) -> u64 {
        let last = std::mem::replace(&mut self.last, self.clock.nanos());
        self.last.saturating_sub(last)
    }
}

/// Runs a part of a hook; a failure becomes its reply.
#[inline]
fn guarded(piece: impl FnOnce() -> Poll<Reply>) -> Poll<Reply> {
    contain::contain_or(piece, |error| Poll::Ready(failed(error)))
}

fn answer(reply: Reply) -> Answer {
    reply.map_or_else(|| Ok(HookResult::proceed()), |answer| *answer)
}

fn failed(error: HookError) -> Reply {
    Some(Box::new(Err(error)))
}
