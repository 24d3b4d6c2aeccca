//! Runs of a program, from start to end.

use std::io;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::process::{read, write};
use crate::{Command, LingeringProcess, OutputBuffer, Process};

/// The result of a run.
#[derive(Debug)]
pub struct CompletedProcess {
    /// The exit status, if known.
    pub status: Option<ExitStatus>,
    /// The process, if it is still there after it was killed.
    pub lingering: Option<LingeringProcess>,
    /// The standard output.
    pub stdout: OutputBuffer,
    /// The standard error.
    pub stderr: OutputBuffer,
    /// `true` if the program ended, or exceeded an output limit, within the time limit.
    pub in_time: bool,
}

impl Command {
    /// Runs the program with this input, a time limit, and a limit in bytes for each output.
    ///
    /// # Errors
    /// If the program cannot be started.
    ///
    /// # Cancel safety
    /// Dropping the future kills the program and its descendants.
    pub async fn run(&self, input: &[u8], limit: Duration, max_bytes: usize) -> io::Result<CompletedProcess> {
        let output = || OutputBuffer::new(max_bytes).truncated(self.is_truncated);
        let mut run = RunningCommand { process: self.start()?, stdout: output(), stderr: output() };
        let in_time = timeout(limit, run.exchange(input)).await.is_ok();
        let RunningCommand { process, mut stdout, mut stderr } = run;
        let ended = process.end().await;
        stdout.drain(&ended.stdout);
        if let Some(pipe) = &ended.stderr {
            stderr.drain(pipe);
        }
        Ok(CompletedProcess { status: ended.status, lingering: ended.lingering, stdout, stderr, in_time })
    }

    /// Runs the program as [`run`](Self::run) does, and blocks this thread. For callers without a runtime.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn run_blocking(&self, input: &[u8], limit: Duration, max_bytes: usize) -> io::Result<CompletedProcess> {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let completed = runtime.block_on(self.run(input, limit, max_bytes));
            // A process that cannot be killed must not block this thread.
            runtime.shutdown_background();
            completed
        };
        // A separate thread, because a runtime cannot run within another.
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("program".to_owned()).spawn_scoped(scope, run)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that runs the program has panicked")))
        })
    }
}

struct RunningCommand {
    process: Process,
    stdout: OutputBuffer,
    stderr: OutputBuffer,
}

impl RunningCommand {
    /// Writes the input and reads the outputs concurrently, until the program ends or exceeds a limit.
    async fn exchange(&mut self, mut input: &[u8]) {
        let Self { process, stdout, stderr } = self;
        let mut ended = std::pin::pin!(process.wait());
        while !stdout.exceeds_limit() && !stderr.exceeds_limit() {
            tokio::select! {
                () = &mut ended => return,
                written = write(&mut process.stdin, input) => {
                    // The program may close its input early; the rest of the input is dropped.
                    input = &input[written.unwrap_or(input.len())..];
                    if input.is_empty() {
                        process.stdin = None;
                    }
                }
                read = process.stdout.read_buf(&mut stdout.bytes), if stdout.is_open => stdout.record_read(read),
                read = read(&mut process.stderr, &mut stderr.bytes), if stderr.is_open => stderr.record_read(read),
            }
        }
    }
}
