//! Processes with their descendants.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::time::timeout;

use crate::sandbox::{ReportedExit, Sandbox};
use crate::system::process::signal;
use crate::{ProcessGroup, Receiver, Sender};

/// The time that a killed process has to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// A process in its own process group. Dropping it kills the process and its descendants.
#[derive(Debug)]
pub struct Process {
    running: RunningProcess,
    /// The pipe to standard input, if there is one.
    pub stdin: Option<Sender>,
    /// The pipe from standard output.
    pub stdout: Receiver,
    /// The pipe from standard error; none if merged into standard output.
    pub stderr: Option<Receiver>,
    sandbox: Sandbox,
}

/// A process without its pipes. Dropping it kills the process and its descendants.
#[derive(Debug)]
pub struct RunningProcess {
    // INVARIANT: dropped before `child`. Until the child is waited for, its id, which is also that of the group, is not reused.
    group: ProcessGroup,
    child: Child,
    /// The exit that a prepared sandbox reports.
    reported: Option<Arc<ReportedExit>>,
}

/// The exit of a process.
#[derive(Debug)]
pub struct ProcessExit {
    /// The exit status, if known.
    pub status: Option<ExitStatus>,
    /// The process, if it is still there after it was killed.
    pub lingering: Option<LingeringProcess>,
    /// The pipe from standard output.
    pub stdout: Receiver,
    /// The pipe from standard error.
    pub stderr: Option<Receiver>,
}

/// A killed process that is still there: it may wait for a disk, or run as another user.
#[derive(Debug)]
pub struct LingeringProcess(Child);

impl LingeringProcess {
    /// Returns `true` if the process has ended by now.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Process {
    pub(crate) fn new(
        group: ProcessGroup,
        child: Child,
        reported: Option<Arc<ReportedExit>>,
        stdin: Option<Sender>,
        stdout: Receiver,
        stderr: Option<Receiver>,
        sandbox: Sandbox,
    ) -> Self {
        Self { running: RunningProcess { group, child, reported }, stdin, stdout, stderr, sandbox }
    }

    /// Returns when the process has ended.
    pub fn wait(&self) -> impl Future<Output = ()> + Send + use<> {
        let RunningProcess { group, reported, .. } = &self.running;
        let (reported, wait) = (reported.clone(), group.wait_for_leader());
        async move {
            let is_reported = match reported {
                Some(reported) => reported.wait().await.is_some(),
                None => false,
            };
            if !is_reported {
                // A thread waits, because the runtime cannot wait without reaping the process.
                let _ = tokio::task::spawn_blocking(wait).await;
            }
        }
    }

    /// Returns the process and its pipes: standard input, output and error.
    pub fn into_parts(self) -> (RunningProcess, Option<Sender>, Receiver, Option<Receiver>) {
        (self.running, self.stdin, self.stdout, self.stderr)
    }

    /// Kills the process, if it still runs, and its descendants.
    pub async fn end(self) -> ProcessExit {
        let Self { running: RunningProcess { group, mut child, reported }, stdin, stdout, stderr, sandbox } = self;
        let (status, lingering) = match reported.and_then(|reported| reported.status()) {
            // The sandbox has killed all others, and ends itself.
            Some(status) => {
                group.kill();
                (Some(status), None)
            }
            None => {
                drop(group);
                // Only now, so that the process is not ended by a closed input.
                drop(stdin);
                match timeout(KILL_TIMEOUT, child.wait()).await {
                    Ok(waited) => (waited.ok(), None),
                    Err(_) => (None, Some(LingeringProcess(child))),
                }
            }
        };
        sandbox.prepare();
        ProcessExit { status, lingering, stdout, stderr }
    }
}

/// Writes some of the bytes. Never returns if there is no pipe.
pub async fn write(stdin: &mut Option<Sender>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}

/// Reads some bytes. Never returns if there is no pipe.
pub async fn read(pipe: &mut Option<Receiver>, bytes: &mut Vec<u8>) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read_buf(bytes).await,
        None => std::future::pending().await,
    }
}

/// Returns the signal that ended the process; none if it exited, and on Windows.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    signal(status)
}

/// Describes the exit of a process for users.
pub fn describe(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), signal(status))) {
        Some((Some(code), _)) => format!("ended with exit code {code}"),
        Some((None, Some(signal))) => format!("was ended by signal {signal}"),
        _ => "ended, and its exit code is not known".to_owned(),
    }
}
