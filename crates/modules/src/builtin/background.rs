//! Work that the agent does not wait for, until a session ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookRegistry, HookResult, Registration, SESSION_END};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::settings::lock;

/// The name of the hook that waits for what hooks began that are there no more.
pub const WAITER: &str = "session-wait";

/// How much may wait to be done.
const QUEUE_LENGTH: usize = 32;

/// How long is waited for what is not done yet.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Does things one after another, beside the agent. What does not fit into its queue is left undone.
pub(super) struct Background<T> {
    work: Arc<dyn Fn(T) -> TaskFuture + Send + Sync>,
    // A std lock: nothing awaits while it is held.
    queue: Mutex<Option<mpsc::Sender<(T, TaskGuard)>>>,
    unfinished: Arc<PendingTasks>,
}

pub(super) type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<T: Send + 'static> Background<T> {
    /// Does this with everything that it is given.
    pub(super) fn new(unfinished: &Arc<PendingTasks>, work: impl Fn(T) -> TaskFuture + Send + Sync + 'static) -> Self {
        Self { work: Arc::new(work), queue: Mutex::new(None), unfinished: unfinished.clone() }
    }

    /// Has it done, unless too much waits already.
    pub(super) fn push(&self, item: T) {
        let Some(queue) = self.queue() else { return };
        if queue.try_send((item, TaskGuard::new(&self.unfinished))).is_err() {
            tracing::warn!("more than {QUEUE_LENGTH} notifications wait to be sent, so one is left out");
        }
    }

    /// The queue of a task that runs; of a new one, if the one before ended with its runtime.
    fn queue(&self) -> Option<mpsc::Sender<(T, TaskGuard)>> {
        let mut queue = lock(&self.queue);
        if let Some(open) = queue.as_ref().filter(|queue| !queue.is_closed()) {
            return Some(open.clone());
        }
        let runtime = Handle::try_current().ok()?;
        let (sender, mut jobs) = mpsc::channel(QUEUE_LENGTH);
        let work = self.work.clone();
        runtime.spawn(async move {
            while let Some((item, _pending)) = jobs.recv().await {
                work(item).await;
            }
        });
        *queue = Some(sender.clone());
        Some(sender)
    }
}

/// What is not done yet, also of hooks that are there no more: a bundle may have changed meanwhile.
#[derive(Debug, Default)]
pub(crate) struct PendingTasks {
    pending: watch::Sender<usize>,
    is_waited_for: AtomicBool,
}

impl PendingTasks {
    /// Waits until everything is done, for a while. Whatever takes longer is not waited for.
    pub(crate) async fn settle(&self) {
        let _ = timeout(SETTLE_TIMEOUT, self.pending.subscribe().wait_for(|pending| *pending == 0)).await;
    }

    /// Has the end of sessions wait for what is not done now, because the hooks that began it may be gone.
    pub(crate) fn outlast(self: &Arc<Self>, hooks: &HookRegistry) -> Option<Registration> {
        let is_needed = *self.pending.borrow() > 0 && !self.is_waited_for.swap(true, Ordering::Relaxed);
        let waiter =
            || hooks.hook(SESSION_END).named(WAITER).observer().priority(i64::MAX).handler(Waiter(self.clone()));
        is_needed.then(waiter)
    }
}

/// Waits at the end of a session for what is not done.
struct Waiter(Arc<PendingTasks>);

impl Hook for Waiter {
    async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
        self.0.settle().await;
        Ok(HookResult::proceed())
    }
}

/// Something that is not done yet; it is when this is dropped.
struct TaskGuard(Arc<PendingTasks>);

impl TaskGuard {
    fn new(unfinished: &Arc<PendingTasks>) -> Self {
        unfinished.pending.send_modify(|pending| *pending += 1);
        Self(unfinished.clone())
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.pending.send_modify(|pending| *pending -= 1);
    }
}
