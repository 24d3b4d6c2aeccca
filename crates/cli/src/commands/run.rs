//! `amplifier run`: one task.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use amplifier_agent::{Cancel, CancelLevel, Session, SessionError, TurnEnd};
use amplifier_audit::Log;
use amplifier_core::HookRegistry;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::{self, Prepared};
use crate::config::{Config, Flags, usage};
use crate::home::Home;
use crate::serving::Reach;
use crate::terminal::{Look, Screen};
use crate::words::reasons;

/// Do one task, and end.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 the task was done, 1 something failed, 2 wrong usage, 3 a hook or a person refused, 130 it was \
                        interrupted.\n\nCtrl-C once lets the running tool finish, twice stops at once."
)]
pub struct Run {
    /// What to do; `-` or nothing reads it from standard input
    task: Option<String>,
    /// Print every event as one line of JSON, and how it ended as the last one
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Run {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no task, or no session.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        let config = Config::load(&self.flags, home)?;
        let task = task(self.task)?;
        let hooks = HookRegistry::new();
        let screen =
            if self.json { Screen::to(std::io::sink(), std::io::stderr(), Look::plain()) } else { Screen::new() };
        if self.json {
            hooks.hook("*").named("json").observer().priority(i64::MAX).run(|event| {
                let line = json!({ "event": event.name.as_str(), "data": event.data });
                // A reader that has gone away does not stop the agent: what it does is recorded all the same.
                let _ = writeln!(std::io::stdout().lock(), "{line}");
            })?;
        }
        let cancel = Cancel::default();
        stop_on_ctrl_c(&cancel, &screen);
        stop_when_told(&cancel)?;
        let reach = Reach::Socket { takes_prompts: false };
        let done = async {
            let prepared = tokio::select! {
                prepared = agent::prepare(&config, home, hooks, &screen, &cancel, &reach) => prepared?,
                // What was begun so far ends with the future.
                () = cancel.reached(CancelLevel::Graceful) => return Ok(Done::without_session(TurnEnd::Interrupted)),
            };
            one_turn(prepared, &screen, &cancel, &task).await
        };
        let done = done.await;
        if self.json {
            let line = match &done {
                Ok(Done { end, session_id, .. }) => {
                    json!({ "result": result(end), "text": end.text(), "session_id": session_id })
                }
                Err(error) => json!({ "result": "error", "text": reasons(error), "session_id": null }),
            };
            // Whether anybody reads it or not, the exit code tells how it ended.
            let _ = writeln!(std::io::stdout().lock(), "{line}");
        }
        let Done { end, left, .. } = done?;
        left.map(|()| exit_code(&end))
    }
}

/// What came of a task.
struct Done {
    end: TurnEnd,
    /// None if the session did not start.
    session_id: Option<String>,
    /// Whether the session left behind what it should: its record, and its answer.
    left: Result<()>,
}

impl Done {
    fn without_session(end: TurnEnd) -> Self {
        Self { end, session_id: None, left: Ok(()) }
    }
}

/// Starts a session, does the task, and ends the session.
async fn one_turn(prepared: Prepared, screen: &Screen, cancel: &Cancel, task: &str) -> Result<Done> {
    let Prepared { builder, watcher, log, servers, serving } = prepared;
    let served = serving.map(|serving| serving.obey(cancel));
    let session = match builder.start().await {
        Ok(session) => session,
        Err(error) => {
            if let Some(served) = served {
                served.bye("error").await;
            }
            let end = match error {
                SessionError::Refused(refusal) => TurnEnd::Refused(refusal),
                SessionError::Interrupted => TurnEnd::Interrupted,
                error => return Err(error.into()),
            };
            report(screen, &end);
            return Ok(Done::without_session(end));
        }
    };
    let id = session.id().to_owned();
    if let Some(served) = &served {
        served.started(&session);
    }
    let end = session.prompt(task).await;
    let shown = watcher.end_turn();
    report(screen, &end);
    if let Some(served) = served {
        served.bye(end.status()).await;
    }
    let left = finish(session, &end, log).await;
    drop(servers);
    let left = left.and(shown.context("the answer cannot be written to standard output"));
    Ok(Done { end, session_id: Some(id), left })
}

