//! Runs an emission: calls hooks, waits for those that do not answer at once, keeps panics and time-outs inside.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use super::book::ListedHook;
use super::emission::Emission;
use super::hook::{Answer, Reply, Running, poll};
use super::progress::Progress;
use super::settings::HookRole;
use super::trace;
use tracing::Instrument;

use crate::event::EventData;
use crate::guard;
use crate::ports::BoxFuture;
use crate::ports::clock::Clock;
use crate::result::{HookError, HookResult};

/// Hooks may emit. This deep, a hook that emits what it listens to is stopped before it exhausts the stack.
const DEEPEST: u32 = 16;

/// Reading the clock costs more than calling a hook that answers at once: beyond this many hooks, four share a reading.
const TIMED_ALONE: usize = 16;

pub(super) struct Driver<'a> {
    pub(super) clock: &'a dyn Clock,
    /// The time limit of each hook, if not the hook's own.
    pub(super) limit: Option<Duration>,
    pub(super) parallel_observers: bool,
}

impl Driver<'_> {
    /// # Cancel safety
    /// Dropping the future drops the hook that is running; hooks that answered have answered, the others are not called.
    pub(super) async fn run(&self, emission: &mut Emission) {
        let mut clock = Laps { clock: self.clock, last: self.clock.nanos() };
        loop {
            let end = {
                let (hooks, data, progress) = emission.parts();
                let mut slot = Slot(pin!(None));
                let sprint = poll_fn(|context| {
                    Poll::Ready(self.sprint(hooks, data, progress, &mut clock, slot.0.as_mut(), context))
                });
                match sprint.await {
                    Sprint::Waiting(index) => {
                        let reply = self.wait(&hooks[index], slot.0.as_mut()).await;
                        Sprint::Said(index, Box::new(answer(reply)))
                    }
                    end => end,
                }
            };
            match end {
                Sprint::Said(index, answer) => {
                    emission.answer(index, *answer);
                    emission.took(clock.lap());
                }
                Sprint::Observers(first) => return Box::pin(self.observe(emission, first)).await,
                Sprint::Over | Sprint::Waiting(_) => return,
            }
        }
    }

    /// Runs hooks one after another as long as they answer at once and have nothing to say.
    ///
    /// That is nearly always all of them, so this loop is where the time of an emission goes.
    #[inline]
    fn sprint<'a>(
        &self,
        hooks: &'a [ListedHook],
        data: &'a EventData,
        progress: &mut Progress,
        clock: &mut Laps<'_>,
        mut running: Pin<&mut Running<'a>>,
        context: &mut Context<'_>,
    ) -> Sprint {
        while let Some(index) = progress.next_hook() {
            let hook = &hooks[index];
            if self.parallel_observers && hook.info().role == HookRole::Observer {
                return Sprint::Observers(index);
            }
            match guarded(|| hook.call(data, running.as_mut(), context)) {
                Poll::Ready(None) => progress.continued(index),
                Poll::Ready(Some(answer)) => return Sprint::Said(index, answer),
                Poll::Pending => return Sprint::Waiting(index),
            }
            if index < TIMED_ALONE || index % 4 == 3 || progress.is_over() {
                progress.took(clock.lap());
            }
        }
        Sprint::Over
    }

    /// Runs hooks one after another, each in a span of its own.
    pub(super) async fn run_traced(&self, emission: &mut Emission) {
        let mut clock = Laps { clock: self.clock, last: self.clock.nanos() };
        while let Some(index) = emission.next_hook() {
            if self.parallel_observers && index >= emission.gates() {
                return self.observe(emission, index).await;
            }
            let answer = self.call_traced(emission.hook(index), emission.data()).await;
            emission.answer(index, answer);
            emission.took(clock.lap());
        }
    }

    /// Runs all observers side by side, from the one at `first` on.
    async fn observe(&self, emission: &mut Emission, first: usize) {
        let rest: Vec<usize> = std::iter::once(first).chain(std::iter::from_fn(|| emission.next_hook())).collect();
        let all = rest.iter().map(async |&index| {
            let mut clock = Laps { clock: self.clock, last: self.clock.nanos() };
            let answer = self.call_traced(emission.hook(index), emission.data()).await;
            (index, answer, clock.lap())
        });
        for (index, answer, nanos) in futures::future::join_all(all).await {
            emission.answer(index, answer);
            emission.took(nanos);
        }
    }

    /// Calls one hook. Whatever it does, an answer comes back.
    async fn call_traced(&self, hook: &ListedHook, data: &EventData) -> Answer {
        let span = trace::hook(hook);
        let call = async {
            let mut slot = Slot(pin!(None));
            let first = poll_fn(|context| Poll::Ready(guarded(|| hook.call(data, slot.0.as_mut(), context))));
            match first.await {
                Poll::Ready(reply) => reply,
                Poll::Pending => self.wait(hook, slot.0.as_mut()).await,
            }
        };
        let answer = answer(call.instrument(span.clone()).await);
        trace::answered(&span, hook, &answer);
        answer
    }

    // Timers are armed here and not before, because arming one costs more than most hooks do.
    #[cold]
    async fn wait(&self, hook: &ListedHook, mut running: Pin<&mut Running<'_>>) -> Reply {
        let limit = self.limit.unwrap_or(hook.info().timeout);
        let mut timer = Timer::new(self.clock, limit);
        let reply = poll_fn(|context| {
            PERSON.set(false);
            match guarded(|| poll(running.as_mut(), context)) {
                Poll::Pending if PERSON.get() => {
                    timer.pause();
                    Poll::Pending
                }
                Poll::Pending => timer.poll(context).map(|()| failed(HookError::TimedOut(limit))),
                ready => ready,
            }
        })
        .await;
        // A panic while a hook's future is dropped stays inside too.
        match guarded(|| {
            running.set(None);
            Poll::Pending
        }) {
            Poll::Ready(panicked) => panicked,
            Poll::Pending => reply,
        }
    }
}

