//! `amplifier approvals`: open requests and approval rules.

mod open_requests;
mod watch;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_core::{ApprovalRule, DefaultDecision, RuleScope};
use amplifier_host::guards::CONFIRM;
use amplifier_host::{ApprovalRuleStore, Home, RuleFile, is_operation, open_log, quoted_path};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

pub use self::watch::Watch;
use crate::errors::reasons;
use crate::flags::Flags;
use crate::terminal::{EscapeMode, visible};
use crate::user::terminal_actor;

/// Answer open approval requests; add, list, explain and revoke approval rules
///
/// Approval rules are stored in `approvals.json` next to the configuration file, as `"HOOK:PATTERN": "allow"` or `"deny"`. The pattern is
/// compared with the whole prompt, and `*` matches any text. A rule about an operation, such as `run cargo test *` or `write src/**`, is stored
/// as `"HOOK": {"OPERATION": "allow"}`. If several rules match, deny wins. Rules for a single project are stored in `projects/` there.
#[derive(Args, Debug)]
pub struct Approvals {
    /// The command.
    #[command(subcommand)]
    pub command: ApprovalsCommand,
}

/// A command about open requests or about rules.
#[derive(Subcommand, Debug)]
pub enum ApprovalsCommand {
    /// `watch`.
    #[command(name = "watch")]
    Watch(Watch),
    /// A command about rules.
    #[command(flatten)]
    Rules(Command),
}

