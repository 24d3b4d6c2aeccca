//! `amplifier guard status`: where the guard is installed, what disables it, and its last calls.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use amplifier_core::text::counted;
use amplifier_guard::Client;
use amplifier_guard::settings::{
    Scope, Switch, codex_config_file, find_switches, installed, is_trusted_by_codex, outdated_events, problems,
};
use amplifier_host::Home;
use amplifier_process::{Command, Environment};
use anyhow::Result;
use serde::Serialize;

use super::last_calls::{self, LastCalls};
use super::settings_files::read;
use super::{Places, daemon_place};
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
    /// `true` if the client runs the hooks without a problem; none if there are none.
    is_active: Option<bool>,
    /// `true` if the client trusts the hooks; none if it needs no trust.
    is_trusted: Option<bool>,
    /// The reasons why the guard is incomplete.
    problems: Vec<String>,
    /// The settings that switch it off.
    switches: Vec<ActiveSwitch>,
    #[serde(flatten)]
    calls: LastCalls,
    /// The version of the client, if it is in `PATH`.
    version: Option<String>,
    /// The versions with which the guard was measured.
    measured_versions: &'static [&'static str],
    /// `true` if this version is one of them.
    is_measured: bool,
}

/// A setting that switches the guard off.
#[derive(Debug, Serialize)]
struct ActiveSwitch {
    setting: String,
    file: String,
    remedy: String,
}

impl ClientStatus {
    fn has_problem(&self) -> bool {
        self.is_active == Some(false) || (self.is_active.is_some() && !self.problems.is_empty())
    }
}

/// Shows the status. The exit code is 1 if a guarded client has a problem.
pub(super) async fn run(as_json: bool, home: &Home) -> Result<ExitCode> {
    let mut list = find(&Places::find(home)?);
    let guarded: Vec<Client> = list.iter().filter(|one| one.is_active.is_some()).map(|one| one.client).collect();
    let mut calls = last_calls::find(&guarded, &home.audit_folder())?;
    for one in &mut list {
        one.calls = calls.remove(&one.client).unwrap_or_default();
    }
    // Clients need up to a second to print their version.
    let versions: Vec<_> = list.iter().map(|one| tokio::spawn(version(one.client))).collect();
    for (one, version) in list.iter_mut().zip(versions) {
        let version = version.await?;
        one.is_measured = version.as_deref().is_some_and(|version| one.measured_versions.contains(&version));
        one.version = version;
    }
    if as_json {
        print_json(&list)?;
    } else {
        let mut out = stdout();
        list.iter().try_for_each(|one| show(&mut out, one))?;
        out.flush()?;
    }
    Ok(ExitCode::from(u8::from(list.iter().any(ClientStatus::has_problem))))
}

/// Returns one line for `amplifier doctor`. The error says what is wrong.
pub(crate) fn check(home: &Home) -> Result<String, String> {
    // Without a home folder, or on another system, no agent is guarded.
    let Ok(places) = Places::find(home) else { return Ok("no agent is guarded".to_owned()) };
    let list = find(&places);
    let guarded: Vec<&ClientStatus> = list.iter().filter(|one| one.is_active.is_some()).collect();
    if let Some(one) = guarded.iter().find(|one| one.has_problem()) {
        let switch = one.switches.iter().map(|switch| format!("{} in `{}`", switch.setting, switch.file));
        let problem = one.problems.iter().cloned().chain(switch).next().unwrap_or_default();
        return Err(visible(&format!("{}: {problem}", one.client), EscapeMode::Exact));
    }
    let names: Vec<&str> = guarded.iter().map(|one| one.client.as_str()).collect();
    Ok(match names.len() {
        0 => "no agent is guarded".to_owned(),
        number => format!("{}: {}", counted(number, "guarded agent"), names.join(", ")),
    })
}

/// Returns the status of each client, without what takes time: its version and its last calls.
fn find(places: &Places) -> Vec<ClientStatus> {
    Client::ALL.into_iter().map(|client| status(client, places)).collect()
}

