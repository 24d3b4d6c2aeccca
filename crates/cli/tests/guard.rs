//! `amplifier guard`: installed in the settings of an agent, called as the agent calls it, with daemons that come and go.

#![cfg(unix)]

mod explain;
mod live;
mod opencode;
mod settings_files;
mod signals;
mod status;
mod system;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use amplifier_core::{Actor, ApprovalAnswer};
use amplifier_host::Home;
use amplifier_link::{AnswerScope, OpenApproval};
use amplifier_server::hub::SubmittedAnswer;
use amplifier_server::{Hub, LinkListener};
use serde_json::{Value, json};

use crate::common::{LIMIT, Place};

const RULES: &str = "hooks:\n  - rule: no-force-push\n    on: tool:pre\n    when: tool_name == \"Bash\" && tool_input.command.contains(\"push --force\")\n    deny: ask before you overwrite history\n";

/// A home with agents. Its daemon ends with it.
pub(crate) struct Guarded {
    pub(crate) place: Place,
}

impl Guarded {
    pub(crate) fn new() -> Self {
        let place = Place::with(json!([]));
        place.write("home/bundle.yaml", RULES);
        fs::create_dir(place.at("user")).unwrap();
        fs::create_dir(place.at("user/.claude")).unwrap();
        Self { place }
    }

    pub(crate) fn guard(&self, arguments: &[&str]) -> Output {
        let mut command = self.place.command(&[&["guard"], arguments].concat());
        command.env("HOME", self.place.at("user"));
        command.output().unwrap()
    }

    fn settings(&self) -> PathBuf {
        self.place.at("user/.claude/settings.json")
    }

    /// The line that Claude Code runs at this event.
    pub(crate) fn line(&self, event: &str) -> String {
        let settings: Value = serde_json::from_str(&fs::read_to_string(self.settings()).unwrap()).unwrap();
        settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap().to_owned()
    }

    /// Calls the hook as Claude Code does, in an environment that a repository could have set.
    pub(crate) fn call(&self, id: &str, command: &str) -> Output {
        call(&self.line("PreToolUse"), &self.place.at("workspace").display().to_string(), id, command)
    }

    /// The process ids of the daemons of this place.
    pub(crate) fn daemons(&self) -> Vec<i32> {
        let folder = self.place.at("home/guard").display().to_string();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let is_daemon = |id: &i32| {
            fs::read_to_string(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| line.contains("\0daemon\0") && line.contains(&folder))
        };
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_daemon).collect()
    }

    pub(crate) fn kill_daemons(&self) {
        for id in self.daemons() {
            _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill_daemons();
    }
}

