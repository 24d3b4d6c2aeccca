//! `amplifier guard install --system`: one installation for all users, each with a daemon of their own.

use std::process::{Command, Output};

use super::{Guarded, text};
use crate::common::is_possible;

/// A system with this program for all users, its own `/etc`, and a home folder that no variable names.
const SYSTEM: &str = "
    mount -t tmpfs -o mode=755 tmpfs /opt; mkdir /opt/bin /opt/ada; mount -t tmpfs -o mode=755 tmpfs /etc
    touch /opt/bin/amplifier; mount --bind $AMPLIFIER /opt/bin/amplifier
    echo 'root:x:0:0::/opt/ada:/bin/sh' >/etc/passwd
    stop() { for process in /proc/[0-9]*; do
        if tr '\\0' ' ' <$process/cmdline | grep -q '^/opt/bin/amplifier guard daemon'; then kill -9 ${process#/proc/}; fi
    done 2>/dev/null; }
    trap stop EXIT
";

fn in_system(guarded: &Guarded, script: &str) -> Option<Output> {
    if !is_possible(&[]) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-Urmpf", "--mount-proc", "bash", "-euc", &format!("{SYSTEM}{script}")]).env_clear();
    command.current_dir(guarded.place.at("workspace")).env("AMPLIFIER", env!("CARGO_BIN_EXE_amplifier"));
    // Each of these could be set by a repository.
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", guarded.place.at("user"));
    command.env("XDG_DATA_HOME", guarded.place.at("home")).env("AMPLIFIER_HOME", guarded.place.at("home"));
    Some(command.output().unwrap())
}

#[test]
fn every_client_with_settings_of_the_system_is_guarded_and_tested() {
    let guarded = Guarded::new();
    let script = "umask 077
        /opt/bin/amplifier guard install --system --all >/opt/output || { cat /opt/output; exit 1; }
        grep checked /opt/output; stat -c '%a %U %n' /etc/*/*.json /etc/*/*/*.json /etc/codex/* /etc/codex /etc/claude-code/managed-settings.d
        /opt/bin/amplifier guard test; ls -d /opt/ada/.local/share/amplifier/{audit,guard}; ls -A $AMPLIFIER_HOME
        /opt/bin/amplifier guard uninstall --system --all >/opt/output; find /etc -type f";
    let Some(output) = in_system(&guarded, script) else { return };
    assert!(output.status.success(), "{}", text(&output));
    let expected = "claude: changed, checked
codex: changed, checked
gemini: changed, checked
copilot: changed, checked
cursor: changed, checked
644 root /etc/cursor/hooks.json
644 root /etc/gemini-cli/settings.json
644 root /etc/claude-code/managed-settings.d/amplifier-guard.json
644 root /etc/github-copilot/policy.d/amplifier-guard.json
644 root /etc/codex/requirements.toml
755 root /etc/codex
755 root /etc/claude-code/managed-settings.d
claude (system): denied and recorded
codex (system): denied and recorded
gemini (system): denied and recorded
copilot (system): denied and recorded
cursor (system): denied and recorded
/opt/ada/.local/share/amplifier/audit
/opt/ada/.local/share/amplifier/guard
bundle.yaml
/etc/passwd
/etc/gemini-cli/settings.json
/etc/cursor/hooks.json
";
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(lines(&String::from_utf8_lossy(&output.stdout)), lines(expected), "{}", text(&output));
}

#[test]
fn a_switch_of_a_project_does_not_count_against_the_system() {
    let guarded = Guarded::new();
    let script = "/opt/bin/amplifier guard install --system claude gemini >/opt/output
        mkdir .claude .gemini; echo '{\"disableAllHooks\": true}' >.claude/settings.json
        echo '{\"hooksConfig\": {\"enabled\": false}}' >.gemini/settings.json
        $AMPLIFIER guard status | grep -A1 active
        name=$(grep -o 'hook-[0-9a-f]*' /etc/gemini-cli/settings.json | head -1)
        echo \"{\\\"hooksConfig\\\": {\\\"disabled\\\": [\\\"$name\\\"]}}\" >.gemini/settings.json
        /opt/bin/amplifier guard status | grep 'gemini:'";
    let Some(output) = in_system(&guarded, script) else { return };
    let shown = text(&output);
    assert!(shown.contains("claude: active (system)") && shown.contains("gemini: active (system)"), "{shown}");
    assert!(shown.contains("gemini: NOT ACTIVE, installed (system)"), "{shown}");
}

#[test]
fn a_program_that_others_could_replace_is_refused() {
    let guarded = Guarded::new();
    let script =
        "chmod 777 /opt/bin; /opt/bin/amplifier guard install --system claude || echo code $?; find /etc -type f";
    let Some(output) = in_system(&guarded, script) else { return };
    let shown = text(&output);
    assert!(shown.contains("`/opt/bin` can be changed by another user than the administrator"), "{shown}");
    assert!(shown.contains("code 2\n/etc/passwd\n"), "{shown}");
}

#[test]
fn a_client_without_settings_of_the_system_is_refused() {
    let guarded = Guarded::new();
    let refused = guarded.guard(&["install", "opencode", "--system", "--dry-run"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("opencode has no settings of the system"), "{}", text(&refused));
}
