//! `amplifier run`: one task.

use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use amplifier_agent::{Cancel, CancelLevel, Session, SessionError, TurnEnd};
use amplifier_core::session_id;
use amplifier_core::text::counted;
use amplifier_core::{AddedContext, Display, DisplayMessage, HookRegistry, PortError, ReportedDecision};
use amplifier_host::{ApprovalMode, Home, LinkTarget, Policy, SessionParts};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

use super::exit::Exit;
use super::output::fail;
use crate::errors::{reasons, usage};
use crate::flags::Flags;
use crate::session::{self, TerminalSession};
use crate::signals::{stop_on_ctrl_c, stop_on_termination};
use crate::terminal::{OutputMode, Screen, TerminalDisplay};

/// Run one task and exit
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused, 130 interrupted.\n\nA run is refused if a hook or a user denied at \
                  least one operation: a prompt, a model call, a tool call or a sub-agent. This holds even if the model found another \
                  way.\n\nCtrl-C once lets the running tool finish, twice stops at once."
)]
pub struct Run {
    /// Task; without one, or with `-`, the task is read from standard input
    task: Option<String>,
    /// Print JSON: one event per line, then the result
    #[arg(long)]
    json: bool,
    /// Exit with 0 if the model answered, although operations were denied
    #[arg(long)]
    allow_denials: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Run {
    /// Runs the command.
    ///
    /// # Errors
    /// If the task is missing or the session cannot start.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        let as_json = self.json;
        let done = self.run_to_end(home).await;
        if let (true, Err(error)) = (as_json, &done) {
            // The last line is a result in any case.
            let line = json!({ "result": "error", "text": reasons(error) });
            let _ = writeln!(io::stdout().lock(), "{line}");
        }
        done
    }

    async fn run_to_end(self, home: &Home) -> Result<ExitCode> {
        let started = Instant::now();
        let config = self.flags.load(home)?;
        let task = read_task(self.task)?;
        let hooks = HookRegistry::new();
        let screen =
            if self.json { Screen::to(std::io::sink(), std::io::stderr(), OutputMode::plain()) } else { Screen::new() };
        let lines = JsonLines::default();
        if self.json {
            let lines = lines.clone();
            hooks.hook("*").named("json").observer().priority(i64::MAX).run(move |event| {
                lines.print(&json!({ "event": event.name.as_str(), "data": event.data }));
            })?;
        }
        let cancel = Cancel::default();
        stop_on_ctrl_c(&cancel, &screen);
        stop_on_termination(&cancel, &hooks)?;
        let target = LinkTarget::Socket { takes_prompts: false };
        let done = async {
            let terminal_session = tokio::select! {
                terminal_session = session::build(&config, home, hooks, &screen, &cancel, &target) => terminal_session?,
                // Dropping the future ends everything started so far.
                () = cancel.reached(CancelLevel::Graceful) => return Ok(TaskResult::without_session(TurnEnd::Interrupted)),
            };
            let policy = &terminal_session.parts.policy;
            let (level, mode) = (&policy.sandbox().level, policy.mode().current());
            if !self.json && io::stderr().is_terminal() && level.warning().is_none() {
                let mode = if mode == ApprovalMode::Ask { String::new() } else { format!("; mode: {mode}") };
                screen.note(&format!("sandbox: {}{mode}", level.as_str()));
            }
            let terminal_session = match self.json {
                true => terminal_session.with_display(MessageLines {
                    lines: lines.clone(),
                    terminal: TerminalDisplay::new(screen.clone()),
                }),
                false => terminal_session,
            };
            run_task(terminal_session, &screen, &cancel, &task).await
        };
        let TaskResult { end, usage, left } = done.await?;
        let is_refused = usage.denials > 0 && !self.allow_denials;
        let elapsed = started.elapsed();
        if self.json {
            lines.print(&json!({
                "result": result_name(&end, is_refused),
                "text": end.text(),
                "session_id": usage.session_id,
                "tokens": usage.tokens,
                "duration_ms": elapsed.as_millis() as u64,
                "denials": usage.denials,
            }));
        } else if io::stderr().is_terminal() || usage.denials > 0 {
            screen.note(&usage.summary(elapsed));
        }
        if is_refused && matches!(end, TurnEnd::Answered(_)) {
            screen.note("refused: the exit code is 3, because an operation was denied; `--allow-denials` makes it 0");
        }
        match left.and(lines.finish()) {
            Ok(()) => Ok(task_exit_code(&end, is_refused)),
            // The result is already printed; this error is additional.
            Err(error) => Ok(fail(&error, self.json)),
        }
    }
}

