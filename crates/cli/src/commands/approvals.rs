//! `amplifier approvals`: the person's standing answers.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use amplifier_core::ApprovalRules;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::home::Home;
use crate::terminal::{Reading, visible};

/// See and take back standing answers.
///
/// They stand in `approvals.json` beside the configuration file, as `"HOOK:PATTERN": "allow"` or `"deny"`. The pattern is compared with the
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
            Command::List { json: true } => writeln!(out, "{}", serde_json::to_string(&rules)?)?,
            Command::List { json: false } if rules.0.is_empty() => {
                writeln!(out, "There are no standing answers. They would stand in `{}`.", file.display())?;
            }
            Command::List { json: false } => {
                for (number, (rule, decision)) in rules.0.iter().enumerate() {
                    let rule = visible(rule, Reading::Exact);
                    writeln!(out, "{:>3}  {:<5}  {rule}", number + 1, decision)?;
                }
            }
            Command::Revoke { rule } => {
                let by_number = rule.parse::<usize>().ok().and_then(|number| rules.0.get(number.checked_sub(1)?));
                let by_text = rules.0.iter().find(|(known, _)| *known == rule);
                let known = by_text.or(by_number).map(|(known, _)| known.clone());
                let Some(known) = known else {
                    bail!("there is no standing answer `{rule}`; `amplifier approvals list` shows those there are");
                };
                // The others stay in the order that the person gave them.
                let left = Rules(rules.0.into_iter().filter(|(rule, _)| *rule != known).collect());
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

/// The rules as they stand in the file: one that stands twice, once with each answer, counts as both.
struct Rules(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Rules;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of rules")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rules, A::Error> {
                let mut rules = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    rules.push(entry);
                }
                Ok(Rules(rules))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(rule, decision)| (rule, decision)))
    }
}

fn read(file: &Path) -> Result<Rules> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Rules(Vec::new())),
        Err(error) => return Err(error).with_context(|| format!("`{}`", file.display())),
    };
    ApprovalRules::from_json(&text).with_context(|| format!("`{}`", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}
