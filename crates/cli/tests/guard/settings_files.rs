//! Settings files that cannot be changed, or only in part: nothing is half-written.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use serde_json::Value;

use super::{Guarded, text};
use crate::common::is_possible;

fn problem(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report[0]["problem"].as_str().unwrap().to_owned()
}

#[test]
fn settings_that_are_not_json_are_left_alone() {
    let guarded = Guarded::new();
    for before in ["{ // mine\n}", "{", "not json", "{\"hooks\": null}", "[]"] {
        fs::write(guarded.settings(), before).unwrap();
        let found = problem(&guarded.guard(&["install", "claude", "--json"]));
        assert!(found.contains("so nothing was changed"), "{found}");
        assert_eq!(fs::read_to_string(guarded.settings()).unwrap(), before);
    }
}

#[test]
fn comments_and_line_ends_are_kept() {
    let guarded = Guarded::new();
    fs::create_dir(guarded.place.at("user/.gemini")).unwrap();
    let before = "{\r\n  // mine\r\n  \"hooks\": {},\r\n  \"theme\": \"dark\"\r\n}\r\n";
    guarded.place.write("user/.gemini/settings.json", before);
    let installed = guarded.guard(&["install", "gemini"]);
    assert!(installed.status.success(), "{}", text(&installed));
    let after = guarded.place.read("user/.gemini/settings.json");
    assert!(after.starts_with("{\r\n  // mine\r\n  \"hooks\": {\r\n"), "{after}");
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    assert!(text(&guarded.guard(&["status"])).contains("gemini: active (user)"));
}

#[test]
fn links_are_written_through_to_their_target() {
    let guarded = Guarded::new();
    fs::create_dir(guarded.place.at("dotfiles")).unwrap();
    // A relative link to a link to a file that does not exist yet.
    symlink("../../dotfiles/link.json", guarded.settings()).unwrap();
    symlink("claude.json", guarded.place.at("dotfiles/link.json")).unwrap();
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    assert!(guarded.settings().is_symlink() && guarded.place.at("dotfiles/link.json").is_symlink());
    assert!(guarded.place.read("dotfiles/claude.json").contains("PreToolUse"));
}

#[test]
fn a_change_of_two_files_is_undone_if_the_second_one_fails() {
    let guarded = Guarded::new();
    let codex = guarded.place.at("user/.codex");
    fs::create_dir(&codex).unwrap();
    fs::write(codex.join("hooks.json"), "{ }\n").unwrap();
    // The trust would be written into a folder that is missing below a file.
    symlink("hooks.json/config.toml", codex.join("config.toml")).unwrap();
    let failed = guarded.guard(&["install", "codex", "--json"]);
    assert!(problem(&failed).contains("config.toml"), "{}", text(&failed));
    assert_eq!(fs::read_to_string(codex.join("hooks.json")).unwrap(), "{ }\n");
}

/// Runs a script with this program in namespaces of its own, in which it can mount.
fn in_namespace(guarded: &Guarded, script: &str) -> Option<Output> {
    if !is_possible(&[]) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-Urm", "bash", "-euc", script]).current_dir(guarded.place.at("workspace")).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("AMPLIFIER", env!("CARGO_BIN_EXE_amplifier"));
    command.env("AMPLIFIER_HOME", guarded.place.at("home")).env("HOME", guarded.place.at("user"));
    Some(command.output().unwrap())
}

#[test]
fn a_full_disk_leaves_the_settings_as_they_were() {
    let guarded = Guarded::new();
    let script = "mount -t tmpfs -o size=16k tmpfs $HOME/.claude; echo '{ \"model\": \"opus\" }' >$HOME/.claude/settings.json
        head -c 12k /dev/zero >$HOME/.claude/full || true; code=0
        $AMPLIFIER guard install claude --json || code=$?; ls -A $HOME/.claude >&2; cat $HOME/.claude/settings.json >&2; exit $code";
    let Some(output) = in_namespace(&guarded, script) else { return };
    assert!(problem(&output).contains("No space left on device"), "{}", text(&output));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "full\nsettings.json\n{ \"model\": \"opus\" }\n");
}

#[test]
fn a_read_only_home_is_left_as_it_was() {
    let guarded = Guarded::new();
    fs::write(guarded.settings(), "{}\n").unwrap();
    let script =
        "mount --bind $HOME $HOME; mount -o remount,bind,ro $HOME; exec $AMPLIFIER guard install claude --json";
    let Some(output) = in_namespace(&guarded, script) else { return };
    assert!(problem(&output).contains("Read-only file system"), "{}", text(&output));
    assert_eq!(fs::read_to_string(guarded.settings()).unwrap(), "{}\n");
}

#[test]
fn without_a_home_nothing_is_installed() {
    let guarded = Guarded::new();
    let mut command = guarded.place.command(&["guard", "install", "claude"]);
    let output = command.env("HOME", "relative").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("no home folder found; set HOME"), "{}", text(&output));
}
