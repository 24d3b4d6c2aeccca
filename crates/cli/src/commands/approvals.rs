//! `amplifier approvals`: the person's standing answers.

use std::io::Write;
use std::process::ExitCode;

use amplifier_core::{ApprovalRules, Map};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::home::Home;

/// See and take back standing answers.
///
/// They stand in `approvals.json` beside the configuration file, as "<hook>:<pattern>": "allow" or "deny". The pattern is compared with the
/// whole question, and `*` stands for any text. Where several match, deny wins. "Allow always" in a session lasts for that session
/// and is not written there.
#[derive(Args, Debug)]
pub struct Approvals {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// All standing answers
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a standing answer back
    Revoke {
        /// The rule, as `list` shows it; or its number there
        rule: String,
    },
}

impl Approvals {
    /// Runs the command.
    ///
    /// # Errors
    /// If the answers cannot be read or written, or there is no such rule.
    pub fn run(self, home: &Home) -> Result<ExitCode> {
        let file = home.approval_rules();
        let rules = read(&file)?;
        let mut out = std::io::stdout().lock();
        match self.command {
            Command::List { json: true } => writeln!(out, "{}", json!(rules))?,
            Command::List { json: false } if rules.is_empty() => {
                writeln!(out, "There are no standing answers. They would stand in `{}`.", file.display())?;
            }
            Command::List { json: false } => {
                for (number, (rule, decision)) in rules.iter().enumerate() {
                    writeln!(out, "{:>3}  {:<5}  {rule}", number + 1, decision.as_str().unwrap_or_default())?;
                }
            }
            Command::Revoke { rule } => {
                let by_number = rule.parse::<usize>().ok().and_then(|number| rules.keys().nth(number.checked_sub(1)?));
                let known = rules.contains_key(&rule).then_some(&rule).or(by_number).cloned();
                let Some(known) = known else {
                    bail!("there is no standing answer `{rule}`; `amplifier approvals list` shows those there are");
                };
                // The others stay in the order that the person gave them.
                let left: Map = rules.into_iter().filter(|(rule, _)| *rule != known).collect();
                // Where a link leads to, so that the link stays.
                let file = file.canonicalize()?;
                // Whole or not at all: a file that is cut off could no longer be read, and then nothing would run.
                let folder = file.parent().context("the configuration has no folder")?;
                let mut new = tempfile::NamedTempFile::new_in(folder)?;
                new.write_all(serde_json::to_string_pretty(&left)?.as_bytes())?;
                new.as_file().sync_all()?;
                new.persist(&file)?;
                writeln!(out, "`{known}` is taken back.")?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn read(file: &std::path::Path) -> Result<Map> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(error).with_context(|| format!("`{}`", file.display())),
    };
    ApprovalRules::from_json(&text).with_context(|| format!("`{}`", file.display()))?;
    match serde_json::from_str(&text)? {
        Value::Object(rules) => Ok(rules),
        _ => bail!("`{}` holds no rules", file.display()),
    }
}
