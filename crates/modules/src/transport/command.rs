//! A command that is run for every event.

use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookResult};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::process::{self, Ended, Output, Process, Program};
use super::protocol::{self, PROTOCOL, Request};
use super::{MOST_OUTPUT, TIMEOUT, TransportError, head, runtime};

/// The exit code that denies.
const DENY: i32 = 2;

/// How many characters of stderr are a reason, or part of the transcript.
const LONGEST_SAID: usize = 10_240;

/// How a [`CommandHook`] runs.
#[derive(Clone, Debug)]
pub struct CommandOptions {
    /// The name of the hook, which is part of every request.
    pub name: String,
    /// What is run.
    pub program: Program,
    /// How long one call may take, from start to end; 30 seconds.
    pub timeout: Duration,
    /// How many bytes the command may write, to stdout and to stderr; 1 MiB each.
    pub most_output: usize,
}

impl CommandOptions {
    /// Runs a program with the usual limits.
    pub fn new(name: impl Into<String>, program: Program) -> Self {
        Self { name: name.into(), program, timeout: TIMEOUT, most_output: MOST_OUTPUT }
    }
}

/// A hook that runs a command for every event, with the request on its stdin.
///
/// | the command | is |
/// |---|---|
/// | exits with 0 | an answer: what it wrote to stdout; nothing is "go on". What it wrote to stderr is the hook's output |
/// | exits with 2 | a denial; what it wrote to stderr is the reason |
/// | does anything else | a failure |
///
/// The command runs in a process group of its own, all of which is killed at the end of the call.
///
/// ```
/// use amplifier_core::{HookRegistry, TOOL_PRE};
/// use amplifier_modules::transport::{CommandHook, CommandOptions, Program};
///
/// let program = Program::line("grep -q 'rm -rf' && echo 'no rm -rf' >&2 && exit 2; exit 0");
/// let hook = CommandHook::new(CommandOptions::new("no-rm", program))?;
/// HookRegistry::new().hook(TOOL_PRE).named("no-rm").handler(hook);
/// # Ok::<(), amplifier_modules::transport::TransportError>(())
/// ```
#[derive(Debug)]
pub struct CommandHook {
    options: CommandOptions,
}

impl CommandHook {
    /// Prepares to run a command. Nothing runs yet.
    ///
    /// # Errors
    /// If there is no command, or the environment lacks what it names.
    pub fn new(mut options: CommandOptions) -> Result<Self, TransportError> {
        options.program = options.program.resolve(&options.name)?;
        Ok(Self { options })
    }
}

impl Hook for CommandHook {
    /// Runs the command.
    ///
    /// # Cancel safety
    /// Dropping the future kills the command and all that it began.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let CommandOptions { name, program, timeout: limit, most_output } = &self.options;
        runtime()?;
        let request = Request { protocol: PROTOCOL, id: None, hook: name, event, data }.to_json()?;
        let mut run =
            Run { process: program.start()?, stdout: Output::new(*most_output), stderr: Output::new(*most_output) };
        let in_time = timeout(*limit, run.exchange(&request)).await.is_ok();
        let Run { process, mut stdout, mut stderr } = run;
        let ended = process.end().await;
        stdout.drain(&ended.stdout);
        stderr.drain(&ended.stderr);
        conclude(&ended, &stdout, &stderr, in_time.then_some(()).ok_or(*limit))
    }
}

/// One run of the command.
struct Run {
    process: Process,
    stdout: Output,
    stderr: Output,
}

impl Run {
    /// Writes the request and takes in what is written, all at once, until the command has ended or written too much.
    async fn exchange(&mut self, mut request: &[u8]) {
        let Self { process: Process { group, stdin, stdout: out, stderr: err, .. }, stdout, stderr } = self;
        let mut ended = std::pin::pin!(group.leader_ended());
        while !stdout.is_too_much() && !stderr.is_too_much() {
            tokio::select! {
                () = &mut ended => return,
                written = process::write(stdin, request) => {
                    // A command need not read its input: if it does not, there is no more to write.
                    request = &request[written.unwrap_or(request.len())..];
                    if request.is_empty() {
                        *stdin = None;
                    }
                }
                read = out.read_buf(&mut stdout.bytes), if stdout.is_open => stdout.took(read),
                read = err.read_buf(&mut stderr.bytes), if stderr.is_open => stderr.took(read),
            }
        }
    }
}

fn conclude(
    ended: &Ended,
    stdout: &Output,
    stderr: &Output,
    in_time: Result<(), Duration>,
) -> Result<HookResult, HookError> {
    let failed = |what: String| Err(HookError::Failed(process::with_stderr(what, &stderr.bytes)));
    for (name, output) in [("stdout", stdout), ("stderr", stderr)] {
        if output.is_too_much() {
            return failed(format!("the command wrote more to {name} than it may, and was ended"));
        }
    }
    if let Err(limit) = in_time {
        let late = HookError::TimedOut(limit);
        // The plain error holds no text: it is right only where there is none.
        return if stderr.bytes.is_empty() { Err(late) } else { failed(format!("the command {late}")) };
    }
    match ended.status.and_then(|status| status.code()) {
        Some(0) => {
            let answer = protocol::read(&stdout.bytes)?;
            let said = head(&stderr.bytes, LONGEST_SAID);
            Ok(if said.is_empty() { answer } else { answer.with_output(said) })
        }
        Some(DENY) => {
            let reason = head(&stderr.bytes, LONGEST_SAID);
            Ok(HookResult::deny(if reason.is_empty() { "the command gave no reason".to_owned() } else { reason }))
        }
        _ => failed(format!("the command {}", process::describe(ended.status))),
    }
}
