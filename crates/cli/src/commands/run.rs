//! `amplifier run`: one task.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

use amplifier_agent::{Cancel, CancelLevel, Session, TurnEnd};
use amplifier_core::HookRegistry;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use crate::agent::{self, Prepared};
use crate::config::{Config, Flags};
use crate::home::Home;
use crate::terminal::{Look, Screen};

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
        let Prepared { builder, log, servers } = agent::prepare(&config, home, hooks, &screen, &cancel).await?;
        let session = builder.start().await?;
        let id = session.id().to_owned();
        stop_on_ctrl_c(&cancel, &screen);
        let end = session.prompt(&task).await;
        finish(session, &end).await?;
        drop(servers);
        log.close().context("the audit log")?;
        report(&screen, &end);
        if self.json {
            let line = json!({ "result": end.status(), "text": end.text(), "session_id": id });
            writeln!(std::io::stdout().lock(), "{line}")?;
        }
        Ok(exit_code(&end))
    }
}

fn task(given: Option<String>) -> Result<String> {
    let text = match given.as_deref() {
        Some("-") | None => {
            if given.is_none() && std::io::stdin().is_terminal() {
                bail!("there is no task; please say what to do: amplifier run \"…\"");
            }
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("the task cannot be read from standard input")?;
            text
        }
        Some(text) => text.to_owned(),
    };
    if text.trim().is_empty() {
        bail!("the task is empty");
    }
    Ok(text)
}

/// Ends a session after its last turn.
///
/// # Errors
/// If its record cannot be sealed.
pub async fn finish(session: Session, end: &TurnEnd) -> Result<()> {
    let reason = match end {
        TurnEnd::Answered(_) => "complete",
        TurnEnd::Interrupted => "user_exit",
        TurnEnd::Refused(_) | TurnEnd::Failed(_) => "error",
    };
    Ok(session.end(reason).await?)
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

/// From now on, Ctrl-C stops the turn, and not the program.
pub fn stop_on_ctrl_c(cancel: &Cancel, screen: &Screen) {
    let (cancel, screen) = (cancel.clone(), screen.clone());
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            match cancel.request() {
                CancelLevel::Immediate => screen.note("stopping now"),
                _ => screen.note("stopping when the running tool has finished; Ctrl-C again stops it now"),
            }
        }
    });
}
