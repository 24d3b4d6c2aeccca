//! One run of a program, from its start to its end.

use std::io;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::process::{read, write};
use crate::{Command, LingeringProcess, OutputBuffer, Process};

/// What came of a run.
#[derive(Debug)]
pub struct CompletedProcess {
    /// How it ended, if that is known.
    pub status: Option<ExitStatus>,
    /// The process, if it was killed and is still there.
    pub lingering: Option<LingeringProcess>,
    /// What it wrote.
    pub stdout: OutputBuffer,
    /// What it wrote to standard error.
    pub stderr: OutputBuffer,
    /// `true` if it ended by itself, or wrote too much, before its time was up.
    pub in_time: bool,
}

impl Command {
    /// Runs the program with this input, for at most so long; it may write so many bytes to each of its outputs.
    ///
    /// # Errors
    /// If it cannot be started.
    ///
    /// # Cancel safety
    /// Dropping the future kills the program and all that descends from it.
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

    /// Runs the program as [`run`](Self::run) does, and waits for it on this thread: for whoever has no runtime.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run_blocking(&self, input: &[u8], limit: Duration, max_bytes: usize) -> io::Result<CompletedProcess> {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let completed = runtime.block_on(self.run(input, limit, max_bytes));
            // A process that cannot be killed must not hold this up.
            runtime.shutdown_background();
            completed
        };
        // A thread of its own, because a runtime cannot run within another.
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
    /// Writes the input and takes in what is written, all at once, until the program has ended or written too much.
    async fn exchange(&mut self, mut input: &[u8]) {
        let Self { process, stdout, stderr } = self;
        let mut ended = std::pin::pin!(process.wait());
        while !stdout.exceeds_limit() && !stderr.exceeds_limit() {
            tokio::select! {
                () = &mut ended => return,
                written = write(&mut process.stdin, input) => {
                    // A program need not read its input: if it does not, there is no more to write.
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
