//! Background tasks that only the end of a session waits for.

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

/// Name of the hook that waits for the pending tasks of unregistered hooks.
pub const WAITER: &str = "session-wait";

const QUEUE_LENGTH: usize = 32;

const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// A queue of tasks that run one after another, in the background. Items that do not fit into the queue are dropped.
pub(crate) struct Background<T> {
    work: Arc<dyn Fn(T) -> TaskFuture + Send + Sync>,
    // A std lock: nothing awaits while it is held.
    queue: Mutex<Option<mpsc::Sender<(T, TaskGuard)>>>,
    unfinished: Arc<PendingTasks>,
}

pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<T: Send + 'static> Background<T> {
    /// Creates a queue that runs `work` for each item.
    pub(crate) fn new(unfinished: &Arc<PendingTasks>, work: impl Fn(T) -> TaskFuture + Send + Sync + 'static) -> Self {
        Self { work: Arc::new(work), queue: Mutex::new(None), unfinished: unfinished.clone() }
    }

    pub(crate) fn push(&self, item: T) {
        let Some(queue) = self.queue() else { return };
        if queue.try_send((item, TaskGuard::new(&self.unfinished))).is_err() {
            tracing::warn!("notification dropped: more than {QUEUE_LENGTH} are queued");
        }
    }

    /// Returns the queue of the running task; starts a new task if the previous one ended with its runtime.
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

/// The number of running and queued tasks, including those of hooks that a reload has replaced.
#[derive(Debug, Default)]
pub(crate) struct PendingTasks {
    pending: watch::Sender<usize>,
    is_waited_for: AtomicBool,
}

impl PendingTasks {
    /// Waits for all tasks, up to a time limit.
    pub(crate) async fn settle(&self) {
        let _ = timeout(SETTLE_TIMEOUT, self.pending.subscribe().wait_for(|pending| *pending == 0)).await;
    }

    /// Registers a hook that makes the end of a session wait for the tasks that are pending now: a reload may remove the
    /// hooks that started them.
    pub(crate) fn outlast(self: &Arc<Self>, hooks: &HookRegistry) -> Option<Registration> {
        let is_needed = *self.pending.borrow() > 0 && !self.is_waited_for.swap(true, Ordering::Relaxed);
        let waiter =
            || hooks.hook(SESSION_END).named(WAITER).observer().priority(i64::MAX).handler(Waiter(self.clone()));
        is_needed.then(waiter)
    }
}

struct Waiter(Arc<PendingTasks>);

impl Hook for Waiter {
    async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
        self.0.settle().await;
        Ok(HookResult::proceed())
    }
}

/// Marks a task as pending until dropped.
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
