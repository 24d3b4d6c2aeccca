//! One worker: started when needed, and restarted after a failure.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amplifier_core::{HookError, HookResult};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::WorkerOptions;
use super::connection::{ConnectionEnd, FailedWorker, WorkerConnection};

const QUEUE: usize = 64;

const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// Maximum wait of a request for a restart.
const MAX_WAIT: Duration = Duration::from_secs(1);

pub(super) struct WorkerRequest {
    pub(super) id: u64,
    pub(super) line: Vec<u8>,
    pub(super) reply: oneshot::Sender<Result<HookResult, HookError>>,
}

/// A worker that may be running.
#[derive(Debug, Default)]
pub(super) struct WorkerSlot {
    // A std lock: nothing awaits while it is held.
    requests: Mutex<Option<mpsc::Sender<WorkerRequest>>>,
    load: Arc<AtomicUsize>,
}

/// Counts a request until dropped.
pub(super) struct LoadGuard(Arc<AtomicUsize>);

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WorkerSlot {
    /// Returns the number of requests in flight.
    pub(super) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self) -> LoadGuard {
        self.load.fetch_add(1, Ordering::Relaxed);
        LoadGuard(Arc::clone(&self.load))
    }

    /// Returns the sender of requests. Its task ends with the hook; a task that ended with its runtime is replaced.
    pub(super) fn requests(&self, runtime: &Handle, options: &WorkerOptions) -> mpsc::Sender<WorkerRequest> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = requests.as_ref().filter(|requests| !requests.is_closed()) {
            return requests.clone();
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        runtime.spawn(run(receiver, options.clone()));
        requests.insert(sender).clone()
    }
}

async fn run(mut requests: mpsc::Receiver<WorkerRequest>, options: WorkerOptions) {
    let mut backoff = Backoff::default();
    while let Some(request) = requests.recv().await {
        if let Some(why) = backoff.rejection() {
            let _ = request.reply.send(Err(HookError::Failed(why)));
            continue;
        }
        sleep_until(backoff.until).await;
        if request.reply.is_closed() {
            continue;
        }
        if let Some(answer) = options.program.deny_if_changed().await.transpose() {
            let _ = request.reply.send(answer);
            continue;
        }
        let mut connection = match options.start() {
            Ok(process) => WorkerConnection::new(process, &options),
            Err(error) => {
                backoff.lengthen(error.to_string());
                let _ = request.reply.send(Err(error));
                continue;
            }
        };
        let ConnectionEnd::Failed(failure) = connection.serve(request, &mut requests).await else { return };
        let FailedWorker { why, has_answered } = connection.fail(failure).await;
        tracing::warn!(hook = options.name, "restarting a worker: {why}");
        if has_answered {
            backoff = Backoff::default();
        }
        backoff.lengthen(why);
    }
}

/// The delay before the next start of a worker.
struct Backoff {
    until: Instant,
    last: Option<Duration>,
    why: String,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { until: Instant::now(), last: None, why: String::new() }
    }
}

impl Backoff {
    fn lengthen(&mut self, why: String) {
        let backoff = self.last.map_or(MIN_BACKOFF, |last| (last * 2).min(MAX_BACKOFF));
        *self = Self { until: Instant::now() + backoff, last: Some(backoff), why };
    }

    /// Returns the error for a request, if the delay is too long to wait.
    fn rejection(&self) -> Option<String> {
        let left = self.until.saturating_duration_since(Instant::now());
        (left > MAX_WAIT).then(|| {
            let seconds = left.as_secs_f64();
            format!("the worker keeps failing and is not started for another {seconds:.1} s: {}", self.why)
        })
    }
}
