//! `amplifier hooks`: which hooks would run.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use amplifier_agent::tool::Workspace;
use amplifier_core::{Approval, HookInfo, HookRegistry, HookRole, OnError};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};

use crate::guards;

/// See which hooks stand around what.
#[derive(Args, Debug)]
pub struct Hooks {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// The hooks that would run, in running order
    List {
        /// Only those that hear this event
        event: Option<String>,
        /// Print JSON, one hook a line
        #[arg(long)]
        json: bool,
    },
}

impl Hooks {
    /// Runs the command.
    ///
    /// # Errors
    /// If the event's name is none.
    pub fn run(self) -> Result<ExitCode> {
        let Command::List { event, json } = self.command;
        let hooks = HookRegistry::new();
        guards::register(&hooks, Approval::TIMEOUT, Workspace::new(".")?);
        let listed = match &event {
            None => hooks.list_handlers(),
            Some(event) => match hooks.list_handlers_of(event.as_str()) {
                Ok(listed) => listed,
                Err(error) => bail!("{error}; `amplifier events` lists all events"),
            },
        };
        let mut out = std::io::stdout().lock();
        if json {
            for hook in &listed {
                writeln!(out, "{}", serde_json::to_string(hook)?)?;
            }
        } else if listed.is_empty() {
            writeln!(out, "No hook hears that.")?;
        } else {
            writeln!(out, "{}", table(&listed))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Hooks as a table.
pub fn table(hooks: &[HookInfo]) -> String {
    let mut text =
        format!("{:<20} {:<20} {:>8}  {:<8}  {:<8}  TIME LIMIT", "EVENT", "HOOK", "PRIORITY", "ROLE", "ON ERROR");
    for HookInfo { name, event, priority, role, on_error, timeout } in hooks {
        let role = match role {
            HookRole::Gate => "gate",
            HookRole::Observer => "observer",
        };
        let on_error = match on_error {
            OnError::Continue => "continue",
            OnError::Deny => "deny",
        };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{event:<20} {name:<20} {priority:>8}  {role:<8}  {on_error:<8}  {} s",
            timeout.as_secs_f64()
        );
    }
    text
}
