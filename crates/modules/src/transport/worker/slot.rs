//! The place of one worker: starts it when it is needed, and again when it has ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amplifier_core::{HookError, HookResult};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::WorkerOptions;
use super::connection::{Connection, End, Failure};

/// How many requests wait for a worker in its queue; more of them wait before it.
const QUEUE: usize = 64;

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long a request waits for a worker that may not be started yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// A request on its way.
pub(super) struct Ask {
    pub(super) id: u64,
    /// With the line break.
    pub(super) line: Vec<u8>,
    pub(super) reply: oneshot::Sender<Result<HookResult, HookError>>,
}

/// One worker, whether it runs or not.
#[derive(Debug, Default)]
pub(super) struct Slot {
    // A std lock: nothing awaits while it is held.
    asks: Mutex<Option<mpsc::Sender<Ask>>>,
    load: Arc<AtomicUsize>,
}

/// Counts a request for as long as it is kept.
pub(super) struct Busy(Arc<AtomicUsize>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Slot {
    /// How many requests are under way.
    pub(super) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self) -> Busy {
        self.load.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(&self.load))
    }

    /// Where requests go. The task behind it ends with the hook; one that ended with its runtime is replaced.
    pub(super) fn asks(&self, runtime: &Handle, options: &WorkerOptions) -> mpsc::Sender<Ask> {
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asks) = asks.as_ref().filter(|asks| !asks.is_closed()) {
            return asks.clone();
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        runtime.spawn(run(receiver, options.clone()));
        asks.insert(sender).clone()
    }
}

/// Serves requests until the hook is dropped.
async fn run(mut asks: mpsc::Receiver<Ask>, options: WorkerOptions) {
    let mut pause = Pause::default();
    while let Some(ask) = asks.recv().await {
        if let Some(why) = pause.too_long() {
            let _ = ask.reply.send(Err(HookError::Failed(why)));
            continue;
        }
        sleep_until(pause.until).await;
        if ask.reply.is_closed() {
            continue;
        }
        if let Some(answer) = options.program.denied().await.transpose() {
            let _ = ask.reply.send(answer);
            continue;
        }
        let mut connection = match options.program.start() {
            Ok(process) => Connection::new(process, &options),
            Err(error) => {
                pause.lengthen(error.to_string());
                let _ = ask.reply.send(Err(error));
                continue;
            }
        };
        let End::Broken(broken) = connection.serve(ask, &mut asks).await else { return };
        let Failure { why, has_answered } = connection.fail(broken).await;
        tracing::warn!(hook = options.name, "a worker is to be restarted: {why}");
        if has_answered {
            pause = Pause::default();
        }
        pause.lengthen(why);
    }
}

/// When a worker may be started.
struct Pause {
    until: Instant,
    last: Option<Duration>,
    why: String,
}

impl Default for Pause {
    fn default() -> Self {
        Self { until: Instant::now(), last: None, why: String::new() }
    }
}

impl Pause {
    fn lengthen(&mut self, why: String) {
        let pause = self.last.map_or(SHORTEST_PAUSE, |last| (last * 2).min(LONGEST_PAUSE));
        *self = Self { until: Instant::now() + pause, last: Some(pause), why };
    }

    /// Why a request does not wait.
    fn too_long(&self) -> Option<String> {
        let left = self.until.saturating_duration_since(Instant::now());
        (left > PATIENCE).then(|| {
            let seconds = left.as_secs_f64();
            format!("the worker keeps failing and is not started for another {seconds:.1} s: {}", self.why)
        })
    }
}
