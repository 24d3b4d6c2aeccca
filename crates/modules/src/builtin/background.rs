//! Work that the agent does not wait for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::settings::lock;

/// How much may wait to be done.
const WAITING: usize = 32;

/// Does things one after another, beside the agent. What does not fit into its queue is left undone.
pub(super) struct Background<T> {
    work: Arc<dyn Fn(T) -> Working + Send + Sync>,
    // A std lock: nothing awaits while it is held.
    queue: Mutex<Option<mpsc::Sender<Job<T>>>>,
}

pub(super) type Working = Pin<Box<dyn Future<Output = ()> + Send>>;

enum Job<T> {
    Do(T),
    /// Tells that everything before it is done.
    Tell(oneshot::Sender<()>),
}

impl<T: Send + 'static> Background<T> {
    /// Does this with everything that it is given.
    pub(super) fn new(work: impl Fn(T) -> Working + Send + Sync + 'static) -> Self {
        Self { work: Arc::new(work), queue: Mutex::new(None) }
    }

    /// Has it done, unless too much waits already.
    pub(super) fn push(&self, item: T) {
        let Some(queue) = self.queue() else { return };
        if queue.try_send(Job::Do(item)).is_err() {
            tracing::warn!("more than {WAITING} notifications wait to be sent, so one is left out");
        }
    }

    /// Waits until everything is done, for at most so long.
    pub(super) async fn settle(&self, within: Duration) {
        let Some(queue) = lock(&self.queue).clone() else { return };
        let (done, is_done) = oneshot::channel();
        let settled = async {
            // Whatever fails here: nobody is at work any more.
            let _ = queue.send(Job::Tell(done)).await;
            let _ = is_done.await;
        };
        let _ = timeout(within, settled).await;
    }

    /// The queue of a task that runs; of a new one, if the one before ended with its runtime.
    fn queue(&self) -> Option<mpsc::Sender<Job<T>>> {
        let mut queue = lock(&self.queue);
        if let Some(open) = queue.as_ref().filter(|queue| !queue.is_closed()) {
            return Some(open.clone());
        }
        let runtime = Handle::try_current().ok()?;
        let (sender, mut jobs) = mpsc::channel(WAITING);
        let work = self.work.clone();
        runtime.spawn(async move {
            while let Some(job) = jobs.recv().await {
                match job {
                    Job::Do(item) => work(item).await,
                    Job::Tell(done) => _ = done.send(()),
                }
            }
        });
        *queue = Some(sender.clone());
        Some(sender)
    }
}
