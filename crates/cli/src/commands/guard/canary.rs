//! The canary: a call that must be denied. A hook that did not run looks exactly like one that allowed the call.

use std::io::Write;
use std::ops::ControlFlow;
use std::process::{Command, ExitCode, Stdio};

use amplifier_audit::{Folder, read_records};
use amplifier_guard::daemon::{CANARY_HOOK, CANARY_TOOL};
use amplifier_guard::settings::{self, InstalledHook, installed, is_own, tool_event};
use amplifier_guard::{Client, canary_payload};
use amplifier_host::Home;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Places;
use super::install::{hook_program, random, read};
use crate::commands::output::{print_json, stdout};
use crate::errors::{reasons, usage};
use crate::terminal::{EscapeMode, visible};

/// Tests the installed hooks of clients.
pub(super) fn run(clients: &[Client], as_json: bool, home: &Home) -> Result<ExitCode> {
    let places = Places::find(home)?;
    let clients: Vec<Client> = if clients.is_empty() { settings::supported().collect() } else { clients.to_vec() };
    let mut reports = Vec::new();
    for client in clients {
        for (scope, file) in places.files(client) {
            let hooks = match read(&file).and_then(|text| Ok(installed(&text)?)) {
                Ok(hooks) if hooks.is_empty() => continue,
                hooks => hooks,
            };
            let problem =
                hooks.and_then(|hooks| send(client, &hooks, &places, home)).err().map(|error| reasons(&error));
            reports.push((client, scope, file, problem));
        }
    }
    if reports.is_empty() {
        return Err(usage("no agent is guarded; run `amplifier guard install`"));
    }
    let has_failed = reports.iter().any(|(.., problem)| problem.is_some());
    if as_json {
        let list = reports.iter().map(|(client, scope, file, problem)| {
            json!({ "client": client, "scope": scope, "file": file.display().to_string(), "denied": problem.is_none(), "problem": problem })
        });
        print_json(&list.collect::<Vec<Value>>())?;
    } else {
        let mut out = stdout();
        for (client, scope, _, problem) in &reports {
            match problem {
                None => writeln!(out, "{client} ({scope}): denied and recorded")?,
                Some(problem) => writeln!(out, "{client} ({scope}): {}", visible(problem, EscapeMode::Exact))?,
            }
        }
        out.flush()?;
    }
    Ok(ExitCode::from(u8::from(has_failed)))
}

/// Sends the canary through the configured line of the hook before tools.
///
/// # Errors
/// If the line is not that of this program, the canary is not denied, or the audit log has no denial of it.
pub(super) fn send(client: Client, hooks: &[InstalledHook], places: &Places, home: &Home) -> Result<()> {
    let hook = hooks.iter().find(|hook| Some(hook.event.as_str()) == tool_event(client));
    let hook = hook.context("the hook before tools is missing")?;
    // A repository can contain settings with any command.
    if !is_own(client, hook, &hook_program()?, places.guard.path()) {
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
    if output.status.code() != Some(2) {
        bail!("the canary was not denied: {}; {}", output.status, stderr.trim());
    }
    if !stderr.contains(&nonce) {
        bail!("the canary was denied, but not by the policy: {}", stderr.trim());
    }
    let mut is_recorded = false;
    read_records(&Folder::new(home.audit_folder()), |record| {
        is_recorded |= record.session.as_deref().is_some_and(|session| session.ends_with(&nonce))
            && record.body.get().contains(CANARY_HOOK);
        if is_recorded { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if !is_recorded {
        bail!("the canary was denied, but the audit log has no record of it; run `amplifier audit verify`");
    }
    Ok(())
}
