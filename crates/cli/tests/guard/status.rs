//! `amplifier guard status` and the check of `amplifier doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::{Value, json};

use super::{Guarded, text};

fn installed(client: &str) -> Guarded {
    let guarded = Guarded::new();
    let output = guarded.guard(&["install", client]);
    assert!(output.status.success(), "{}", text(&output));
    guarded
}

fn status_of(output: &Output, client: &str) -> Value {
    let list: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(output)));
    list.as_array().unwrap().iter().find(|one| one["client"] == client).unwrap().clone()
}

fn doctor(guarded: &Guarded) -> String {
    let mut command = guarded.place.command(&["doctor"]);
    text(&command.env("HOME", guarded.place.at("user")).output().unwrap())
}

#[test]
fn status_names_the_last_call_and_the_last_canary() {
    let guarded = installed("claude");
    let before = status_of(&guarded.guard(&["status", "--json"]), "claude");
    assert!(before["last_canary"].is_string() && before["last_call"].is_null(), "{before}");
    assert_eq!((&before["is_active"], &before["is_trusted"]), (&json!(true), &json!(null)));
    guarded.call("t-1", "git status");
    let after = status_of(&guarded.guard(&["status", "--json"]), "claude");
    assert!(after["last_call"].as_str() > before["last_canary"].as_str(), "{after}");
    assert!(text(&guarded.guard(&["status"])).contains("codex: not installed"));
    assert!(doctor(&guarded).contains("guard          1 guarded agent: claude"), "{}", doctor(&guarded));
}

#[test]
fn the_last_calls_are_found_without_reading_the_whole_log() {
    let guarded = installed("claude");
    guarded.call("t-1", "git status");
    guarded.kill_daemons();
    // The beginning of the log cannot be read, and nothing of it is needed.
    let segment = "home/audit/seg-000001.jsonl";
    let text = guarded.place.read(segment);
    let canary = text.lines().position(|line| line.contains("canary-")).unwrap();
    let damaged: Vec<&str> = text.lines().enumerate().map(|(at, line)| if at < canary { "{}" } else { line }).collect();
    guarded.place.write(segment, &(damaged.join("\n") + "\n"));
    let status = status_of(&guarded.guard(&["status", "--json"]), "claude");
    assert!(status["last_canary"].is_string() && status["last_call"].is_string(), "{status}");
}

#[test]
fn a_line_of_an_earlier_version_is_active_and_can_be_replaced() {
    let guarded = installed("claude");
    let settings = fs::read_to_string(guarded.settings()).unwrap();
    let before = settings.replace("exec /bin/sh -c 'trap : HUP INT PIPE QUIT TERM; ", "/bin/sh -c '");
    assert_ne!(before, settings);
    fs::write(guarded.settings(), before).unwrap();
    let shown = guarded.guard(&["status"]);
    assert_eq!(shown.status.code(), Some(1));
    assert!(text(&shown).contains("claude: active (user)"), "{}", text(&shown));
    assert!(text(&shown).contains("are of an earlier version; install again"), "{}", text(&shown));
    assert!(guarded.guard(&["test"]).status.success());
    assert!(guarded.guard(&["install", "claude"]).status.success());
    assert_eq!(
        (fs::read_to_string(guarded.settings()).unwrap(), guarded.guard(&["status"]).status.code()),
        (settings, Some(0))
    );
}

#[test]
fn a_switch_is_named_with_its_file_and_its_remedy() {
    let guarded = installed("claude");
    fs::create_dir(guarded.place.at("workspace/.claude")).unwrap();
    guarded.place.write("workspace/.claude/settings.json", "{\"disableAllHooks\": true}");
    let shown = guarded.guard(&["status", "--json"]);
    assert_eq!(shown.status.code(), Some(1));
    let status = status_of(&shown, "claude");
    assert_eq!(status["is_active"], false);
    let switch = &status["switches"][0];
    assert_eq!(switch["setting"], "`disableAllHooks` is set");
    assert!(switch["file"].as_str().unwrap().ends_with("workspace/.claude/settings.json"));
    assert!(switch["remedy"].as_str().unwrap().ends_with("`sudo amplifier guard install claude --system`"));
    let shown = text(&guarded.guard(&["status"]));
    assert!(shown.contains("claude: NOT ACTIVE, installed (user)"), "{shown}");
    assert!(doctor(&guarded).contains("✗ guard          claude: `disableAllHooks` is set in"), "{}", doctor(&guarded));
}