/// Where a running hook is kept. If the emission is cancelled, a panic in the hook's `drop` stays inside.
struct Slot<'p, 'a>(Pin<&'p mut Running<'a>>);

impl Drop for Slot<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            guard::quietly(|| self.0.set(None));
        }
    }
}

/// What ends a sprint.
enum Sprint {
    Over,
    Said(usize, Box<Answer>),
    Waiting(usize),
    /// The rest runs side by side.
    Observers(usize),
}

/// Measures the time from one reading to the next.
struct Laps<'a> {
    clock: &'a dyn Clock,
    last: u64,
}

impl Laps<'_> {
    #[inline]
    fn lap(&mut self) -> u64 {
        let last = std::mem::replace(&mut self.last, self.clock.nanos());
        self.last.saturating_sub(last)
    }
}

/// The time limit of a hook. It stands still while the hook waits for a person.
struct Timer<'a> {
    clock: &'a dyn Clock,
    left: Duration,
    /// When it was armed, and what it waits for.
    armed: Option<(u64, BoxFuture<'static, ()>)>,
}

impl<'a> Timer<'a> {
    fn new(clock: &'a dyn Clock, limit: Duration) -> Self {
        Self { clock, left: limit, armed: Some((clock.nanos(), clock.sleep(limit))) }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let (clock, left) = (self.clock, self.left);
        let (_, sleep) = self.armed.get_or_insert_with(|| (clock.nanos(), clock.sleep(left)));
        sleep.as_mut().poll(context)
    }

    fn pause(&mut self) {
        if let Some((since, _)) = self.armed.take() {
            let used = Duration::from_nanos(self.clock.nanos().saturating_sub(since));
            self.left = self.left.saturating_sub(used);
        }
    }
}

/// Marks the time that a future waits as waiting for a person, which is not counted against the hook that it runs in.
pub(crate) async fn waiting_for_person<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        PERSON.set(polled.is_pending());
        polled
    })
    .await
}

thread_local! {
    /// Whether what was just polled on this thread waits for a person.
    static PERSON: Cell<bool> = const { Cell::new(false) };
    /// How many hooks are being run inside each other on this thread's stack.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs a piece of a hook, so that a panic or endless nesting becomes its answer.
#[inline]
fn guarded(piece: impl FnOnce() -> Poll<Reply>) -> Poll<Reply> {
    let depth = DEPTH.get();
    if depth >= DEEPEST {
        return Poll::Ready(failed(HookError::Failed(format!("called from inside {DEEPEST} other hooks"))));
    }
    DEPTH.set(depth + 1);
    let result = catch_unwind(AssertUnwindSafe(piece));
    DEPTH.set(depth);
    result.unwrap_or_else(|panic| Poll::Ready(failed(HookError::from_panic(panic))))
}

fn answer(reply: Reply) -> Answer {
    reply.map_or_else(|| Ok(HookResult::proceed()), |answer| *answer)
}

fn failed(error: HookError) -> Reply {
    Some(Box::new(Err(error)))
}