/// JSON lines on standard output. Cheap to clone; clones share the first error.
#[derive(Clone, Default)]
struct JsonLines {
    // A std lock: nothing awaits while it is held.
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl JsonLines {
    /// Prints a line. An error does not stop the agent, because all events are recorded anyway.
    fn print(&self, line: &Value) {
        if let Err(error) = ignore_closed_pipe(writeln!(io::stdout().lock(), "{line}")) {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Returns the first write error.
    fn finish(&self) -> Result<()> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err).context("the events cannot be written to standard output")
    }
}

/// A display that shows messages on standard error and as JSON lines.
struct MessageLines {
    lines: JsonLines,
    terminal: TerminalDisplay,
}

impl Display for MessageLines {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        let DisplayMessage { text, level, source } = message;
        let data = json!({ "level": level.as_str(), "source": source, "text": text });
        self.lines.print(&json!({ "event": "display:message", "data": data }));
        self.terminal.show_message(message).await
    }

    async fn show_context(&self, added: &AddedContext) -> Result<(), PortError> {
        self.terminal.show_context(added).await
    }

    async fn show_decision(&self, decided: &ReportedDecision) -> Result<(), PortError> {
        self.terminal.show_decision(decided).await
    }
}

/// Ignores a closed pipe; the exit code is the result.
fn ignore_closed_pipe(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

struct TaskResult {
    end: TurnEnd,
    usage: TaskUsage,
    /// An error while sealing the session or writing the answer.
    left: Result<()>,
}

impl TaskResult {
    fn without_session(end: TurnEnd) -> Self {
        let denials = matches!(end, TurnEnd::Denied(_)).into();
        Self { end, usage: TaskUsage { denials, ..TaskUsage::default() }, left: Ok(()) }
    }
}

/// The session of a task, and its use.
#[derive(Default)]
struct TaskUsage {
    /// None if no session started.
    session_id: Option<String>,
    tokens: u64,
    denials: u64,
}

impl TaskUsage {
    fn new(session: &Session, end: &TurnEnd) -> Self {
        // A response that was withheld is a denial of the turn, but not of an operation.
        let denials = session.denials().max(matches!(end, TurnEnd::Denied(_)).into());
        Self { session_id: Some(session.id().to_owned()), tokens: session.tokens(), denials }
    }

    /// Returns one line for the user.
    fn summary(&self, elapsed: Duration) -> String {
        let Self { session_id, tokens, denials } = self;
        let session =
            session_id.as_deref().map_or("no session".to_owned(), |id| format!("session {}", session_id::short(id)));
        let denials = if *denials == 0 { "no denials".to_owned() } else { counted(denials, "denial") };
        let tokens = counted(tokens, "token");
        format!("{session}: {tokens}, {:.1} s, {denials}", elapsed.as_secs_f64())
    }
}

async fn run_task(
    terminal_session: TerminalSession,
    screen: &Screen,
    cancel: &Cancel,
    task: &str,
) -> Result<TaskResult> {
    let TerminalSession { parts, observer, server } = terminal_session;
    let SessionParts { builder, policy, servers, .. } = parts;
    let served = server.map(|server| server.control(cancel, |_| ()));
    let session = match builder.start().await {
        Ok(session) => session,
        Err(error) => {
            if let Some(served) = served {
                served.close("error").await;
            }
            let end = match error {
                SessionError::Denied(refusal) => TurnEnd::Denied(refusal),
                SessionError::Interrupted => TurnEnd::Interrupted,
                error => return Err(error.into()),
            };
            report(screen, &end);
            return Ok(TaskResult::without_session(end));
        }
    };
    if let Some(served) = &served {
        served.started(&session);
    }
    let end = session.prompt(task).await;
    let shown = ignore_closed_pipe(observer.end_turn());
    report(screen, &end);
    if let Some(served) = served {
        served.close(end.status()).await;
    }
    let usage = TaskUsage::new(&session, &end);
    let left = end_session(session, &end, policy).await;
    drop(servers);
    let left = left.and(shown.context("the answer cannot be written to standard output"));
    Ok(TaskResult { end, usage, left })
}

/// Returns the reason for the end of a session after its only turn.
pub(super) fn end_reason(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::Answered(_) => "complete",
        TurnEnd::Interrupted => "user_exit",
        TurnEnd::Denied(_) | TurnEnd::Failed(_) => "error",
    }
}

