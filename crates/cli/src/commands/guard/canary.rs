//! The canary: a call that must be denied. A hook that did not run looks exactly like one that allowed the call.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use amplifier_audit::{Folder, Record, read_lines_backwards};
use amplifier_guard::settings::{InstalledHook, Scope, installed, is_own, tool_event};
use amplifier_guard::{CANARY_HOOK, CANARY_TOOL, Client, canary_payload};
use amplifier_host::Home;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::{Value, json};

use super::install::random;
use super::settings_files::read;
use super::{Places, daemon_place, live, system};
use crate::commands::output::{print_json, stdout};
use crate::errors::{reasons, usage};
use crate::terminal::{EscapeMode, visible};

/// The part that a canary tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The configured lines of hooks.
    Lines,
    /// The installed clients, too, with a scripted model.
    Live,
}

/// The result of one canary.
#[derive(Debug, Serialize)]
struct CanaryReport {
    client: Client,
    /// The level of the settings; none for a test of the client itself.
    scope: Option<Scope>,
    file: Option<String>,
    denied: bool,
    problem: Option<String>,
}

impl CanaryReport {
    fn new(client: Client, place: Option<(Scope, PathBuf)>, outcome: Result<()>) -> Self {
        let problem = outcome.err().map(|error| reasons(&error));
        let (scope, file) = place.map(|(scope, file)| (scope, file.display().to_string())).unzip();
        Self { client, scope, file, denied: problem.is_none(), problem }
    }
}

/// Tests the installed hooks of clients.
pub(super) fn run(clients: &[Client], extent: Extent, as_json: bool, home: &Home) -> Result<ExitCode> {
    let places = Places::find(home)?;
    let clients = if clients.is_empty() { &Client::ALL[..] } else { clients };
    let mut reports = Vec::new();
    for client in clients.iter().copied() {
        let before = reports.len();
        for (scope, file) in places.files(client) {
            let hooks = match read(&file).and_then(|text| Ok(installed(client, scope, &text)?)) {
                Ok(hooks) if hooks.is_empty() => continue,
                hooks => hooks,
            };
            let sent = hooks.and_then(|hooks| send(client, scope, &hooks, &places, home));
            reports.push(CanaryReport::new(client, Some((scope, file)), sent));
        }
        if extent == Extent::Live && reports.len() > before {
            let logs: Vec<PathBuf> = [Ok(home.audit_folder()), system::audit_folder()].into_iter().flatten().collect();
            let tested = live::test(client, home.environment().current_dir(), &logs);
            reports.push(CanaryReport::new(client, None, tested));
        }
    }
    if reports.is_empty() {
        return Err(usage("no agent is guarded; run `amplifier guard install`"));
    }
    let has_failed = reports.iter().any(|report| !report.denied);
    if as_json {
        print_json(&reports)?;
    } else {
        let mut out = stdout();
        for CanaryReport { client, scope, problem, .. } in &reports {
            let tested = scope.map_or("live", |scope| scope.as_str());
            let outcome = problem.as_deref().unwrap_or("denied and recorded");
            writeln!(out, "{client} ({tested}): {}", visible(outcome, EscapeMode::Exact))?;
        }
        out.flush()?;
    }
    Ok(ExitCode::from(u8::from(has_failed)))
}

/// Sends the canary through the configured line of the hook before tools.
///
/// # Errors
/// If the line is not that of this program, the canary is not denied, or the audit log has no denial of it.
pub(super) fn send(client: Client, scope: Scope, hooks: &[InstalledHook], places: &Places, home: &Home) -> Result<()> {
    let hook = hooks.iter().find(|hook| hook.event == tool_event(client));
    let hook = hook.context("the hook before tools is missing")?;
    // A repository can contain settings with any command.
    let (program, daemon) = places.programs(scope, hooks)?;
    if !is_own(client, hook, &program, daemon_place(scope, &daemon)) {
        bail!(
            "the hook before tools was not run: its line is not ours: `{}`; check it, then install again",
            hook.command
        );
    }
    let nonce = random();
    let folder = home.environment().current_dir().display().to_string();
    let payload = canary_payload(client, CANARY_TOOL, &nonce, &folder).to_string();
    let mut child = Command::new("/bin/sh")
        .args(["-c", &hook.command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("the configured line cannot be run")?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that has denied does not read on.
        _ = stdin.write_all(payload.as_bytes());
    }
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_denied = match client {
        Client::Cursor => serde_json::from_slice::<Value>(&output.stdout)
            .is_ok_and(|answer| answer.get("permission") == Some(&json!("deny"))),
        _ => output.status.code() == Some(2),
    };
    if !is_denied {
        bail!("the canary was not denied: {}; {}", output.status, stderr.trim());
    }
    if !stderr.contains(&nonce) {
        bail!("the canary was denied, but not by the policy: {}", stderr.trim());
    }
    let log = match scope {
        Scope::System => system::audit_folder()?,
        Scope::User | Scope::Project => home.audit_folder(),
    };
    let mut is_recorded = false;
    read_lines_backwards(&Folder::new(log), |line| {
        let record = Record::parse(line)?;
        is_recorded |= record.session.as_deref().is_some_and(|session| session.ends_with(&nonce))
            && record.body.get().contains(CANARY_HOOK);
        Ok(if is_recorded { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !is_recorded {
        bail!("the canary was denied, but the audit log has no record of it; run `amplifier audit verify`");
    }
    Ok(())
}