/// A command about rules.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// List all approval rules
    List {
        /// Print JSON, one rule per line
        #[arg(long)]
        json: bool,
    },
    /// Add approval rules, and explain what they answer
    Add {
        /// Answer [possible values: allow, deny]
        decision: DefaultDecision,
        /// Rules, each as `HOOK:PATTERN`
        #[arg(required_unless_present = "operation", value_name = "RULE")]
        rules: Vec<String>,
        /// Operation, such as `run cargo test *` or `write src/**`; several times for several
        #[arg(long, value_name = "OPERATION")]
        operation: Vec<String>,
        /// Hook whose requests about the operations are answered
        #[arg(long, value_name = "HOOK", default_value = CONFIRM, requires = "operation")]
        hook: String,
        /// Project that the rules are for [default: all projects]
        #[arg(long, value_name = "FOLDER")]
        project: Option<PathBuf>,
        /// Configuration file
        #[arg(long, env = "AMPLIFIER_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print JSON, one rule per line
        #[arg(long)]
        json: bool,
    },
    /// Explain which approval requests a rule answers, or would allow if it were added
    Explain {
        /// Rule as shown by `list`, its number there, or a rule that does not exist yet
        rule: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke an approval rule
    Revoke {
        /// Rule as shown by `list`, or its number there
        rule: String,
        /// Print JSON, one rule per line
        #[arg(long)]
        json: bool,
        /// Configuration file
        #[arg(long, env = "AMPLIFIER_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// If a rule file cannot be read or written, or the rule is not found.
    pub fn run(self, home: &Home) -> Result<ExitCode> {
        let (rules, unreadable) = read_rules(home);
        let mut out = std::io::stdout().lock();
        match self {
            Command::List { json: true } => {
                for rule in &rules {
                    writeln!(out, "{}", to_json(rule))?;
                }
            }
            Command::List { json: false } if rules.is_empty() && unreadable.is_empty() => {
                let file = home.approval_rule_file();
                writeln!(out, "No approval rules (`{}`).", file.display())?;
            }
            Command::List { json: false } => {
                for (number, rule) in rules.iter().enumerate() {
                    let place = rule.project.as_ref();
                    let place = place.map(|project| format!("  (in {})", visible(project, EscapeMode::Exact)));
                    let text = visible(&rule.file_key(), EscapeMode::Exact);
                    let decision = rule.decision.as_str();
                    writeln!(out, "{:>3}  {decision:<5}  {text}{}", number + 1, place.unwrap_or_default())?;
                }
            }
            Command::Add { decision, rules, operation, hook, project, config, json } => {
                let project = project.map(|folder| folder.canonicalize().with_context(|| quoted_path(&folder)));
                let project = project.transpose()?;
                // All are checked before any is added.
                let prompts = rules.iter().map(|rule| {
                    let parsed = rule.split_once(':').map(|(hook, pattern)| ApprovalRule::new(hook, pattern, decision));
                    checked(rule, parsed, project.as_deref())
                });
                let operations = operation.iter().map(|operation| {
                    checked(
                        operation,
                        Some(ApprovalRule::for_operation(&*hook, &**operation, decision)),
                        project.as_deref(),
                    )
                });
                let rules: Vec<ApprovalRule> = prompts.chain(operations).collect::<Result<_>>()?;
                let log = open_log(&Flags { config, ..Flags::default() }.load(home)?, home)?;
                let store = ApprovalRuleStore::new(home.clone(), log.clone());
                for rule in &rules {
                    let is_new = store.add(rule)?;
                    if json {
                        let mut line = to_json(rule);
                        line["added"] = is_new.into();
                        line["explanation"] = rule.explanation().into();
                        writeln!(out, "{line}")?;
                    } else {
                        writeln!(out, "{} {}", if is_new { "Added." } else { "Exists already." }, explain(rule))?;
                        let is_prompt = rule.operation.is_none() && !rule.pattern.contains('*');
                        if is_prompt && rule.decision == DefaultDecision::Allow {
                            writeln!(out, "If the prompt names no command or file, the rule allows every one.")?;
                        }
                    }
                }
                log.close().context("the audit log")?;
                return Ok(ExitCode::SUCCESS);
            }
            Command::Explain { rule, json } => {
                let found = find_rule(&rules, &unreadable, &rule);
                let possible = if found.is_err() { possible_rule(&rules, &rule) } else { None };
                let (explained, exists) = match &possible {
                    Some(possible) => (possible, false),
                    None => (found?, true),
                };
                if json {
                    let mut line = to_json(explained);
                    line["exists"] = exists.into();
                    line["explanation"] = explained.explanation().into();
                    writeln!(out, "{line}")?;
                } else if exists {
                    writeln!(out, "{}", explain(explained))?;
                } else {
                    writeln!(out, "There is no such rule. If you add it as `allow`: {}", explain(explained))?;
                }
            }
            Command::Revoke { rule, json, config } => {
                let found = find_rule(&rules, &unreadable, &rule)?;
                let name = found.file_key();
                // A rule with both decisions in one file is revoked as a whole, so that a denial does not become a permission.
                let meant =
                    rules.iter().filter(|known| (&known.project, known.file_key()) == (&found.project, name.clone()));
                let log = open_log(&Flags { config, ..Flags::default() }.load(home)?, home)?;
                let store = ApprovalRuleStore::new(home.clone(), log.clone());
                for rule in meant {
                    let is_revoked = store.revoke(rule, &terminal_actor())?;
                    if json {
                        let mut line = to_json(rule);
                        line["revoked"] = is_revoked.into();
                        writeln!(out, "{line}")?;
                    }
                }
                log.close().context("the audit log")?;
                if !json {
                    writeln!(out, "Revoked `{name}`.")?;
                }
                return Ok(ExitCode::SUCCESS);
            }
        }
        // Readable rules are shown before the error.
        if !unreadable.is_empty() {
            bail!("{}", unreadable.join("; "));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Finds a rule by its text, or by its number in `list`.
fn find_rule<'a>(rules: &'a [ApprovalRule], unreadable: &[String], rule: &str) -> Result<&'a ApprovalRule> {
    let by_number = rule.parse::<usize>().ok().and_then(|number| rules.get(number.checked_sub(1)?));
    let is_meant = |known: &&ApprovalRule| known.file_key() == rule || known.operation.as_deref() == Some(rule);
    let by_text: Vec<&ApprovalRule> = rules.iter().filter(is_meant).collect();
    let place = |rule: &ApprovalRule| (rule.project.clone(), rule.file_key());
    let found = match &by_text[..] {
        [] => by_number,
        [first, others @ ..] if others.iter().all(|other| place(other) == place(first)) => Some(*first),
        _ => bail!("approval rule `{rule}` is there several times; give its number from `amplifier approvals list`"),
    };
    found.with_context(|| {
        let unread: String = unreadable.iter().map(|why| format!("; {why}")).collect();
        format!("unknown approval rule `{rule}`; see `amplifier approvals list`{unread}")
    })
}

/// Returns the rule that a text would be if it were added; `None` if it is no rule, or is ambiguous because it exists.
fn possible_rule(rules: &[ApprovalRule], text: &str) -> Option<ApprovalRule> {
    let (first, rest) = text.split_once(' ').unwrap_or_default();
    let rule = if is_operation(text) {
        ApprovalRule::for_operation(CONFIRM, text, DefaultDecision::Allow)
    } else if is_operation(rest) && !first.contains(':') {
        ApprovalRule::for_operation(first, rest, DefaultDecision::Allow)
    } else {
        let (hook, pattern) = text.split_once(':')?;
        ApprovalRule::new(hook, pattern, DefaultDecision::Allow)
    };
    let exists = rules.iter().any(|known| known.file_key() == rule.file_key());
    (rule.check().is_ok() && !exists).then_some(rule)
}

fn checked(text: &str, parsed: Option<ApprovalRule>, project: Option<&Path>) -> Result<ApprovalRule> {
    let parsed = parsed.with_context(|| format!("invalid approval rule `{text}`; expected HOOK:PATTERN"))?;
    parsed.check().with_context(|| format!("invalid approval rule `{text}`"))?;
    let scope = if project.is_some() { RuleScope::Project } else { RuleScope::User };
    let project = project.map(|project| project.to_string_lossy().into_owned());
    Ok(ApprovalRule { scope, project, by: Some(terminal_actor()), ..parsed })
}

/// Returns a rule as a line of `--json`, the same for all commands.
fn to_json(rule: &ApprovalRule) -> Value {
    let ApprovalRule { project, decision, scope, operation, .. } = rule;
    let mut line = json!({ "rule": rule.file_key(), "decision": decision, "scope": scope, "project": project });
    if let Some(operation) = operation {
        line["operation"] = operation.as_str().into();
    }
    line
}

fn explain(rule: &ApprovalRule) -> String {
    visible(&rule.explanation(), EscapeMode::Exact)
}

/// Reads all rules, the user's first, and the errors of unreadable files.
fn read_rules(home: &Home) -> (Vec<ApprovalRule>, Vec<String>) {
    let (mut rules, mut unreadable) = (Vec::new(), Vec::new());
    for (file, read) in RuleFile::read_all(home) {
        match read.with_context(|| quoted_path(&file)) {
            Ok(file) => rules.extend(file.rules),
            Err(error) => unreadable.push(reasons(&error)),
        }
    }
    (rules, unreadable)
}