async fn end_session(session: Session, end: &TurnEnd, policy: Policy) -> Result<()> {
    session.end(end_reason(end)).await?;
    policy.close().await?;
    Ok(())
}

fn read_task(given: Option<String>) -> Result<String> {
    let text = match given.as_deref() {
        Some("-") | None => {
            if given.is_none() && std::io::stdin().is_terminal() {
                return Err(usage("missing task; give one: amplifier run \"…\""));
            }
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("the task cannot be read from standard input")?;
            text
        }
        Some(text) => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(usage("empty task; give one: amplifier run \"…\""));
    }
    Ok(text)
}

/// Shows the reason for a missing answer.
pub fn report(screen: &Screen, end: &TurnEnd) {
    if !matches!(end, TurnEnd::Answered(_)) {
        screen.note(&end.text());
    }
}

/// Returns the exit code for the end of a turn.
pub fn exit_code(end: &TurnEnd) -> ExitCode {
    let exit = match end {
        TurnEnd::Answered(_) => Exit::Done,
        TurnEnd::Failed(_) => Exit::Failed,
        TurnEnd::Denied(_) => Exit::Denied,
        TurnEnd::Interrupted => Exit::Interrupted,
    };
    exit.into()
}

/// Returns the exit code of a task, which is refused if an operation was denied, even if the model answered.
fn task_exit_code(end: &TurnEnd, is_refused: bool) -> ExitCode {
    if is_refused && matches!(end, TurnEnd::Answered(_)) { Exit::Denied.into() } else { exit_code(end) }
}

/// Returns the result name. Unlike the name in events, it distinguishes a denial from a failure, like the exit code.
fn result_name(end: &TurnEnd, is_refused: bool) -> &'static str {
    match end {
        TurnEnd::Denied(_) => "refused",
        TurnEnd::Answered(_) if is_refused => "refused",
        _ => end.status(),
    }
}

#[cfg(test)]
mod tests {
    use amplifier_agent::Denial;

    use super::*;

    #[test]
    fn each_end_has_its_word_and_its_exit_code() {
        let refused = TurnEnd::Denied(Denial { by: "guard".into(), reason: "no".to_owned() });
        let check = |end: TurnEnd, is_refused, word, code| {
            let result = (result_name(&end, is_refused), task_exit_code(&end, is_refused));
            assert_eq!(result, (word, ExitCode::from(code)));
        };
        check(TurnEnd::Answered("42".to_owned()), false, "success", 0);
        check(TurnEnd::Answered("42".to_owned()), true, "refused", 3);
        check(TurnEnd::Failed("no network".to_owned()), true, "error", 1);
        check(refused, false, "refused", 3);
        check(TurnEnd::Interrupted, true, "interrupted", 130);
    }
}
