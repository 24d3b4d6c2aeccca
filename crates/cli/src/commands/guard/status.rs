//! `amplifier guard status`: where the guard is installed, and what disables it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use amplifier_guard::Client;
use amplifier_guard::settings::{
    self, Scope, codex_config_file, codex_trust, find_switches, installed, is_own, missing_events,
};
use amplifier_host::Home;
use amplifier_process::{Command, Environment};
use anyhow::Result;
use serde::Serialize;

use super::Places;
use super::install::{hook_program, read};
use crate::commands::output::{print_json, stdout};
use crate::errors::reasons;
use crate::terminal::{EscapeMode, visible};

/// The time for a client to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// The guard of one client.
#[derive(Debug, Serialize)]
struct ClientStatus {
    client: Client,
    /// The levels with hooks of the guard.
    installed: Vec<Scope>,
    /// The reasons why the guard is incomplete or switched off.
    problems: Vec<String>,
    /// The version of the client, if it is in `PATH`.
    version: Option<String>,
    /// `true` if the guard was measured with this version.
    is_measured: bool,
}

/// Shows the status. The exit code is 1 if a guarded client has a problem.
pub(super) async fn run(as_json: bool, home: &Home) -> Result<ExitCode> {
    let places = Places::find(home)?;
    let mut list = Vec::new();
    for client in settings::supported() {
        list.push(status(client, &places).await);
    }
    let has_problem = list.iter().any(|one| !one.installed.is_empty() && !one.problems.is_empty());
    if as_json {
        print_json(&list)?;
    } else {
        let mut out = stdout();
        for ClientStatus { client, installed, problems, version, is_measured } in &list {
            let levels: Vec<&str> = installed.iter().map(|scope| scope.as_str()).collect();
            let state = if levels.is_empty() {
                "not installed".to_owned()
            } else {
                format!("installed ({})", levels.join(", "))
            };
            let version = match version {
                Some(version) if *is_measured => format!(", version {version}"),
                Some(version) => format!(", version {version} was not measured"),
                None => String::new(),
            };
            writeln!(out, "{client}: {state}{}", visible(&version, EscapeMode::Exact))?;
            for problem in problems {
                writeln!(out, "    {}", visible(problem, EscapeMode::Exact))?;
            }
        }
        out.flush()?;
    }
    Ok(ExitCode::from(u8::from(has_problem)))
}

async fn status(client: Client, places: &Places) -> ClientStatus {
    let (mut levels, mut problems) = (Vec::new(), Vec::new());
    for (scope, file) in places.files(client) {
        let hooks = match read(&file).and_then(|text| Ok(installed(&text)?)) {
            Ok(hooks) => hooks,
            Err(error) => {
                problems.push(format!("`{}`: {}", file.display(), reasons(&error)));
                continue;
            }
        };
        if hooks.is_empty() {
            continue;
        }
        levels.push(scope);
        let missing = missing_events(client, &hooks);
        if !missing.is_empty() {
            problems.push(format!("`{}` has no hook for {}; install again", file.display(), missing.join(", ")));
        }
        let is_foreign =
            |hook| !hook_program().is_ok_and(|program| is_own(client, hook, &program, places.guard.path()));
        if let Some(hook) = hooks.iter().find(|hook| is_foreign(*hook)) {
            problems.push(format!(
                "`{}` has a line at {} that is not ours; check it, then install again",
                file.display(),
                hook.event
            ));
        }
        if client == Client::Codex && scope != Scope::System {
            let config = codex_config_file(&file);
            let is_trusted =
                read(&config).is_ok_and(|text| codex_trust(&text, &file, &hooks).is_ok_and(|now| now == text));
            if !is_trusted {
                problems.push(format!("`{}` does not trust the hooks; install again", config.display()));
            }
        }
    }
    let switches = find_switches(client, &places.user, &places.project);
    problems.extend(switches.into_iter().map(|switch| format!("{switch}: hooks do not run; remove this setting")));
    let version = version(client).await;
    let is_measured = version.as_deref().is_some_and(|version| version == client.measured_version());
    ClientStatus { client, installed: levels, problems, version, is_measured }
}

/// Returns the version that a client prints.
async fn version(client: Client) -> Option<String> {
    let command = Command::new(client.as_str(), Environment::Commands).args(["--version"]).with_truncated_output();
    let completed = command.run(b"", VERSION_LIMIT, 4096).await.ok()?;
    let text = String::from_utf8_lossy(&completed.stdout.bytes).into_owned();
    let is_version = |word: &&str| word.split('.').count() >= 3 && word.starts_with(|c: char| c.is_ascii_digit());
    text.split([' ', '\n', '(', ')', 'v']).find(is_version).map(str::to_owned)
}