#[test]
fn a_changed_entry_is_not_active() {
    let guarded = installed("claude");
    let settings = fs::read_to_string(guarded.settings()).unwrap();
    for (from, to, expected) in [
        ("\"matcher\": \"*\"", "\"matcher\": \"Bash\"", "at PreToolUse, `matcher` is \"Bash\""),
        ("\"timeout\": ", "\"async\": true, \"timeout\": ", "at PreToolUse, `async` is true"),
        ("\"timeout\": 330", "\"timeout\": 30", "at PreToolUse, the time limit 30 ends before the hook denies"),
        ("\"PreToolUse\"", "\"PreToolUses\"", "no hook for PreToolUse"),
    ] {
        fs::write(guarded.settings(), settings.replacen(from, to, 1)).unwrap();
        let shown = guarded.guard(&["status"]);
        assert_eq!(shown.status.code(), Some(1), "{}", text(&shown));
        assert!(text(&shown).contains(expected), "{}", text(&shown));
    }
    // Installing again repairs it.
    assert!(guarded.guard(&["install", "claude"]).status.success());
    assert_eq!(guarded.guard(&["status"]).status.code(), Some(0));
}

#[test]
fn lost_trust_of_codex_is_not_active_until_the_next_installation() {
    let guarded = installed("codex");
    let status = status_of(&guarded.guard(&["status", "--json"]), "codex");
    assert_eq!((&status["is_active"], &status["is_trusted"]), (&json!(true), &json!(true)));
    // A group before ours moves its position, which the trust names.
    let file = "user/.codex/hooks.json";
    let settings = guarded.place.read(file);
    let other = "\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}, ";
    guarded.place.write(file, &settings.replacen("\"PreToolUse\": [", other, 1));
    let status = status_of(&guarded.guard(&["status", "--json"]), "codex");
    assert_eq!((&status["is_active"], &status["is_trusted"]), (&json!(false), &json!(false)));
    assert!(guarded.guard(&["install", "codex"]).status.success());
    let status = status_of(&guarded.guard(&["status", "--json"]), "codex");
    assert_eq!((&status["is_active"], &status["is_trusted"]), (&json!(true), &json!(true)));
}

#[test]
fn variables_that_move_settings_are_followed() {
    let guarded = Guarded::new();
    let variables = [
        ("CLAUDE_CONFIG_DIR", "moved/claude"),
        ("CODEX_HOME", "moved/codex"),
        ("COPILOT_HOME", "moved/copilot"),
        ("XDG_CONFIG_HOME", "moved/config"),
    ];
    let run = |arguments: &[&str]| {
        let mut command = guarded.place.command(&[&["guard"], arguments].concat());
        command.env("HOME", guarded.place.at("user"));
        for (name, folder) in variables {
            command.env(name, guarded.place.at(folder));
        }
        command.output().unwrap()
    };
    let installed = run(&["install", "claude", "codex", "copilot", "opencode"]);
    assert!(installed.status.success(), "{}", text(&installed));
    for file in [
        "claude/settings.json",
        "codex/hooks.json",
        "codex/config.toml",
        "copilot/hooks/amplifier-guard.json",
        "config/opencode/plugin/amplifier-guard.js",
    ] {
        assert!(guarded.place.at("moved").join(file).exists(), "{file}");
    }
    let status = run(&["status", "--json"]);
    for client in ["claude", "codex", "copilot", "opencode"] {
        assert_eq!(status_of(&status, client)["is_active"], true, "{client}: {}", text(&status));
    }
    assert!(guarded.place.read("home/guard/start").contains("CODEX_HOME="));
    // Switches are looked for at the same places.
    guarded.place.write("moved/claude/settings.local.json", "{\"disableAllHooks\": true}");
    assert_eq!(status_of(&run(&["status", "--json"]), "claude")["is_active"], false);
}

#[test]
fn a_version_that_nobody_measured_is_named_and_works() {
    let guarded = installed("claude");
    fs::create_dir(guarded.place.at("bin")).unwrap();
    let program = guarded.place.at("bin/claude");
    let run = |version: &str| {
        fs::write(&program, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", guarded.place.at("bin").display(), std::env::var("PATH").unwrap());
        let mut command = guarded.place.command(&["guard", "status"]);
        command.env("HOME", guarded.place.at("user")).env("PATH", path).output().unwrap()
    };
    let shown = run("9.0.1");
    assert!(shown.status.success());
    assert!(text(&shown).contains("version 9.0.1 was not measured, only 2.1.325 and 2.1.328"), "{}", text(&shown));
    assert!(text(&run("2.1.325")).contains("claude: active (user); version 2.1.325\n"));
}
