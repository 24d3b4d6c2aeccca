//! The guard under faults, through the real hook program and the real daemon: bad payloads, full disks, crashes, crowds.

#![cfg(unix)]

mod crashes;
mod crowds;
mod files;
mod payloads;
#[path = "../../../guard/tests/readers.rs"]
mod readers;

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use amplifier_guard::{Client, Dialect, HookOutput, canary_payload};
use serde_json::{Value, json};

use self::readers::{Gate, proceeds};
use crate::common::Place;
use crate::guard::{Guarded, text};

/// The command that the rules of [`Guarded`] deny.
const FORBIDDEN: &str = "git push --force";

impl Guarded {
    /// A home with an installed guard.
    fn installed() -> Self {
        let guarded = Self::new();
        let installed = guarded.guard(&["install", "claude"]);
        assert!(installed.status.success(), "{}", text(&installed));
        guarded
    }

    /// Calls the hook program as a client does before a tool.
    fn ask(&self, client: Client, payload: &[u8]) -> Output {
        let folder = self.place.at("home/guard").display().to_string();
        let event = event_of(client);
        let line = ["guard", "hook", "--client", client.as_str(), "--event", event, "--deadline", "120000", "--folder"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier"));
        run(command.args(line).arg(folder).current_dir(self.place.at("workspace")), payload)
    }

    fn workspace(&self) -> String {
        self.place.at("workspace").display().to_string()
    }

    /// Returns `true` if the log has a record with all of these texts.
    fn has_record(&self, texts: &[&str]) -> bool {
        read_log(&self.place.at("home/audit")).lines().any(|line| texts.iter().all(|text| line.contains(text)))
    }

    /// Checks that the log has a denial in a session. Large bodies are not in the lines of the log.
    #[track_caller]
    fn check_denial_recorded(&self, session: &str) {
        let denials = ["audit", "tail", "--session", session, "--hook", "no-force-push"];
        assert_ne!(self.place.amplifier(&denials).fine(), "", "{session}");
    }

    fn check_log(&self) {
        check_log(&self.place);
    }
}

fn check_log(place: &Place) {
    let report = place.amplifier(&["audit", "verify"]).fine();
    assert!(report.starts_with("sound: "), "{report}");
}

fn read_log(folder: &Path) -> String {
    let files = fs::read_dir(folder).unwrap();
    files.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok()).collect()
}

/// The ids of calls in records that contain all of these texts. Ids begin with `t-`.
fn recorded(folder: &Path, texts: &[&str]) -> HashSet<String> {
    let log = read_log(folder);
    let lines = log.lines().filter(|line| texts.iter().all(|text| line.contains(text)));
    lines.flat_map(|line| line.split('"')).filter(|text| text.starts_with("t-")).map(str::to_owned).collect()
}

fn run(command: &mut Command, payload: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that has denied does not read on.
    _ = child.stdin.take().unwrap().write_all(payload);
    child.wait_with_output().unwrap()
}

fn event_of(client: Client) -> &'static str {
    match client {
        Client::Claude | Client::Codex => "PreToolUse",
        Client::Gemini => "BeforeTool",
        Client::Copilot | Client::Cursor => "preToolUse",
        Client::Opencode => "tool.execute.before",
    }
}

fn shell_of(client: Client) -> &'static str {
    match client {
        Client::Claude | Client::Codex => "Bash",
        Client::Gemini => "run_shell_command",
        Client::Copilot | Client::Opencode => "bash",
        Client::Cursor => "Shell",
    }
}

/// The payload of a call, in a session of its own that is named after its id.
fn payload(client: Client, folder: &str, id: &str, tool: &str, input: &Value) -> Value {
    let mut payload = canary_payload(client, tool, id, folder);
    for place in ["/tool_input", "/toolArgs", "/output/args"] {
        if let Some(known) = payload.pointer_mut(place) {
            *known = input.clone();
        }
    }
    payload
}

fn shell_payload(client: Client, folder: &str, id: &str, command: &str) -> Value {
    payload(client, folder, id, shell_of(client), &json!({ "command": command }))
}

/// Returns `true` if the client runs the tool after this output.
fn runs(client: Client, output: &Output) -> bool {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().and_then(|code| u8::try_from(code).ok()).expect("the hook has an exit code");
    let output = HookOutput { stdout: lossy(&output.stdout), stderr: lossy(&output.stderr), code };
    proceeds(client, Dialect::Own, Gate::Tool, &output)
}

#[track_caller]
fn check_denied(client: Client, output: &Output, expected: &str) {
    let said = text(output);
    assert!(!runs(client, output), "{client}: {expected}: {said}");
    assert!(said.contains(expected), "{client}: no `{expected}` in: {said}");
}

#[track_caller]
fn check_allowed(client: Client, output: &Output) {
    assert!(runs(client, output), "{client}: {}", text(output));
}