fn status(client: Client, places: &Places) -> ClientStatus {
    let (mut levels, mut found, mut is_trusted) = (Vec::new(), Vec::new(), None);
    // A level without a problem decides, whatever is wrong at another one.
    let mut sound = Vec::new();
    for (scope, file) in places.files(client) {
        let name = file.display();
        let hooks = match read(&file).and_then(|text| Ok(installed(client, scope, &text)?)) {
            Ok(hooks) if hooks.is_empty() => continue,
            Ok(hooks) => hooks,
            Err(error) => {
                found.push(format!("`{name}`: {}", reasons(&error)));
                continue;
            }
        };
        levels.push(scope);
        let mut outdated = Vec::new();
        let mut here: Vec<String> = match places.programs(scope, &hooks) {
            Ok((program, daemon)) => {
                let place = daemon_place(scope, &daemon);
                outdated = outdated_events(client, &hooks, &program, place);
                let problems = problems(client, &hooks, &program, place).into_iter();
                problems.map(|problem| format!("`{name}`: {problem}; check it, then install again")).collect()
            }
            Err(error) => vec![format!("`{name}`: {}", reasons(&error))],
        };
        if client == Client::Codex && scope != Scope::System {
            let config = codex_config_file(&file);
            let trusted = read(&config).is_ok_and(|text| is_trusted_by_codex(&text, &file, &hooks));
            if !trusted {
                here.push(format!("`{}` does not trust the hooks; install again", config.display()));
            }
            is_trusted = Some(is_trusted.unwrap_or(true) && trusted);
        }
        here.extend(places.unused_hooks(client, &hooks));
        if here.is_empty() {
            sound.push(scope);
        }
        found.extend(here);
        if !outdated.is_empty() {
            let events = outdated.join(", ");
            found.push(format!("`{name}`: the lines at {events} are of an earlier version; install again"));
        }
    }
    let switches = find_switches(client, &places.folders);
    let has_system = sound.contains(&Scope::System);
    let switches: Vec<Switch> = switches.into_iter().filter(|switch| !(has_system && switch.spares_system)).collect();
    let is_active = (!levels.is_empty()).then_some(!sound.is_empty() && switches.is_empty());
    ClientStatus {
        client,
        installed: levels,
        is_active,
        is_trusted,
        problems: found,
        switches: switches.into_iter().map(|switch| describe(client, switch)).collect(),
        calls: LastCalls::default(),
        version: None,
        measured_versions: client.measured_versions(),
        is_measured: false,
    }
}

fn describe(client: Client, Switch { setting, file, spares_system }: Switch) -> ActiveSwitch {
    let remedy = match spares_system {
        true => format!("remove this setting, or run `sudo amplifier guard install {client} --system`"),
        false => "remove this setting".to_owned(),
    };
    ActiveSwitch { setting, file: file.display().to_string(), remedy }
}

fn show(out: &mut impl Write, one: &ClientStatus) -> Result<()> {
    let levels: Vec<&str> = one.installed.iter().map(|scope| scope.as_str()).collect();
    let state = match one.is_active {
        None => "not installed".to_owned(),
        Some(true) => format!("active ({})", levels.join(", ")),
        Some(false) => format!("NOT ACTIVE, installed ({})", levels.join(", ")),
    };
    let version = match &one.version {
        Some(version) if one.is_measured => format!("version {version}"),
        Some(version) if one.measured_versions.is_empty() => format!("version {version}; none was measured"),
        Some(version) => format!("version {version} was not measured, only {}", one.measured_versions.join(" and ")),
        None => "no version found in PATH".to_owned(),
    };
    writeln!(out, "{}: {state}; {}", one.client, visible(&version, EscapeMode::Exact))?;
    if one.is_active.is_some() {
        let time = |time: &Option<String>| visible(time.as_deref().unwrap_or("never"), EscapeMode::Exact);
        let LastCalls { last_call, last_canary } = &one.calls;
        writeln!(out, "    last call {}, last canary {}", time(last_call), time(last_canary))?;
    }
    for problem in &one.problems {
        writeln!(out, "    {}", visible(problem, EscapeMode::Exact))?;
    }
    for ActiveSwitch { setting, file, remedy } in &one.switches {
        let line = format!("{setting} in `{file}`: the hooks of users do not run; {remedy}");
        writeln!(out, "    {}", visible(&line, EscapeMode::Exact))?;
    }
    Ok(())
}

/// Returns the version that a client prints.
async fn version(client: Client) -> Option<String> {
    let program = if client == Client::Cursor { "cursor-agent" } else { client.as_str() };
    let command = Command::new(program, Environment::Commands).args(["--version"]).with_truncated_output();
    let completed = command.run(b"", VERSION_LIMIT, 4096).await.ok()?;
    let text = String::from_utf8_lossy(&completed.stdout.bytes).into_owned();
    let is_version = |word: &&str| word.split('.').count() >= 3 && word.starts_with(|c: char| c.is_ascii_digit());
    text.split([' ', '\n', '(', ')', 'v']).find(is_version).map(str::to_owned)
}
