//! Work that the agent does not wait for, until a session ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookRegistry, HookResult, SESSION_END, SESSION_START};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::families::Families;
use super::settings::lock;

/// The name of the hooks that wait for it.
pub const WAITER: &str = "session-wait";

/// How much may wait to be done.
const WAITING: usize = 32;

/// How long is waited for what is not done yet.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// Does things one after another, beside the agent. What does not fit into its queue is left undone.
pub(super) struct Background<T> {
    work: Arc<dyn Fn(T) -> Working + Send + Sync>,
    // A std lock: nothing awaits while it is held.
    queue: Mutex<Option<mpsc::Sender<(T, Pending)>>>,
    unfinished: Arc<Unfinished>,
}

pub(super) type Working = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<T: Send + 'static> Background<T> {
    /// Does this with everything that it is given.
    pub(super) fn new(unfinished: &Arc<Unfinished>, work: impl Fn(T) -> Working + Send + Sync + 'static) -> Self {
        unfinished.is_used.store(true, Ordering::Relaxed);
        Self { work: Arc::new(work), queue: Mutex::new(None), unfinished: unfinished.clone() }
    }

    /// Has it done, unless too much waits already.
    pub(super) fn push(&self, item: T) {
        let Some(queue) = self.queue() else { return };
        if queue.try_send((item, Pending::new(&self.unfinished))).is_err() {
            tracing::warn!("more than {WAITING} notifications wait to be sent, so one is left out");
        }
    }

    /// The queue of a task that runs; of a new one, if the one before ended with its runtime.
    fn queue(&self) -> Option<mpsc::Sender<(T, Pending)>> {
        let mut queue = lock(&self.queue);
        if let Some(open) = queue.as_ref().filter(|queue| !queue.is_closed()) {
            return Some(open.clone());
        }
        let runtime = Handle::try_current().ok()?;
        let (sender, mut jobs) = mpsc::channel(WAITING);
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
pub(crate) struct Unfinished {
    is_used: AtomicBool,
    is_waited_for: AtomicBool,
    pending: watch::Sender<usize>,
    sessions: Families<()>,
}

impl Unfinished {
    /// Whether the event is one of a sub-agent.
    pub(super) fn is_of_child(&self, data: &EventData) -> bool {
        self.sessions.is_child(data)
    }

    /// Waits until everything is done, for a while. Whatever takes longer is not waited for.
    pub(crate) async fn settle(&self) {
        let _ = timeout(SETTLED_WITHIN, self.pending.subscribe().wait_for(|pending| *pending == 0)).await;
    }

    /// Has the end of sessions wait, if there can be something to wait for. It does for as long as there are these hooks.
    pub(crate) fn register(self: &Arc<Self>, hooks: &HookRegistry) {
        if !self.is_used.load(Ordering::Relaxed) {
            return;
        }
        let waits = || hooks.list_handlers().iter().any(|hook| &*hook.name == WAITER && hook.priority == i64::MAX);
        if self.is_waited_for.swap(true, Ordering::Relaxed) && waits() {
            return;
        }
        // Last, so that it waits for what is done about the end of the session, too.
        hooks.hook(SESSION_START).named(WAITER).observer().priority(i64::MAX).handler(Waiter(self.clone()));
        hooks.hook(SESSION_END).named(WAITER).observer().priority(i64::MAX).handler(Waiter(self.clone()));
    }
}

/// Something that is not done yet; it is when this is dropped.
struct Pending(Arc<Unfinished>);

impl Pending {
    fn new(unfinished: &Arc<Unfinished>) -> Self {
        unfinished.pending.send_modify(|pending| *pending += 1);
        Self(unfinished.clone())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.pending.send_modify(|pending| *pending -= 1);
    }
}

/// Knows who is a sub-agent, and waits at the end of a session for what is not done.
struct Waiter(Arc<Unfinished>);

impl Hook for Waiter {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let sessions = &self.0.sessions;
        if event == "session:start" {
            sessions.begin(data);
            return Ok(HookResult::proceed());
        }
        if !sessions.is_child(data) {
            self.0.settle().await;
        }
        sessions.end(data);
        Ok(HookResult::proceed())
    }
}
