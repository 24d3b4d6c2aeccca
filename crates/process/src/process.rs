//! A process with all that descends from it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::timeout;

use crate::ProcessGroup;
use crate::sandbox::{Sandbox, ToldExit};

/// How long a process that was killed may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// A process in a process group of its own, which ends when this is dropped, with all that descends from it.
#[derive(Debug)]
pub struct Process {
    running: RunningProcess,
    /// What it reads, if anything.
    pub stdin: Option<pipe::Sender>,
    /// What it writes.
    pub stdout: pipe::Receiver,
    /// What it writes to standard error; none if that is part of its output.
    pub stderr: Option<pipe::Receiver>,
    sandbox: Sandbox,
}

/// A process without its pipes. It ends when this is dropped, with all that descends from it.
#[derive(Debug)]
pub struct RunningProcess {
    // INVARIANT: dropped before `child`. Until the child is waited for, its id, which is that of the group, cannot become another's.
    group: ProcessGroup,
    child: Child,
    /// What a sandbox that was made in advance says of its end.
    told: Option<Arc<ToldExit>>,
}

/// What is left of a process.
#[derive(Debug)]
pub struct ProcessExit {
    /// How it ended, if that is known.
    pub status: Option<ExitStatus>,
    /// The pipe that it wrote to.
    pub stdout: pipe::Receiver,
    /// The pipe that it wrote errors to.
    pub stderr: Option<pipe::Receiver>,
}

impl Process {
    pub(crate) fn new(
        group: ProcessGroup,
        child: Child,
        told: Option<Arc<ToldExit>>,
        stdin: Option<pipe::Sender>,
        stdout: pipe::Receiver,
        stderr: Option<pipe::Receiver>,
        sandbox: Sandbox,
    ) -> Self {
        Self { running: RunningProcess { group, child, told }, stdin, stdout, stderr, sandbox }
    }

    /// Returns when the process has ended.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let RunningProcess { group, told, .. } = &self.running;
        let (told, wait) = (told.clone(), group.wait_for_leader());
        async move {
            let is_told = match told {
                Some(told) => told.wait().await.is_some(),
                None => false,
            };
            if !is_told {
                // A thread waits, because the runtime cannot wait for a process and leave it there.
                let _ = tokio::task::spawn_blocking(wait).await;
            }
        }
    }

    /// The process and its pipes, for one who hands them on: standard input, output and error.
    pub fn into_parts(self) -> (RunningProcess, Option<pipe::Sender>, pipe::Receiver, Option<pipe::Receiver>) {
        (self.running, self.stdin, self.stdout, self.stderr)
    }

    /// Ends the process, if it still runs, and all that descends from it.
    pub async fn end(self) -> ProcessExit {
        let Self { running: RunningProcess { group, mut child, told }, stdin, stdout, stderr, sandbox } = self;
        let status = match told.and_then(|told| told.status()) {
            // The sandbox has ended all others, and ends itself.
            Some(status) => {
                group.kill();
                Some(status)
            }
            None => {
                drop(group);
                // Only now, so that the end of its input is not what ended it.
                drop(stdin);
                timeout(GONE_WITHIN, child.wait()).await.ok().and_then(Result::ok)
            }
        };
        sandbox.prepare();
        ProcessExit { status, stdout, stderr }
    }
}

/// Writes some of the bytes; waits for ever if there is nowhere to write to.
pub async fn write(stdin: &mut Option<pipe::Sender>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}

/// Reads some bytes; waits for ever if there is nothing to read from.
pub async fn read(pipe: &mut Option<pipe::Receiver>, bytes: &mut Vec<u8>) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read_buf(bytes).await,
        None => std::future::pending().await,
    }
}

/// How a process ended, in words.
pub fn describe(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended with exit code {code}"),
        Some((None, Some(signal))) => format!("was ended by signal {signal}"),
        _ => "ended, and its exit code is not known".to_owned(),
    }
}
