//! Hooks: values with an async method, and closures.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use stackfuture::StackFuture;

use crate::event::{Event, EventData, EventName, Payload};
use crate::result::{Action, HookError, HookResult, IntoHookResult};

/// A hook with its own state. Without state, use a closure: see [`HookRegistry::on`](crate::HookRegistry::on).
///
/// The event's data is borrowed; clone it to store it.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use amplifier_core::{EventData, Hook, HookError, HookRegistry, HookResult, TOOL_PRE};
///
/// #[derive(Default)]
/// struct Meter { calls: AtomicU64 }
///
/// impl Hook for Meter {
///     async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
///         self.calls.fetch_add(1, Ordering::Relaxed);
///         Ok(HookResult::proceed())
///     }
/// }
///
/// let hooks = HookRegistry::new();
/// hooks.hook(TOOL_PRE).named("meter").observer().handler(Meter::default());
/// ```
pub trait Hook: Send + Sync + 'static {
    /// Handles an event.
    ///
    /// A failure is reported, and the hook's [`OnError`](crate::OnError) decides.
    ///
    /// # Cancel safety
    /// The future is dropped when the hook's time limit passes or the emission is cancelled.
    fn handle(&self, event: &str, data: &EventData) -> impl Future<Output = Result<HookResult, HookError>> + Send;
}

impl<T: Hook> Hook for std::sync::Arc<T> {
    fn handle(&self, event: &str, data: &EventData) -> impl Future<Output = Result<HookResult, HookError>> + Send {
        T::handle(self, event, data)
    }
}

pub(crate) type Answer = Result<HookResult, HookError>;

/// The result of a hook; `None` is a plain `continue`.
///
/// Nearly all results are, and this form fits in a register.
pub(crate) type Reply = Option<Box<Answer>>;

#[inline(always)]
fn reply(answer: Answer) -> Reply {
    if let Ok(HookResult {
        action: Action::Continue,
        reason: None,
        message: None,
        output: None,
        suppress_output: false,
    }) = &answer
    {
        // Nothing is owned here, but the compiler does not see that and would call the destructor.
        std::mem::forget(answer);
        return None;
    }
    Some(Box::new(answer))
}

/// Futures up to this size are stored inline, without a box.
const IN_PLACE: usize = 256;

pub(crate) type RunningHook<'a> = Option<StackFuture<'a, Reply, IN_PLACE>>;

/// The object-safe twin of [`Hook`].
pub(crate) trait AnyHook: Any + Send + Sync {
    /// Calls the hook and polls it once. The future is created in `running`, where it stays while it is pending.
    fn call<'a>(
        &'a self,
        event: &'a EventName,
        data: &'a EventData,
        running: Pin<&mut RunningHook<'a>>,
        context: &mut Context<'_>,
    ) -> Poll<Reply>;
}

fn start<'a>(
    future: impl Future<Output = Answer> + Send + 'a,
    mut running: Pin<&mut RunningHook<'a>>,
    context: &mut Context<'_>,
) -> Poll<Reply> {
    // `map`, because an async block would copy the future again before polling it.
    running.set(Some(StackFuture::from_or_box(future.map(reply))));
    poll(running, context)
}

/// Polls a called hook, and drops its future as soon as it is ready.
#[inline]
pub(super) fn poll(mut running: Pin<&mut RunningHook<'_>>, context: &mut Context<'_>) -> Poll<Reply> {
    let polled = running.as_mut().as_pin_mut().map_or(Poll::Pending, |future| future.poll(context));
    if polled.is_ready() {
        running.set(None);
    }
    polled
}

/// Replaces a hook that is being dropped.
pub(super) struct DroppedHook;

impl Hook for DroppedHook {
    async fn handle(&self, _event: &str, _data: &EventData) -> Answer {
        Err(HookError::failed("the hook is gone"))
    }
}

impl<T: Hook> AnyHook for T {
    fn call<'a>(
        &'a self,
        event: &'a EventName,
        data: &'a EventData,
        running: Pin<&mut RunningHook<'a>>,
        context: &mut Context<'_>,
    ) -> Poll<Reply> {
        start(self.handle(event.as_str(), data), running, context)
    }
}

/// The return type of a closure hook: a result, or a future of one.
///
/// `When` distinguishes the two; it is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a hook result",
    note = "a hook returns `HookResult`, `()`, or an `Option` or `Result` of these; an async hook a `Send` future of these",
    note = "the error of a `Result` must turn into `HookError`, as every `std::error::Error` does"
)]
pub trait HandlerOutput<When>: sealed::Sealed<When> {}

/// Marks a synchronous closure.
#[derive(Debug)]
pub struct SyncHandler;

/// Marks a closure that returns a future.
#[derive(Debug)]
pub struct AsyncHandler;

mod sealed {
    use super::{Context, Pin, Poll, Reply, RunningHook};

    pub trait Sealed<When> {
        #[allow(private_interfaces, reason = "only this crate calls it")]
        fn answer<'a>(self, running: Pin<&mut RunningHook<'a>>, context: &mut Context<'_>) -> Poll<Reply>;
    }
}

impl<T: IntoHookResult> HandlerOutput<SyncHandler> for T {}

impl<T: IntoHookResult> sealed::Sealed<SyncHandler> for T {
    fn answer<'a>(self, _: Pin<&mut RunningHook<'a>>, _: &mut Context<'_>) -> Poll<Reply> {
        Poll::Ready(reply(self.into_hook_result()))
    }
}

impl<F: Future<Output: IntoHookResult> + Send + 'static> HandlerOutput<AsyncHandler> for F {}

impl<F: Future<Output: IntoHookResult> + Send + 'static> sealed::Sealed<AsyncHandler> for F {
    fn answer<'a>(self, running: Pin<&mut RunningHook<'a>>, context: &mut Context<'_>) -> Poll<Reply> {
        start(self.map(IntoHookResult::into_hook_result), running, context)
    }
}

/// A closure hook, which receives the event by value.
pub(crate) struct Closure<P, F, When> {
    function: F,
    kind: PhantomData<fn() -> (P, When)>,
}

impl<P, F, When> Closure<P, F, When> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, kind: PhantomData }
    }
}

impl<P, F, R, When> AnyHook for Closure<P, F, When>
where
    P: Payload,
    F: Fn(Event<P>) -> R + Send + Sync + 'static,
    R: HandlerOutput<When>,
    When: 'static,
{
    fn call<'a>(
        &'a self,
        event: &'a EventName,
        data: &'a EventData,
        running: Pin<&mut RunningHook<'a>>,
        context: &mut Context<'_>,
    ) -> Poll<Reply> {
        match data.view::<P>() {
            Ok(data) => (self.function)(Event { name: event.clone(), data }).answer(running, context),
            Err(error) => Poll::Ready(reply(Err(HookError::Unreadable(error.to_string())))),
        }
    }
}
