//! A program that is kept alive and asked about every event.

mod connection;
mod slot;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookResult};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::program::Program;
use super::protocol::{HookRequest, PROTOCOL};
use super::{MAX_OUTPUT, TIMEOUT, TransportError, runtime};
use slot::{WorkerRequest, WorkerSlot};

/// How a [`WorkerHook`] runs.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The name of the hook, which is part of every request.
    pub name: String,
    /// What is run.
    pub program: Program,
    /// How many of it run at most; 1.
    pub workers: usize,
    /// How long one request may take, also the wait for a worker that is being started; 30 seconds.
    pub timeout: Duration,
    /// How many bytes one line of a worker may have; 1 MiB.
    pub most_output: usize,
}

impl WorkerOptions {
    /// Keeps one program running, with the usual limits.
    pub fn new(name: impl Into<String>, program: Program) -> Self {
        Self { name: name.into(), program, workers: 1, timeout: TIMEOUT, most_output: MAX_OUTPUT }
    }
}

/// A hook that asks a program which is kept alive: requests and answers are lines, and answers come in any order.
///
/// A worker is started when it is first needed. When it ends, or breaks the protocol, or owes an answer and says nothing for twice the time
/// limit, the requests in flight fail, and the next one starts it anew: after 100 ms, and after twice as long each time until one
/// answers again, up to 10 s. A request waits for that up to a second; if it would be longer it fails at once, so that a broken hook
/// does not hold up the agent.
///
/// Dropping the hook kills the workers, with all that they began.
///
/// ```
/// use amplifier_core::{HookRegistry, TOOL_PRE};
/// use amplifier_modules::transport::{Program, WorkerHook, WorkerOptions};
///
/// let options = WorkerOptions { workers: 2, ..WorkerOptions::new("policy", Program::new(["python3", "policy.py"])) };
/// HookRegistry::new().hook(TOOL_PRE).named("policy").handler(WorkerHook::new(options)?);
/// # Ok::<(), amplifier_modules::transport::TransportError>(())
/// ```
#[derive(Debug)]
pub struct WorkerHook {
    options: WorkerOptions,
    slots: Vec<WorkerSlot>,
    next_id: AtomicU64,
}

impl WorkerHook {
    /// Prepares to run workers. Nothing runs yet.
    ///
    /// # Errors
    /// If there is no command, or the environment lacks what it names.
    pub fn new(mut options: WorkerOptions) -> Result<Self, TransportError> {
        options.program = options.program.resolve(&options.name)?;
        let slots = (0..options.workers.max(1)).map(|_| WorkerSlot::default()).collect();
        Ok(Self { options, slots, next_id: AtomicU64::new(1) })
    }
}

impl Hook for WorkerHook {
    /// Asks the worker that has the least to do.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the worker alone; its answer is dropped when it comes.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let runtime = runtime()?;
        let Some(slot) = self.slots.iter().min_by_key(|slot| slot.load()) else {
            return Err(HookError::failed("there is no worker"));
        };
        let _load = slot.enter();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut line =
            HookRequest { protocol: PROTOCOL, id: Some(id), hook: &self.options.name, event, data }.to_json()?;
        line.push(b'\n');
        let (reply, answer) = oneshot::channel();
        let requests = slot.requests(&runtime, &self.options);
        let exchange = async {
            // If the worker's task is gone, so is the other end of `answer`.
            let _ = requests.send(WorkerRequest { id, line, reply }).await;
            answer.await.unwrap_or_else(|_| Err(HookError::failed("the worker was ended with its runtime")))
        };
        let limit = self.options.timeout;
        let answer = timeout(limit, exchange).await.unwrap_or(Err(HookError::TimedOut(limit)));
        self.options.program.deny_changed_at_start(answer)
    }
}