pub(crate) fn call(line: &str, folder: &str, id: &str, command: &str) -> Output {
    let payload = json!({
        "session_id": "session-1", "prompt_id": "p", "cwd": folder, "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": { "command": command }, "tool_use_id": id,
    });
    let mut child = Command::new("/bin/sh")
        .args(["-c", line])
        .env("AMPLIFIER_HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    _ = child.stdin.take().unwrap().write_all(payload.to_string().as_bytes());
    child.wait_with_output().unwrap()
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn an_installed_guard_denies_what_the_rules_deny_and_is_silent_otherwise() {
    let guarded = Guarded::new();
    let before = "{\n  \"model\": \"opus\"\n}\n";
    fs::write(guarded.settings(), before).unwrap();
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    assert!(
        text(&installed).contains("+    \"PreToolUse\": [") && text(&installed).contains("claude: changed, checked")
    );

    let denied = guarded.call("t-1", "git push --force");
    assert_eq!(denied.status.code(), Some(2), "{}", text(&denied));
    assert!(text(&denied).contains("Denied by hook no-force-push: ask before you overwrite history"));
    let allowed = guarded.call("t-2", "git status");
    assert_eq!((allowed.status.code(), text(&allowed)), (Some(0), String::new()));

    let tested = guarded.guard(&["test"]);
    assert_eq!((tested.status.code(), text(&tested)), (Some(0), "claude (user): denied and recorded\n".to_owned()));
    let status: Value = serde_json::from_slice(&guarded.guard(&["status", "--json"]).stdout).unwrap();
    assert_eq!((&status[0]["installed"], &status[0]["problems"]), (&json!(["user"]), &json!([])));

    let removed = guarded.guard(&["uninstall", "claude"]);
    assert!(removed.status.success(), "{}", text(&removed));
    assert_eq!(fs::read_to_string(guarded.settings()).unwrap(), before);
    assert_eq!(guarded.guard(&["test"]).status.code(), Some(2));
    let report = guarded.place.amplifier(&["audit", "verify"]).fine();
    assert!(report.starts_with("sound: "), "{report}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_daemon_starts_no_program_that_no_hook_needs() {
    let guarded = Guarded::new();
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    assert_eq!(guarded.call("t-1", "git status").status.code(), Some(0));
    let daemon = guarded.daemons().pop().unwrap();
    for thread in fs::read_dir(format!("/proc/{daemon}/task")).unwrap().flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        assert_eq!(children, "");
    }
}

#[test]
fn a_preview_changes_nothing() {
    let guarded = Guarded::new();
    let shown = guarded.guard(&["install", "--dry-run"]);
    assert!(shown.status.success() && text(&shown).contains("claude: nothing was changed"), "{}", text(&shown));
    assert!(!guarded.settings().exists() && !guarded.place.at("home/guard").exists());
}

#[test]
fn every_supported_agent_can_be_guarded_and_tested() {
    let guarded = Guarded::new();
    let installed = guarded.guard(&["install", "--all"]);
    assert!(installed.status.success(), "{}", text(&installed));
    let tested: Value = serde_json::from_slice(&guarded.guard(&["test", "--json"]).stdout).unwrap();
    let denied: Vec<&Value> = tested.as_array().unwrap().iter().map(|one| &one["denied"]).collect();
    assert_eq!(denied, [&json!(true); 6], "{tested}");
    assert!(guarded.place.at("user/.codex/config.toml").exists());
    let status = guarded.guard(&["status"]);
    assert!(status.status.success(), "{}", text(&status));
    let removed = guarded.guard(&["uninstall", "--all"]);
    assert!(removed.status.success(), "{}", text(&removed));
    // Files that had nothing but hooks of the guard are gone.
    for file in ["user/.copilot/hooks/amplifier-guard.json", "user/.config/opencode/plugin/amplifier-guard.js"] {
        assert!(!guarded.place.at(file).exists(), "{file}");
    }
}

#[test]
fn a_test_of_the_guard_runs_no_line_of_a_repository() {
    let guarded = Guarded::new();
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    let proof = guarded.place.at("proof");
    let line = format!("/bin/sh -c 'touch {}; exit 2' amplifier-guard", proof.display());
    let hook = json!({ "matcher": "*", "hooks": [{ "type": "command", "command": line, "timeout": 60 }] });
    fs::create_dir(guarded.place.at("workspace/.claude")).unwrap();
    let settings = json!({ "hooks": { "PreToolUse": [hook] } });
    guarded.place.write("workspace/.claude/settings.json", &settings.to_string());
    let tested = guarded.guard(&["test"]);
    assert_eq!(tested.status.code(), Some(1));
    assert!(text(&tested).contains("its line is not ours"), "{}", text(&tested));
    assert!(text(&tested).contains("claude (user): denied and recorded") && !proof.exists());
    assert!(text(&guarded.guard(&["status"])).contains("a line at PreToolUse that is not ours"));
}

#[test]
fn a_guard_that_a_repository_switches_off_denies_the_next_call() {
    let guarded = Guarded::new();
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    assert_eq!(guarded.call("t-1", "ls").status.code(), Some(0));
    fs::create_dir(guarded.place.at("workspace/.claude")).unwrap();
    let settings = guarded.place.at("workspace/.claude/settings.json");
    fs::write(&settings, "{\"disableAllHooks\": true}").unwrap();
    for id in ["t-2", "t-3"] {
        let denied = guarded.call(id, "ls");
        assert_eq!(denied.status.code(), Some(2));
        assert!(text(&denied).contains("the guard was switched off during the session"), "{}", text(&denied));
        guarded.kill_daemons();
        while !guarded.daemons().is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
    }
    let tail = guarded.place.amplifier(&["audit", "tail", "--json", "--session", "session-1"]).fine();
    assert!(tail.contains("guard:disabled"), "{tail}");
    fs::remove_file(&settings).unwrap();
    assert_eq!(guarded.call("t-4", "ls").status.code(), Some(0));
}

#[test]
fn a_variable_that_runs_code_in_hooks_denies_unless_the_guard_was_installed_with_it() {
    let guarded = Guarded::new();
    let script = guarded.place.at("script.sh");
    fs::write(&script, "").unwrap();
    let install = |value: Option<&PathBuf>| {
        let mut command = guarded.place.command(&["guard", "install", "claude"]);
        command.env("HOME", guarded.place.at("user")).env_remove("BASH_ENV");
        value.into_iter().for_each(|value| _ = command.env("BASH_ENV", value));
        let installed = command.output().unwrap();
        assert!(installed.status.success(), "{}", text(&installed));
    };
    let call = || {
        let line = format!("BASH_ENV='{}'; export BASH_ENV; {}", script.display(), guarded.line("PreToolUse"));
        call(&line, &guarded.place.at("workspace").display().to_string(), "t-1", "ls")
    };
    install(None);
    let denied = call();
    assert_eq!(denied.status.code(), Some(2));
    assert!(text(&denied).contains("the variable `BASH_ENV` of the agent runs other code"), "{}", text(&denied));
    install(Some(&script));
    let allowed = call();
    assert_eq!(allowed.status.code(), Some(0), "{}", text(&allowed));
}

fn answering(approval: &OpenApproval, option: &str) -> SubmittedAnswer {
    let by = Actor { name: "ann".to_owned(), via: "console".to_owned() };
    let answer = ApprovalAnswer { by: Some(by), ..option.into() };
    SubmittedAnswer { answer, nonce: approval.nonce.clone(), scope: AnswerScope::Once }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_request_is_answered_in_the_console_while_the_agent_waits() {
    let guarded = Guarded::new();
    let rules = "hooks:\n  - rule: ask-deploy\n    on: tool:pre\n    when: tool_name == \"Bash\" && tool_input.command.contains(\"deploy\")\n    ask: Deploy now?\n    options: [Allow once, Deny]\n";
    guarded.place.write("home/bundle.yaml", rules);
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    // Nobody can answer, so nobody is waited for.
    assert!(text(&guarded.call("t-0", "deploy")).contains("nobody can be asked; run `amplifier approvals watch`"));

    let hub = Hub::new();
    let _listener = LinkListener::open(&Home::at(guarded.place.at("home")).server_folder(), hub.clone()).unwrap();
    let (line, folder) = (guarded.line("PreToolUse"), guarded.place.at("workspace").display().to_string());
    for (id, option, code) in [("t-1", "Allow once", 0), ("t-2", "Deny", 2)] {
        let (line, folder) = (line.clone(), folder.clone());
        let called = tokio::task::spawn_blocking(move || call(&line, &folder, id, "deploy"));
        let asked = async {
            loop {
                match hub.pending().pop() {
                    Some(approval) => return approval,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let approval = tokio::time::timeout(LIMIT, asked).await.unwrap();
        assert_eq!((approval.session.as_str(), approval.prompt.as_str()), ("session-1", "Deploy now?"));
        assert_eq!(approval.preview.body[0].text, "deploy");
        hub.answer(&approval.id, answering(&approval, option)).await.unwrap();
        let output = called.await.unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
    }
    let tail = guarded.place.amplifier(&["audit", "tail", "--json", "--session", "session-1"]).fine();
    assert!(tail.contains("\"ann\""), "{tail}");
}
