//! `amplifier hooks`: which hooks would run, and what they would do.

use std::fmt::Write as _;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_agent::tool::Workspace;
use amplifier_core::{Approval, Decision, HookInfo, HookRegistry, HookRole, Map, OnError, Outcome};
use amplifier_modules::Starter;
use amplifier_modules::bundle::{Case, Expected};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::agent::register_bundle;
use crate::config::{Config, Flags};
use crate::guards;
use crate::home::Home;
use crate::terminal::{Reading, visible};

/// See which hooks stand around what, and try them before you trust them.
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
        #[command(flatten)]
        flags: Flags,
    },
    /// Look for mistakes in a bundle
    Validate {
        /// The bundle [default: the one that is configured]
        file: Option<PathBuf>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Run the tests of a bundle
    #[command(after_help = "Exit codes: 0 all tests passed, 1 one did not, or something else is wrong.")]
    Test {
        /// The bundle [default: the one that is configured]
        file: Option<PathBuf>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Write hooks that work, to begin with
    New {
        /// What they are made of
        kind: Kind,
        /// Where to; it is made if it is not there
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Show, hook by hook, what would come of an event
    Try {
        /// The event
        event: String,
        /// Its data: JSON, or @FILE
        #[arg(long, default_value = "{}")]
        data: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Flags,
    },
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Kind {
    /// Rules: no programming
    Rule,
    /// A program that is run for each event
    Command,
    /// A program that is kept running, in Python
    Worker,
}

impl Hooks {
    /// Runs the command.
    ///
    /// # Errors
    /// If the event's name is none, or there is a mistake in the bundle.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        match self.command {
            Command::List { event, json, flags } => list(&Config::load(&flags, home)?, event.as_deref(), json),
            Command::Validate { file, flags } => {
                let config = Config::load(&flags, home)?;
                let file = chosen(file, &config)?;
                let bundle = register_bundle(&file, &config.workspace, &HookRegistry::new())?;
                let (hooks, files) = (bundle.hooks.len(), bundle.files.len());
                writeln!(std::io::stdout(), "{}: {hooks} hooks in {files} files, no mistakes", file.display())?;
                Ok(ExitCode::SUCCESS)
            }
            Command::Test { file, flags } => {
                let config = Config::load(&flags, home)?;
                test(&chosen(file, &config)?, &config.workspace).await
            }
            Command::New { kind, folder } => begin(kind, &folder),
            Command::Try { event, data, json, flags } => {
                let config = Config::load(&flags, home)?;
                try_out(&registered(&config)?, &event, read(&data)?, json).await
            }
        }
    }
}

fn chosen(given: Option<PathBuf>, config: &Config) -> Result<PathBuf> {
    given.or_else(|| config.bundle.clone()).context("there is no bundle; please name one: --bundle FILE")
}

/// The hooks that a session would have.
fn registered(config: &Config) -> Result<HookRegistry> {
    let hooks = HookRegistry::new();
    if let Some(bundle) = &config.bundle {
        register_bundle(bundle, &config.workspace, &hooks)?;
    }
    guards::register(&hooks, Approval::TIMEOUT, Workspace::new(&config.workspace)?);
    Ok(hooks)
}

fn list(config: &Config, event: Option<&str>, json: bool) -> Result<ExitCode> {
    let hooks = registered(config)?;
    let listed = match event {
        None => hooks.list_handlers(),
        Some(event) => match hooks.list_handlers_of(event) {
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

/// Runs every test of a bundle on the hooks of the bundle alone.
async fn test(file: &Path, workspace: &Path) -> Result<ExitCode> {
    let hooks = HookRegistry::new();
    let bundle = register_bundle(file, workspace, &hooks)?;
    let mut out = std::io::stdout().lock();
    let mut failed = 0;
    for (_, case) in &bundle.tests {
        let Case { name, event, data, expect } = case;
        let outcome = hooks.emit(event.as_str(), data.clone()).await?;
        let differences = differences(expect, &outcome);
        let verdict = if differences.is_empty() { "ok" } else { "FAILED" };
        writeln!(out, "test {} ... {verdict}", visible(name, Reading::Exact))?;
        for difference in &differences {
            writeln!(out, "    {}", visible(difference, Reading::Exact))?;
        }
        failed += usize::from(!differences.is_empty());
    }
    let passed = bundle.tests.len() - failed;
    writeln!(out, "\n{passed} passed; {failed} failed")?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What came of an event and was not expected.
fn differences(expected: &Expected, outcome: &Outcome) -> Vec<String> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, expected: &str, found: &str| {
        if expected != found {
            differences.push(format!("{what}: expected `{expected}`, found `{found}`"));
        }
    };
    if let Some(decision) = &expected.decision {
        compare("decision", decision, outcome.decision.as_str());
    }
    let (by, says) = said(outcome);
    if let Some(wanted) = &expected.by {
        compare("by", wanted, &by);
    }
    for (pointer, wanted) in &expected.data {
        let found = outcome.data.pointer(pointer).cloned().unwrap_or_default();
        compare(pointer, &wanted.to_string(), &found.to_string());
    }
    if let Some(wanted) = &expected.says
        && !says.contains(wanted.as_str())
    {
        differences.push(format!("says: expected something with `{wanted}`, found `{says}`"));
    }
    differences
}

/// Who decided, and in which words.
fn said(outcome: &Outcome) -> (String, String) {
    match &outcome.decision {
        Decision::Deny(denial) => (denial.by.to_string(), denial.reason().to_owned()),
        Decision::AskUser => outcome
            .approvals()
            .first()
            .map(|asked| (asked.hook.to_string(), asked.said.prompt.clone()))
            .unwrap_or_default(),
        Decision::InjectContext => {
            outcome.injections().first().map(|told| (told.hook.to_string(), told.said.text.clone())).unwrap_or_default()
        }
        Decision::Modify | Decision::Continue => Default::default(),
    }
}

/// Shows what would come of an event. Nobody is asked, and nothing runs but the hooks.
async fn try_out(hooks: &HookRegistry, event: &str, data: Map, json: bool) -> Result<ExitCode> {
    let outcome =
        hooks.emit(event, data).await.map_err(|error| anyhow!("{error}; `amplifier events` lists all events"))?;
    let (by, says) = said(&outcome);
    let mut out = std::io::stdout().lock();
    if json {
        let reports: Vec<Value> = outcome.reports().map(|report| {
            let error = report.error.map(ToString::to_string);
            json!({ "hook": report.hook, "answer": report.answer_or_failure(), "took_us": report.took.as_micros() as u64, "error": error })
        }).collect();
        let line = json!({ "decision": outcome.decision.as_str(), "by": by, "says": says, "data": outcome.data, "hooks": reports });
        writeln!(out, "{line}")?;
        return Ok(ExitCode::SUCCESS);
    }
    for report in outcome.reports() {
        let why = report.error.map(ToString::to_string).or(report.reason.map(str::to_owned)).unwrap_or_default();
        let took = format!("{:.1?}", report.took);
        writeln!(
            out,
            "{:<24} {:<15} {took:>9}  {}",
            visible(report.hook, Reading::Exact),
            report.answer_or_failure(),
            visible(&why, Reading::Exact)
        )?;
    }
    let by = if by.is_empty() { String::new() } else { format!(" by {by}: {says}") };
    writeln!(out, "\n{}{}", outcome.decision.as_str(), visible(&by, Reading::Exact))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes hooks to begin with. Nothing that is there is written over.
fn begin(kind: Kind, folder: &Path) -> Result<ExitCode> {
    let files = match kind {
        Kind::Rule => Starter::Rule,
        Kind::Command => Starter::Command,
        Kind::Worker => Starter::Worker,
    };
    let files = files.files();
    let taken = files.iter().map(|file| folder.join(file.name)).find(|path| path.symlink_metadata().is_ok());
    if let Some(path) = taken {
        bail!("`{}` is there already; please choose another folder", path.display());
    }
    std::fs::create_dir_all(folder).with_context(|| format!("`{}`", folder.display()))?;
    let mut out = std::io::stdout().lock();
    for file in files {
        let path = folder.join(file.name);
        let mode = if file.is_program { 0o755 } else { 0o644 };
        let written = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        written
            .and_then(|mut new| new.write_all(file.text.as_bytes()))
            .with_context(|| format!("`{}`", path.display()))?;
        writeln!(out, "{}", path.display())?;
    }
    let bundle = folder.join("bundle.yaml");
    let bundle = bundle.display();
    writeln!(out, "\nTry it:  amplifier hooks test {bundle}\nUse it:  amplifier chat --bundle {bundle}")?;
    Ok(ExitCode::SUCCESS)
}

fn read(data: &str) -> Result<Map> {
    let text = match data.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("`{file}`"))?,
        None => data.to_owned(),
    };
    serde_json::from_str(&text).context("the data is no JSON object")
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
        let name = visible(name, Reading::Exact);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{event:<20} {name:<20} {priority:>8}  {role:<8}  {on_error:<8}  {} s",
            timeout.as_secs_f64()
        );
    }
    text
}
