//! Hooks that run a command for every event.

use std::path::PathBuf;
use std::time::Duration;

use amplifier_core::{EventData, Hook, HookError, HookResult};
use amplifier_process::{CompletedProcess, describe};

use super::program::{self, Program};
use super::protocol::{self, HookRequest};
use super::{MAX_OUTPUT, MAX_OUTPUT_CHARS, TIMEOUT, TransportError, head};

const DENY: i32 = 2;

/// Options of a [`CommandHook`].
#[derive(Clone, Debug)]
pub struct CommandOptions {
    /// The name of the hook, which is part of every request.
    pub name: String,
    /// Program to run.
    pub program: Program,
    /// Workspace of the agent, for requests and the environment; none by default.
    pub workspace: Option<PathBuf>,
    /// Time limit of one call, from start to end; 30 seconds by default.
    pub timeout: Duration,
    /// Maximum number of bytes for each of stdout and stderr; 1 MiB by default.
    pub most_output: usize,
}

impl CommandOptions {
    /// Creates options with default limits.
    pub fn new(name: impl Into<String>, program: Program) -> Self {
        Self { name: name.into(), program, workspace: None, timeout: TIMEOUT, most_output: MAX_OUTPUT }
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
    /// Creates a hook without starting the command.
    ///
    /// # Errors
    /// If the command is empty or an environment variable is missing.
    pub fn new(mut options: CommandOptions) -> Result<Self, TransportError> {
        options.program = options.program.resolve(&options.name)?;
        Ok(Self { options })
    }
}

impl Hook for CommandHook {
    /// # Cancel safety
    /// Dropping the future kills the command and all its descendants.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let CommandOptions { name, program, workspace, timeout, most_output } = &self.options;
        let request = HookRequest::new(name, event, data, workspace.as_deref());
        let (input, variables) = (request.to_json()?, request.variables());
        if let Some(denial) = program.deny_if_changed().await? {
            return Ok(denial);
        }
        program.deny_changed_at_start(conclude(
            &program.run_with(&variables, &input, *timeout, *most_output).await?,
            *timeout,
        ))
    }
}

/// Says where plain text belongs: most commands that are not written as hooks print some.
fn explain_text(error: HookError, stdout: &[u8]) -> HookError {
    match error {
        HookError::Unreadable(why) if !matches!(stdout.trim_ascii().first(), Some(b'{' | b'[')) => {
            HookError::Unreadable(format!(
                "{why}; print an object such as {{\"action\": \"inject_context\", \"context_injection\": \"…\"}}, and write other text to standard error"
            ))
        }
        error => error,
    }
}

fn conclude(ran: &CompletedProcess, limit: Duration) -> Result<HookResult, HookError> {
    let CompletedProcess { status, stdout, stderr, in_time, .. } = ran;
    let failed = |what: String| Err(HookError::Failed(program::with_stderr(what, &stderr.bytes)));
    for (name, output) in [("stdout", stdout), ("stderr", stderr)] {
        if output.exceeds_limit() {
            return failed(format!("the command exceeded the output limit of {name} and was ended"));
        }
    }
    if !in_time {
        let late = HookError::TimedOut(limit);
        // `TimedOut` has no text, so it is used only without stderr.
        return if stderr.bytes.is_empty() { Err(late) } else { failed(format!("the command {late}")) };
    }
    match status.and_then(|status| status.code()) {
        Some(0) => {
            let answer = protocol::read(&stdout.bytes).map_err(|error| explain_text(error, &stdout.bytes))?;
            let said = head(&stderr.bytes, MAX_OUTPUT_CHARS);
            Ok(if said.is_empty() { answer } else { answer.with_output(said) })
        }
        Some(DENY) => {
            let reason = head(&stderr.bytes, MAX_OUTPUT_CHARS);
            Ok(HookResult::deny(if reason.is_empty() { "the command gave no reason".to_owned() } else { reason }))
        }
        _ => failed(format!("the command {}", describe(*status))),
    }
}
