//! Hooks that send every event to a long-running program.

mod connection;
mod slot;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookResult};
use amplifier_process::Process;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::program::Program;
use super::protocol::{HookRequest, WORKSPACE};
use super::{MAX_OUTPUT, TIMEOUT, TransportError, runtime};
use slot::{WorkerRequest, WorkerSlot};

/// Options of a [`WorkerHook`].
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The name of the hook, which is part of every request.
    pub name: String,
    /// Program to run.
    pub program: Program,
    /// Workspace of the agent, for requests and the environment; none by default.
    pub workspace: Option<PathBuf>,
    /// Maximum number of processes; 1 by default.
    pub workers: usize,
    /// Time limit of one request, including the start of a worker; 30 seconds by default.
    pub timeout: Duration,
    /// Maximum size of one line in bytes; 1 MiB by default.
    pub most_output: usize,
}

impl WorkerOptions {
    /// Creates options for one process, with default limits.
    pub fn new(name: impl Into<String>, program: Program) -> Self {
        let (timeout, most_output) = (TIMEOUT, MAX_OUTPUT);
        Self { name: name.into(), program, workspace: None, workers: 1, timeout, most_output }
    }

    /// Starts the program.
    fn start(&self) -> Result<Process, HookError> {
        let workspace = self.workspace.as_ref().map(|folder| (WORKSPACE, folder.to_string_lossy().into_owned()));
        self.program.start(workspace.as_slice())
    }
}

/// A hook that sends events to a long-running program: requests and answers are lines, and answers may come in any order.
///
/// A worker starts when it is first needed. If it exits, breaks the protocol, or sends nothing for twice the time limit while an answer is pending,
/// the requests in flight fail, and the next one restarts the worker: after 100 ms, and after twice as long each time until it answers again, up to
/// 10 s. A request waits up to a second for a restart; otherwise it fails at once, so that a broken hook does not delay the agent.
///
/// Dropping the hook kills the workers with all their descendants.
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
    /// Creates a hook without starting workers.
    ///
    /// # Errors
    /// If the command is empty or an environment variable is missing.
    pub fn new(mut options: WorkerOptions) -> Result<Self, TransportError> {
        options.program = options.program.resolve(&options.name)?;
        let slots = (0..options.workers.max(1)).map(|_| WorkerSlot::default()).collect();
        Ok(Self { options, slots, next_id: AtomicU64::new(1) })
    }
}

impl Hook for WorkerHook {
    /// Sends the event to the worker with the fewest requests.
    ///
    /// # Cancel safety
    /// Dropping the future does not affect the worker; its answer is discarded.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let runtime = runtime()?;
        let Some(slot) = self.slots.iter().min_by_key(|slot| slot.load()) else {
            return Err(HookError::failed("no worker is configured"));
        };
        let _load = slot.enter();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let request = HookRequest::new(&self.options.name, event, data, self.options.workspace.as_deref());
        let mut line = HookRequest { id: Some(id), ..request }.to_json()?;
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
