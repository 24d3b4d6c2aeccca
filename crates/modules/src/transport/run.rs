//! One run of a program, from its start to its end.

use std::process::ExitStatus;
use std::time::Duration;

use amplifier_core::HookError;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::process::{self, Output, Process, Program};
use super::runtime;

/// What came of a run.
pub(crate) struct Ran {
    /// How it ended, if that is known.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    /// Whether it ended by itself, or wrote too much, before its time was up.
    pub(crate) in_time: bool,
}

/// Runs a program with this input, for at most so long; it may write so many bytes to each of its outputs.
///
/// # Errors
/// If it cannot be started.
///
/// # Cancel safety
/// Dropping the future kills the program and all that it began.
pub(crate) async fn run(program: &Program, input: &[u8], limit: Duration, most: usize) -> Result<Ran, HookError> {
    runtime()?;
    let mut run = Run { process: program.start()?, stdout: Output::new(most), stderr: Output::new(most) };
    let in_time = timeout(limit, run.exchange(input)).await.is_ok();
    let Run { process, mut stdout, mut stderr } = run;
    let ended = process.end().await;
    stdout.drain(&ended.stdout);
    stderr.drain(&ended.stderr);
    Ok(Ran { status: ended.status, stdout, stderr, in_time })
}

struct Run {
    process: Process,
    stdout: Output,
    stderr: Output,
}

impl Run {
    /// Writes the input and takes in what is written, all at once, until the program has ended or written too much.
    async fn exchange(&mut self, mut input: &[u8]) {
        let Self { process: Process { group, stdin, stdout: out, stderr: err, .. }, stdout, stderr } = self;
        let mut ended = std::pin::pin!(group.leader_ended());
        while !stdout.is_too_much() && !stderr.is_too_much() {
            tokio::select! {
                () = &mut ended => return,
                written = process::write(stdin, input) => {
                    // A program need not read its input: if it does not, there is no more to write.
                    input = &input[written.unwrap_or(input.len())..];
                    if input.is_empty() {
                        *stdin = None;
                    }
                }
                read = out.read_buf(&mut stdout.bytes), if stdout.is_open => stdout.took(read),
                read = err.read_buf(&mut stderr.bytes), if stderr.is_open => stderr.took(read),
            }
        }
    }
}
