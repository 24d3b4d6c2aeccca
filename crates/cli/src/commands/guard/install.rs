//! `amplifier guard install` and `uninstall`: changes of the settings of other agents.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use amplifier_guard::Client;
use amplifier_guard::settings::{
    self, FOLDER_VARIABLES, HookOptions, OWN_NAMES, Scope, codex_config_file, codex_trust, codex_untrust, hook_name,
    installed, missing_events,
};
use amplifier_host::{Config, Home, Overrides};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::settings_files::{SettingsChange, read, write};
use super::{Places, Selection, canary, daemon_place, system};
use crate::commands::output::{print_json, stdout};
use crate::errors::reasons;
use crate::terminal::{EscapeMode, visible};

/// The time for the guard itself, besides a user's answer.
const OWN_TIME: Duration = Duration::from_secs(30);
/// Variables that the daemon gets from the installation, besides those of clients' folders. It gets none from an agent.
const VARIABLES: [&str; 15] = [
    "AMPLIFIER_HOME",
    "BASH_ENV",
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

/// Installs the guard, and tests it with a canary.
pub(super) fn install(selection: &Selection, change: Change, as_json: bool, home: &Home) -> Result<ExitCode> {
    let (places, scope) = (Places::find(home)?, selection.scope());
    let files = selection.files(&places)?;
    let config = Config::load(&Overrides::default(), home)?;
    let options = HookOptions {
        program: &places.hook,
        place: daemon_place(scope, if scope == Scope::System { &places.program } else { places.guard.path() }),
        limit: config.approval_timeout + OWN_TIME,
        name: &format!("{OWN_NAMES}{}", random()),
    };
    if scope == Scope::System {
        system::check_program(&places.program)?;
        system::check_program(places.hook.path())?;
    } else if change == Change::Write {
        let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        let variables: Vec<(String, String)> = VARIABLES.iter().chain(&FOLDER_VARIABLES).filter_map(variable).collect();
        let written = places.guard.write_start(&places.program, &variables);
        written.with_context(|| format!("the folder `{}` cannot be used", places.guard.path().display()))?;
    }
    each_client(
        &files,
        (scope, change, as_json),
        |client, file| {
            let before = read(file)?;
            // A name that exists stays, so that a second installation changes nothing.
            let known = hook_name(client, scope, &before);
            let options = HookOptions { name: known.as_deref().unwrap_or(options.name), ..options.clone() };
            let after = settings::install(client, scope, &before, &options)?;
            let hooks = installed(client, scope, &after)?;
            let changes = [SettingsChange { file: file.to_owned(), before, after }];
            with_trust(changes, client, scope, |config| codex_trust(config, file, &hooks))
        },
        |client, file| {
            let hooks = installed(client, scope, &read(file)?)?;
            if let Some(missing) = missing_events(client, &hooks).first() {
                bail!("the hook for `{missing}` is not in `{}` after the installation", file.display());
            }
            if let Some(problem) = places.unused_hooks(client, &hooks).first() {
                bail!("{problem}; run `amplifier guard status`");
            }
            canary::send(client, scope, &hooks, &places, home)
        },
    )
}

/// Removes the guard.
pub(super) fn uninstall(selection: &Selection, change: Change, as_json: bool, home: &Home) -> Result<ExitCode> {
    let (places, scope) = (Places::find(home)?, selection.scope());
    each_client(
        &selection.files(&places)?,
        (scope, change, as_json),
        |client, file| {
            let before = read(file)?;
            let hooks = installed(client, scope, &before)?;
            let after = settings::uninstall(client, scope, &before)?;
            let changes = [SettingsChange { file: file.to_owned(), before, after }];
            if hooks.is_empty() {
                return Ok(changes.into());
            }
            with_trust(changes, client, scope, |config| codex_untrust(config, file, &hooks))
        },
        |client, file| match installed(client, scope, &read(file)?)?.is_empty() {
            true => Ok(()),
            false => bail!("hooks of the guard are still in `{}`", file.display()),
        },
    )
}

/// Adds the change of the trust in hooks, for the client that needs it.
fn with_trust(
    changes: [SettingsChange; 1],
    client: Client,
    scope: Scope,
    change: impl FnOnce(&str) -> Result<String, settings::SettingsError>,
) -> Result<Vec<SettingsChange>> {
    let [hooks] = changes;
    if client != Client::Codex || scope == Scope::System {
        return Ok(vec![hooks]);
    }
    let file = codex_config_file(&hooks.file);
    let before = read(&file)?;
    let after = change(&before).with_context(|| format!("`{}`", file.display()))?;
    Ok(vec![hooks, SettingsChange { file, before, after }])
}

/// Plans, shows, writes and checks the changes for each client. A failure of one client leaves the others.
fn each_client(
    files: &[(Client, PathBuf)],
    (scope, change, as_json): (Scope, Change, bool),
    plan: impl Fn(Client, &Path) -> Result<Vec<SettingsChange>>,
    check: impl Fn(Client, &Path) -> Result<()>,
) -> Result<ExitCode> {
    let mut reports = Vec::new();
    for (client, file) in files {
        let outcome = plan(*client, file).and_then(|changes| {
            let changes: Vec<SettingsChange> =
                changes.into_iter().filter(|change| change.before != change.after).collect();
            if !as_json {
                changes.iter().try_for_each(SettingsChange::show)?;
            }
            if change == Change::Write {
                write(&changes, scope)?;
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

/// Returns a text that nobody guesses.
pub(super) fn random() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}
