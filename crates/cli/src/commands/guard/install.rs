//! `amplifier guard install` and `uninstall`: changes of the settings of other agents.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use amplifier_guard::Client;
use amplifier_guard::settings::{
    self, HookOptions, HookProgram, Scope, codex_config_file, codex_trust, codex_untrust, installed, missing_events,
};
use amplifier_host::{Config, Home, Overrides};
use amplifier_process::files::{AtomicFile, Durability, mode, read_regular_text};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use similar::TextDiff;

use super::{Places, Selection, canary};
use crate::commands::output::{print_json, stdout};
use crate::errors::{reasons, usage};
use crate::terminal::{EscapeMode, visible};

/// The largest settings file.
const MAX_SETTINGS: u64 = 8 << 20;
/// The time for the guard itself, besides a user's answer.
const OWN_TIME: Duration = Duration::from_secs(30);
/// Variables that the daemon gets from the installation. It gets none from an agent.
const VARIABLES: [&str; 19] = [
    "AMPLIFIER_HOME",
    "BASH_ENV",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "DYLD_INSERT_LIBRARIES",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_AUDIT",
    "LD_PRELOAD",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// The treatment of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Show it only.
    Preview,
    /// Show it and write the files.
    Write,
}

/// One changed file.
struct SettingsChange {
    file: PathBuf,
    before: String,
    after: String,
}

/// Installs the guard, and tests it with a canary.
pub(super) fn install(selection: &Selection, change: Change, as_json: bool, home: &Home) -> Result<ExitCode> {
    // Other users could not read the files, and would need a daemon of their own.
    if selection.scope() == Scope::System {
        return Err(usage(
            "the guard was not installed: `--system` is not supported yet; install it for each user, without `--system`",
        ));
    }
    let places = Places::find(home)?;
    let files = selection.files(&places)?;
    let config = Config::load(&Overrides::default(), home)?;
    let program = hook_program()?;
    let options = HookOptions {
        program: &program,
        folder: places.guard.path(),
        limit: config.approval_timeout + OWN_TIME,
        name: &format!("hook-{}", random()),
    };
    if change == Change::Write {
        let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        let variables: Vec<(String, String)> = VARIABLES.iter().filter_map(variable).collect();
        let program = std::env::current_exe().context("the path of this program is unknown")?;
        let written = places.guard.write_start(&program, &variables);
        written.with_context(|| format!("the folder `{}` cannot be used", places.guard.path().display()))?;
    }
    each_client(
        &files,
        change,
        as_json,
        |client, file| {
            let before = read(file)?;
            // A name that exists stays, so that a second installation changes nothing.
            let known = gemini_name(client, &before);
            let options = HookOptions { name: known.as_deref().unwrap_or(options.name), ..options.clone() };
            let after = settings::install(client, &before, &options)?;
            let mut changes = vec![SettingsChange { file: file.to_owned(), before, after }];
            if client == Client::Codex {
                let hooks = installed(&changes[0].after)?;
                let (config, before) = codex_config(file)?;
                let after = codex_trust(&before, file, &hooks).with_context(|| format!("`{}`", config.display()))?;
                changes.push(SettingsChange { file: config, before, after });
            }
            Ok(changes)
        },
        |client, file| {
            let hooks = installed(&read(file)?)?;
            if let Some(missing) = missing_events(client, &hooks).first() {
                bail!("the hook for `{missing}` is not in `{}` after the installation", file.display());
            }
            canary::send(client, &hooks, &places, home)
        },
    )
}

/// Removes the guard.
pub(super) fn uninstall(selection: &Selection, change: Change, as_json: bool, home: &Home) -> Result<ExitCode> {
    let places = Places::find(home)?;
    each_client(
        &selection.files(&places)?,
        change,
        as_json,
        |client, file| {
            let before = read(file)?;
            let hooks = installed(&before)?;
            let after = settings::uninstall(client, &before)?;
            let mut changes = vec![SettingsChange { file: file.to_owned(), before, after }];
            if client == Client::Codex && !hooks.is_empty() {
                let (config, before) = codex_config(file)?;
                let after = codex_untrust(&before, file, &hooks).with_context(|| format!("`{}`", config.display()))?;
                changes.push(SettingsChange { file: config, before, after });
            }
            Ok(changes)
        },
        |_, file| match installed(&read(file)?)?.is_empty() {
            true => Ok(()),
            false => bail!("hooks of the guard are still in `{}`", file.display()),
        },
    )
}