/// Ends the session, and its record.
async fn finish(session: Session, end: &TurnEnd, log: Log) -> Result<()> {
    let reason = match end {
        TurnEnd::Answered(_) => "complete",
        TurnEnd::Interrupted => "user_exit",
        TurnEnd::Refused(_) | TurnEnd::Failed(_) => "error",
    };
    session.end(reason).await?;
    log.close().context("the audit log")
}

fn task(given: Option<String>) -> Result<String> {
    let text = match given.as_deref() {
        Some("-") | None => {
            if given.is_none() && std::io::stdin().is_terminal() {
                return Err(usage("there is no task; please say what to do: amplifier run \"…\""));
            }
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("the task cannot be read from standard input")?;
            text
        }
        Some(text) => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(usage("the task is empty; please say what to do: amplifier run \"…\""));
    }
    Ok(text)
}

/// Says what the person has not seen yet: why there is no answer.
pub fn report(screen: &Screen, end: &TurnEnd) {
    if !matches!(end, TurnEnd::Answered(_)) {
        screen.note(&end.text());
    }
}

/// The exit code for the end of a turn.
pub fn exit_code(end: &TurnEnd) -> ExitCode {
    match end {
        TurnEnd::Answered(_) => ExitCode::SUCCESS,
        TurnEnd::Failed(_) => ExitCode::from(1),
        TurnEnd::Refused(_) => ExitCode::from(3),
        TurnEnd::Interrupted => ExitCode::from(130),
    }
}

/// The word for the end of a turn. Unlike the one in events, it tells a refusal from a failure, as the exit code does.
fn result(end: &TurnEnd) -> &'static str {
    if matches!(end, TurnEnd::Refused(_)) { "refused" } else { end.status() }
}

/// From now on, Ctrl-C stops the turn, and not the program.
pub fn stop_on_ctrl_c(cancel: &Cancel, screen: &Screen) {
    let (cancel, screen) = (cancel.clone(), screen.clone());
    // Listened for at once and all the time, so that no second one is missed while the first is dealt with.
    let mut interrupts = match signal(SignalKind::interrupt()) {
        Ok(interrupts) => interrupts,
        Err(error) => return screen.note(&format!("Ctrl-C ends the program at once: {error}")),
    };
    tokio::spawn(async move {
        while interrupts.recv().await.is_some() {
            match cancel.request() {
                CancelLevel::Immediate => screen.note("stopping now"),
                _ => screen.note("stopping when the running tool has finished; Ctrl-C again stops it now"),
            }
        }
    });
}

/// How long the program may take to end in order once it is told to.
const GRACE: Duration = Duration::from_secs(5);

/// From now on, the turn is stopped at once when the program is told to end or the terminal goes away: what a tool has begun ends with
/// it, and the record has an end.
///
/// # Errors
/// If the system does not let it listen.
pub fn stop_when_told(cancel: &Cancel) -> Result<()> {
    let cancel = cancel.clone();
    let told = told_to_end()?;
    tokio::spawn(async move {
        told.await;
        // The second time is at once.
        cancel.request();
        cancel.request();
        tokio::time::sleep(GRACE).await;
        // Something does not let go, such as a keyboard that is no longer there. The record then says that the session has no end.
        std::process::exit(130);
    });
    Ok(())
}

/// Listens from now on for the program being told to end (SIGTERM), or its terminal going away (SIGHUP).
///
/// # Errors
/// If the system does not let it listen.
pub fn told_to_end() -> Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    // Started with `nohup`, it is to go on.
    let mut hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
    Ok(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => _ = hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            () = hung_up => {}
        }
    })
}

/// Whether whoever started the program wants it to outlive its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

#[cfg(test)]
mod tests {
    use amplifier_agent::Refusal;

    use super::*;

    #[test]
    fn each_end_has_its_word_and_its_exit_code() {
        let refused = TurnEnd::Refused(Refusal { by: "guard".into(), reason: "no".to_owned() });
        let check =
            |end: TurnEnd, word, code| assert_eq!((result(&end), exit_code(&end)), (word, ExitCode::from(code)));
        check(TurnEnd::Answered("42".to_owned()), "success", 0);
        check(TurnEnd::Failed("no network".to_owned()), "error", 1);
        check(refused, "refused", 3);
        check(TurnEnd::Interrupted, "interrupted", 130);
    }
}
