//! `amplifier hooks`: lists, tests and traces hooks.

mod diff;
mod event_summary;
mod modules;
mod replay;
mod session;
mod test;
mod trace;
mod try_out;
mod validate;

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_agent::tool::Workspace;
use amplifier_core::{
    ActionKind, DecisionKind, Denial, EmissionReport, EventName, HookInfo, HookRegistry, HookRole, OnError, catalog,
};
use amplifier_host::{Bundles, Config, Home, ProjectTrust, bundles, guards};
use amplifier_modules::bundle::{BundleScope, LoadedBundle, load, schema};
use amplifier_modules::{HookEnvironment, Starter};
use amplifier_process::files::OpenOptionsExt;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

pub(crate) use self::modules::{ModuleOption as SchemaField, options as schema_fields};
pub(crate) use self::session::RecordedSessions;
pub(crate) use self::test::test_results;
pub(crate) use self::try_out::dry_run;
use super::audit::text::pad;
use super::exit::{checked, untrusted};
use super::output::{pipe_stdout, print, print_json};
use super::trust;
use crate::flags::Flags;
use crate::signals::run_until_stopped;
use crate::terminal::{EscapeMode, visible};

/// List, test and trust hooks
#[derive(Args, Debug)]
pub struct Hooks {
    // Boxed: these commands have far more options than others in the same enum.
    #[command(subcommand)]
    command: Box<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List the hooks that would run, in running order
    #[command(mut_args(Flags::hide_agent_flags))]
    List {
        /// Only hooks registered for this event
        event: Option<String>,
        /// Print JSON, one hook per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Flags,
    },
    Validate(validate::Validate),
    Test(test::Test),
    /// Review and trust a project's bundle
    #[command(after_help = "Exit codes: 0 trusted, 1 cannot be trusted, 2 wrong usage, 3 declined.")]
    #[command(mut_args(Flags::hide_agent_flags))]
    Trust {
        /// Project, or its bundle [default: the project of the workspace]
        file: Option<PathBuf>,
        /// Trust the bundle without a prompt
        #[arg(long)]
        yes: bool,
        /// Print JSON: the bundle, its digest and the result
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// Revoke trust in a project's bundle
    #[command(mut_args(Flags::hide_agent_flags))]
    Untrust {
        /// Project, or its bundle [default: the project of the workspace]
        file: Option<PathBuf>,
        /// Print JSON: the bundle and the result
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// List the trusted bundles of projects
    Trusted {
        /// Print JSON, one bundle per line
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of bundles, for editors
    Schema {
        /// Print the schema in one line
        #[arg(long)]
        json: bool,
    },
    /// Create a starter hook
    New {
        /// Kind of hook
        kind: StarterKind,
        /// Folder for the files, created if missing
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Print JSON, one file per line
        #[arg(long)]
        json: bool,
    },
    Modules(modules::Modules),
    Try(try_out::Try),
    Trace(trace::Trace),
    Replay(replay::Replay),
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum StarterKind {
    /// Rules, without programming
    Rule,
    /// A program that runs for each event
    Command,
    /// A long-running Python program
    Worker,
    /// A sandboxed Rust component
    Wasm,
}

impl Hooks {
    /// Runs the command.
    ///
    /// # Errors
    /// If the event name or the bundle is invalid.
    pub async fn run(self, home: Result<Home>) -> Result<ExitCode> {
        match *self.command {
            Command::List { event, json, flags } => list(&flags, &home?, event.as_deref(), json),
            Command::Validate(validate) => checked(validate.run(home)),
            Command::Modules(modules) => modules.run(),
            Command::Schema { json: true } => print_json(&schema()),
            Command::Schema { json: false } => print(format!("{:#}\n", schema())),
            Command::Test(test) => checked(run_until_stopped(async { test.run(&home?).await }).await),
            Command::Trust { file, yes, json, flags } => trust::trust(file, yes, json, &flags, &home?).await,
            Command::Untrust { file, json, flags } => trust::untrust(file, json, &flags, &home?),
            Command::Trusted { json } => trust::list_trusted(json, &home?),
            Command::New { kind, folder, json } => create_starter(kind, &folder, json),
            Command::Try(try_out) => run_until_stopped(try_out.run(&home?)).await,
            Command::Trace(trace) => trace.run(home),
            Command::Replay(replay) => untrusted(checked(run_until_stopped(replay.run(home)).await)),
        }
    }
}

/// Loads the named bundle, else the configured one, else the project's if trusted, else the user's.
pub(crate) fn choose_bundle(given: Option<PathBuf>, config: &Config, home: &Home) -> Result<LoadedBundle> {
    if let Some(file) = given.or_else(|| config.bundle.clone()) {
        return Ok(load(&file)?);
    }
    if let Some(project) = Bundles::find(config, home)?.project {
        let (trust, file) = (project.trust_label(), project.file.display());
        let ProjectTrust::Trusted(bundle, _) = project.state else {
            bail!("the bundle of this project is {trust}; run `amplifier hooks trust`, or name the file: {file}");
        };
        return Ok(bundle);
    }
    let user = Some(home.user_bundle()).filter(|user| user.exists());
    Ok(load(&user.context("no bundle found; name one: --bundle FILE")?)?)
}

/// The hooks that a session would have.
pub(crate) struct RegisteredHooks {
    pub(crate) hooks: HookRegistry,
    pub(crate) host: HookEnvironment,
    /// The reason for possibly missing hooks.
    pub(crate) warning: Option<String>,
}

/// Registers the hooks that a session would have.
pub(crate) fn register_all(config: &Config, home: &Home) -> Result<RegisteredHooks> {
    let hooks = HookRegistry::new();
    let bundles = Bundles::find(config, home)?;
    let warning = bundles.project.as_ref().and_then(|project| project.warning());
    let levels = bundles.levels();
    let host = bundles::register(&levels, config, home, &hooks)?;
    guards::register_configured(&hooks, &config.with_bundles(&levels), Workspace::new(&config.workspace)?);
    Ok(RegisteredHooks { hooks, host, warning })
}

fn warn(warning: Option<String>) -> Result<()> {
    let warning = warning.map(|warning| visible(&warning, EscapeMode::Stream));
    Ok(warning.map_or(Ok(()), |warning| writeln!(std::io::stderr(), "warning: {warning}"))?)
}

fn list(flags: &Flags, home: &Home, event: Option<&str>, json: bool) -> Result<ExitCode> {
    let (config, hooks) = (flags.load(home)?, HookRegistry::new());
    let bundles = Bundles::find(&config, home)?;
    warn(bundles.project.as_ref().and_then(|project| project.warning()))?;
    let levels = bundles.levels();
    bundles::register_for_listing(&levels, &config, &hooks)?;
    guards::register_configured(&hooks, &config.with_bundles(&levels), Workspace::new(&config.workspace)?);
    bundles::name_follower(&hooks);
    let level = |hook: &HookInfo| levels.scope_of(&hook.name).map_or("built in", BundleScope::as_str);
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
            let mut line = serde_json::to_value(hook)?;
            line["level"] = level(hook).into();
            writeln!(out, "{line}")?;
        }
    } else if listed.is_empty() {
        let hint = event.and_then(suggest_event).map(|hint| format!(" {hint}")).unwrap_or_default();
        writeln!(out, "No hook is registered for this event.{hint}")?;
    } else {
        let levels = listed.iter().map(level);
        let lines = table(&listed);
        let widest = lines.lines().map(|line| line.width()).max().unwrap_or_default();
        for (line, level) in lines.lines().zip(std::iter::once("LEVEL").chain(levels)) {
            writeln!(out, "{}  {level}", pad(line, widest))?;
        }
        if listed.iter().any(|hook| hook.on_error == OnError::DenyGating) {
            let is_gating = |name: &&str| name.parse::<EventName>().is_ok_and(|name| name.is_gating());
            let gating: Vec<_> = catalog().iter().map(|spec| spec.name).filter(is_gating).collect();
            writeln!(
                out,
                "\n{BY_EVENT}: deny at {}; continue elsewhere. Name an event to see its value.",
                gating.join(", ")
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Suggests a known event for an unknown one with a similar name.
fn suggest_event(event: &str) -> Option<String> {
    let nearest = super::events::misspelt(event)?;
    Some(format!("Unknown event `{event}`, unless it is your own; did you mean `{nearest}`?"))
}

/// Returns the hook that decided and its text; empty if no hook decided.
fn decided_by(report: &EmissionReport) -> (String, String) {
    let EmissionReport { denied_by, reason, injections, .. } = report;
    let decided = match report.decision {
        Some(DecisionKind::Deny) => denied_by.as_deref().map(|by| (by, reason.as_deref().unwrap_or(Denial::NO_REASON))),
        Some(DecisionKind::AskUser) => {
            let asked = report.approvals.iter().find(|one| report.requests(one));
            asked.map(|one| (one.hook.as_str(), one.prompt.as_deref().unwrap_or_default()))
        }
        Some(DecisionKind::Modify) => {
            let modified = report.hooks.iter().find(|hook| hook.answer == ActionKind::Modify);
            modified.map(|hook| (hook.hook.as_str(), hook.reason.as_deref().unwrap_or_default()))
        }
        Some(DecisionKind::InjectContext) => injections.first().map(|one| (one.hook.as_str(), one.text.as_str())),
        _ => None,
    };
    decided.map(|(by, says)| (by.to_owned(), says.to_owned())).unwrap_or_default()
}

/// Writes the files of a starter hook. Existing files are never replaced.
fn create_starter(kind: StarterKind, folder: &Path, as_json: bool) -> Result<ExitCode> {
    let files = match kind {
        StarterKind::Rule => Starter::Rule,
        StarterKind::Command => Starter::Command,
        StarterKind::Worker => Starter::Worker,
        StarterKind::Wasm => Starter::Wasm,
    };
    let files = files.files();
    let taken = files.iter().map(|file| folder.join(file.name)).find(|path| path.symlink_metadata().is_ok());
    if let Some(path) = taken {
        bail!("`{}` already exists; choose another folder", path.display());
    }
    let mut out = pipe_stdout();
    for file in files {
        let path = folder.join(file.name);
        let within = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(within).with_context(|| format!("`{}`", within.display()))?;
        let mode = if file.is_program { 0o755 } else { 0o644 };
        let written = std::fs::OpenOptions::new().write(true).create_new(true).new_mode(mode).open(&path);
        written
            .and_then(|mut new| new.write_all(file.text.as_bytes()))
            .with_context(|| format!("`{}`", path.display()))?;
        match as_json {
            true => writeln!(out, "{}", json!({ "file": path.to_string_lossy() }))?,
            false => writeln!(out, "{}", path.display())?,
        }
    }
    if as_json {
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let bundle = folder.join("bundle.yaml");
    let bundle = bundle.display();
    writeln!(out)?;
    if matches!(kind, StarterKind::Wasm) {
        let manifest = folder.join("Cargo.toml");
        let manifest = manifest.display();
        writeln!(out, "Build it:  rustup target add wasm32-wasip2")?;
        writeln!(out, "           cargo build --release --target wasm32-wasip2 --manifest-path {manifest}")?;
        if !cfg!(feature = "wasm") {
            writeln!(out, "           this `amplifier` cannot run components; install it with `--features wasm`")?;
        }
        writeln!(out, "Try it:    amplifier hooks test {bundle}\nUse it:    amplifier chat --bundle {bundle}")?;
    } else {
        writeln!(out, "Try it:  amplifier hooks test {bundle}\nUse it:  amplifier chat --bundle {bundle}")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The `on_error` of a hook that is registered for a pattern and denies only at gating events.
const BY_EVENT: &str = "by event";

/// Formats hooks as a table.
pub fn table(hooks: &[HookInfo]) -> String {
    let names: Vec<_> = hooks.iter().map(|hook| visible(&hook.name, EscapeMode::Exact)).collect();
    let events = hooks.iter().map(|hook| hook.event.width()).fold(20, usize::max);
    let widest = names.iter().map(|name| name.width()).fold(20, usize::max);
    let mut text = format!(
        "{} {} {:>8}  {:<8}  {:<8}  TIME LIMIT",
        pad("EVENT", events),
        pad("HOOK", widest),
        "PRIORITY",
        "ROLE",
        "ON ERROR"
    );
    for (HookInfo { event, priority, role, on_error, timeout, .. }, name) in hooks.iter().zip(&names) {
        let role = match role {
            HookRole::Gate => "gate",
            HookRole::Observer => "observer",
        };
        let on_error = match on_error {
            // A pattern: `list` names the events.
            OnError::DenyGating => BY_EVENT,
            on_error => on_error.as_str(),
        };
        let (event, name) = (pad(event, events), pad(name, widest));
        let priority = match *priority {
            i64::MIN => "first".to_owned(),
            i64::MAX => "last".to_owned(),
            priority => priority.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{event} {name} {priority:>8}  {role:<8}  {on_error:<8}  {} s", timeout.as_secs_f64());
    }
    text
}