/// Plans, shows, writes and checks the changes for each client. A failure of one client leaves the others.
fn each_client(
    files: &[(Client, PathBuf)],
    change: Change,
    as_json: bool,
    plan: impl Fn(Client, &Path) -> Result<Vec<SettingsChange>>,
    check: impl Fn(Client, &Path) -> Result<()>,
) -> Result<ExitCode> {
    let mut reports = Vec::new();
    for (client, file) in files {
        let outcome = plan(*client, file).and_then(|changes| {
            let changes: Vec<SettingsChange> =
                changes.into_iter().filter(|change| change.before != change.after).collect();
            if !as_json {
                show(&changes)?;
            }
            if change == Change::Write {
                for change in &changes {
                    write(change).with_context(|| format!("`{}` cannot be written", change.file.display()))?;
                }
                check(*client, file)?;
            }
            Ok(changes.iter().map(|change| change.file.display().to_string()).collect::<Vec<_>>())
        });
        let problem = outcome.as_ref().err().map(reasons);
        if !as_json {
            let mut out = stdout();
            match &outcome {
                Err(_) => {
                    writeln!(out, "{client}: {}", visible(problem.as_deref().unwrap_or_default(), EscapeMode::Exact))?
                }
                Ok(_) if change == Change::Preview => writeln!(out, "{client}: nothing was changed")?,
                Ok(changed) if changed.is_empty() => writeln!(out, "{client}: unchanged, checked")?,
                Ok(_) => writeln!(out, "{client}: changed, checked")?,
            }
            out.flush()?;
        }
        reports.push(json!({
            "client": client, "file": file.display().to_string(), "changed": outcome.unwrap_or_default(), "problem": problem,
        }));
    }
    let has_failed = reports.iter().any(|report| report["problem"] != Value::Null);
    if as_json {
        print_json(&reports)?;
    }
    Ok(ExitCode::from(u8::from(has_failed)))
}

fn show(changes: &[SettingsChange]) -> Result<()> {
    let mut out = stdout();
    for SettingsChange { file, before, after } in changes {
        let name = file.display().to_string();
        let diff = TextDiff::from_lines(before.as_str(), after.as_str());
        let text = diff.unified_diff().header(&name, &name).to_string();
        for line in text.lines() {
            writeln!(out, "{}", visible(line, EscapeMode::Exact))?;
        }
    }
    Ok(out.flush()?)
}

/// Writes a file atomically, with its mode, and reads it back. A link stays a link.
fn write(change: &SettingsChange) -> Result<()> {
    let file = change.file.canonicalize().unwrap_or_else(|_| change.file.clone());
    if read(&file)? != change.before {
        bail!("it changed meanwhile; try again");
    }
    if change.after.trim().is_empty() && change.before.is_empty() {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mode = fs::metadata(&file).map_or(0o600, |metadata| mode(&metadata) & 0o777);
    let mut new = AtomicFile::create_with_mode(&file, mode)?;
    new.write_all(change.after.as_bytes())?;
    new.replace(Durability::Synced)?;
    if read(&file)? != change.after {
        bail!("it has another content after writing");
    }
    Ok(())
}

/// Reads a settings file; a missing one is empty.
pub(super) fn read(file: &Path) -> Result<String> {
    let resolved = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    match read_regular_text(&resolved, MAX_SETTINGS) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        text => text.with_context(|| format!("`{}` cannot be read", file.display())),
    }
}

fn codex_config(hooks: &Path) -> Result<(PathBuf, String)> {
    let config = codex_config_file(hooks);
    let text = read(&config)?;
    Ok((config, text))
}

/// Returns the name of the guard's hooks in existing settings.
fn gemini_name(client: Client, settings: &str) -> Option<String> {
    if client != Client::Gemini || installed(settings).ok()?.is_empty() {
        return None;
    }
    let settings: Value = serde_json::from_str(settings).ok()?;
    let groups = settings.get("hooks")?.as_object()?.values().filter_map(Value::as_array).flatten();
    let handlers = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
    let named = handlers.filter_map(|handler| handler.get("name")?.as_str());
    named.into_iter().find(|name| name.starts_with("hook-")).map(str::to_owned)
}

/// Returns the program for hooks: the small one beside this program if it is there, else this program.
pub(super) fn hook_program() -> Result<HookProgram> {
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let small = own.with_file_name("amplifier-hook");
    Ok(if small.is_file() { HookProgram::small(small) } else { HookProgram::command(own) })
}

/// Returns a text that nobody guesses.
pub(super) fn random() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}
