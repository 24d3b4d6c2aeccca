//! `amplifier approvals`: approval rules.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_core::{ApprovalRule, DefaultDecision, RuleScope};
use amplifier_host::{ApprovalRuleStore, Home, RuleFile, open_log, quoted_path, rule_from_entry};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::errors::reasons;
use crate::flags::Flags;
use crate::terminal::{EscapeMode, visible};
use crate::user::terminal_actor;

/// Add, list, explain and revoke approval rules
///
/// Approval rules are stored in `approvals.json` next to the configuration file, as `"HOOK:PATTERN": "allow"` or `"deny"`. The pattern is
/// compared with the whole prompt, and `*` matches any text. If several rules match, deny wins. Rules for a single project are stored in
/// `projects/` there. "Allow always" in a session lasts for that session and is not stored.
#[derive(Args, Debug)]
pub struct Approvals {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
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
        #[arg(required = true, value_name = "RULE")]
        rules: Vec<String>,
        /// Project that the rules are for [default: all projects]
        #[arg(long, value_name = "FOLDER")]
        project: Option<PathBuf>,
        /// Configuration file
        #[arg(long, env = "AMPLIFIER_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Explain which approval requests a rule answers
    Explain {
        /// Rule as shown by `list`, or its number there
        rule: String,
    },
    /// Revoke an approval rule
    Revoke {
        /// Rule as shown by `list`, or its number there
        rule: String,
        /// Configuration file
        #[arg(long, env = "AMPLIFIER_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

impl Approvals {
    /// Runs the command.
    ///
    /// # Errors
    /// If a rule file cannot be read or written, or the rule is not found.
    pub fn run(self, home: &Home) -> Result<ExitCode> {
        let (rules, unreadable) = read_rules(home);
        let mut out = std::io::stdout().lock();
        match self.command {
            Command::List { json: true } => {
                for StoredRule { project, rule, decision } in &rules {
                    let project = project.as_ref().map(|project| project.to_string_lossy());
                    let scope = if project.is_some() { RuleScope::Project } else { RuleScope::User };
                    let line = json!({ "rule": rule, "decision": decision, "scope": scope, "project": project });
                    writeln!(out, "{line}")?;
                }
            }
            Command::List { json: false } if rules.is_empty() && unreadable.is_empty() => {
                let file = home.approval_rules();
                writeln!(out, "No approval rules (`{}`).", file.display())?;
            }
            Command::List { json: false } => {
                for (number, StoredRule { project, rule, decision }) in rules.iter().enumerate() {
                    let rule = visible(rule, EscapeMode::Exact);
                    let place = project.as_ref().map(|project| {
                        let project = project.display().to_string();
                        format!("  (in {})", visible(&project, EscapeMode::Exact))
                    });
                    writeln!(out, "{:>3}  {:<5}  {rule}{}", number + 1, decision, place.unwrap_or_default())?;
                }
            }
            Command::Add { decision, rules, project, config } => {
                let project = project.map(|folder| folder.canonicalize().with_context(|| quoted_path(&folder)));
                let project = project.transpose()?;
                // All are checked before any is added.
                let rules: Vec<ApprovalRule> =
                    rules.iter().map(|rule| parse_rule(project.as_deref(), rule, decision)).collect::<Result<_>>()?;
                let log = open_log(&Flags { config, ..Flags::default() }.load(home)?, home)?;
                let store = ApprovalRuleStore::new(home.clone(), log.clone());
                for rule in &rules {
                    let is_new = store.add(rule)?;
                    writeln!(out, "{} {}", if is_new { "Added." } else { "Exists already." }, explain(rule))?;
                }
                log.close().context("the audit log")?;
                return Ok(ExitCode::SUCCESS);
            }
            Command::Explain { rule } => {
                let StoredRule { project, rule, decision } = find_rule(&rules, &unreadable, &rule)?;
                let decision = decision.parse()?;
                writeln!(out, "{}", explain(&parse_rule(project.as_deref(), rule, decision)?))?;
            }
            Command::Revoke { rule, config } => {
                let StoredRule { project, rule: name, .. } = find_rule(&rules, &unreadable, &rule)?;
                // A rule with both decisions in one file is revoked as a whole, so that a denial does not become a permission.
                let meant = rules.iter().filter(|known| (&known.project, &known.rule) == (project, name));
                let log = open_log(&Flags { config, ..Flags::default() }.load(home)?, home)?;
                let store = ApprovalRuleStore::new(home.clone(), log.clone());
                for StoredRule { project, rule, decision } in meant {
                    let rule = rule_from_entry(project.as_deref(), rule, decision)
                        .context("invalid approval rule: missing hook")?;
                    store.revoke(&rule, &terminal_actor())?;
                }
                log.close().context("the audit log")?;
                writeln!(out, "Revoked `{name}`.")?;
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
fn find_rule<'a>(rules: &'a [StoredRule], unreadable: &[String], rule: &str) -> Result<&'a StoredRule> {
    let by_number = rule.parse::<usize>().ok().and_then(|number| rules.get(number.checked_sub(1)?));
    let by_text: Vec<&StoredRule> = rules.iter().filter(|known| known.rule == rule).collect();
    let found = match &by_text[..] {
        [] => by_number,
        [first, others @ ..] if others.iter().all(|other| other.project == first.project) => Some(*first),
        _ => bail!("approval rule `{rule}` is in several files; give its number from `amplifier approvals list`"),
    };
    found.with_context(|| {
        let unread: String = unreadable.iter().map(|why| format!("; {why}")).collect();
        format!("unknown approval rule `{rule}`; see `amplifier approvals list`{unread}")
    })
}

fn parse_rule(project: Option<&Path>, rule: &str, decision: DefaultDecision) -> Result<ApprovalRule> {
    let parsed = rule_from_entry(project, rule, decision.as_str());
    let parsed = parsed.with_context(|| format!("invalid approval rule `{rule}`; expected HOOK:PATTERN"))?;
    parsed.check().with_context(|| format!("invalid approval rule `{rule}`"))?;
    Ok(ApprovalRule { by: Some(terminal_actor()), ..parsed })
}

fn explain(rule: &ApprovalRule) -> String {
    visible(&rule.explanation(), EscapeMode::Exact)
}

struct StoredRule {
    project: Option<PathBuf>,
    rule: String,
    decision: String,
}

/// Reads all rules, the user's first, and the errors of unreadable files.
fn read_rules(home: &Home) -> (Vec<StoredRule>, Vec<String>) {
    let (mut rules, mut unreadable) = (Vec::new(), Vec::new());
    for (file, read) in RuleFile::read_all(home) {
        match read.with_context(|| quoted_path(&file)) {
            Ok(RuleFile { project, rules: entries, .. }) => {
                rules.extend(entries.into_iter().map(|(rule, decision)| StoredRule {
                    project: project.clone(),
                    rule,
                    decision,
                }))
            }
            Err(error) => unreadable.push(reasons(&error)),
        }
    }
    (rules, unreadable)
}
