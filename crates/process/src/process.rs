//! A process with all that descends from it.

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

/// How long a process that was killed may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// A process in a process group of its own, which ends when this is dropped, with all that descends from it.
#[derive(Debug)]
pub struct Process {
    running: RunningProcess,
    /// What it reads, if anything.
    pub stdin: Option<Sender>,
    /// What it writes.
    pub stdout: Receiver,
    /// What it writes to standard error; none if that is part of its output.
    pub stderr: Option<Receiver>,
    sandbox: Sandbox,
}

/// A process without its pipes. It ends when this is dropped, with all that descends from it.
#[derive(Debug)]
pub struct RunningProcess {
    // INVARIANT: dropped before `child`. Until the child is waited for, its id, which is that of the group, cannot become another's.
    group: ProcessGroup,
    child: Child,
    /// What a sandbox that was made in advance says of its end.
    reported: Option<Arc<ReportedExit>>,
}

/// What is left of a process.
#[derive(Debug)]
pub struct ProcessExit {
    /// How it ended, if that is known.
    pub status: Option<ExitStatus>,
    /// The process, if it was killed and is still there.
    pub lingering: Option<LingeringProcess>,
    /// The pipe that it wrote to.
    pub stdout: Receiver,
    /// The pipe that it wrote errors to.
    pub stderr: Option<Receiver>,
}

/// A process that was killed and is still there: perhaps it waits for a disk, or runs as another user.
#[derive(Debug)]
pub struct LingeringProcess(Child);

impl LingeringProcess {
    /// `true` if it has ended by now.
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
                // A thread waits, because the runtime cannot wait for a process and leave it there.
                let _ = tokio::task::spawn_blocking(wait).await;
            }
        }
    }

    /// The process and its pipes, for one who hands them on: standard input, output and error.
    pub fn into_parts(self) -> (RunningProcess, Option<Sender>, Receiver, Option<Receiver>) {
        (self.running, self.stdin, self.stdout, self.stderr)
    }

    /// Ends the process, if it still runs, and all that descends from it.
    pub async fn end(self) -> ProcessExit {
        let Self { running: RunningProcess { group, mut child, reported }, stdin, stdout, stderr, sandbox } = self;
        let (status, lingering) = match reported.and_then(|reported| reported.status()) {
            // The sandbox has ended all others, and ends itself.
            Some(status) => {
                group.kill();
                (Some(status), None)
            }
            None => {
                drop(group);
                // Only now, so that the end of its input is not what ended it.
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

/// Writes some of the bytes; waits for ever if there is nowhere to write to.
pub async fn write(stdin: &mut Option<Sender>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}

/// Reads some bytes; waits for ever if there is nothing to read from.
pub async fn read(pipe: &mut Option<Receiver>, bytes: &mut Vec<u8>) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read_buf(bytes).await,
        None => std::future::pending().await,
    }
}

/// The signal that ended a process; none if it ended by itself, and on Windows.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    signal(status)
}

/// How a process ended, in words.
pub fn describe(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), signal(status))) {
        Some((Some(code), _)) => format!("ended with exit code {code}"),
        Some((None, Some(signal))) => format!("was ended by signal {signal}"),
        _ => "ended, and its exit code is not known".to_owned(),
    }
}
