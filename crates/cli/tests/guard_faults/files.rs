//! Homes that cannot be written, full disks, and homes that are gone. Mounts are made in a namespace of their own.

#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Command, Output};

use amplifier_guard::Client;
use serde_json::json;

use super::{FORBIDDEN, check_denied, check_log, payload, run, shell_payload};
use crate::guard::{Guarded, text};

/// A call of the hook, in the script of a namespace: its output is in files with this number.
const CALL: &str = r#"call() {
    code=0
    # Another call each time: an arrival of the same one would get the same answer.
    sed "s/t-number/t-$1/g" "$PLACE/$2" > "$PLACE/payload"
    "$AMPLIFIER" guard hook --client claude --event PreToolUse --deadline 60000 --folder "$PLACE/home/guard" \
        < "$PLACE/payload" > "$PLACE/out.$1" 2> "$PLACE/err.$1" || code=$?
    echo $code > "$PLACE/code.$1"
}
end_daemon() {
    for process in /proc/[0-9]*; do
        case $(tr '\0' ' ' < "$process/cmdline" 2>/dev/null) in
            *"daemon --folder $PLACE/home/guard"*) kill -9 "${process#/proc/}";;
        esac
    done
}
"#;

impl Guarded {
    /// Runs a script with mounts of its own; none if this system does not allow that. The payloads are in `allowed` and `forbidden`.
    #[allow(clippy::print_stderr, reason = "whoever reads the output of the tests has to know")]
    fn in_namespace(&self, script: &str) -> Option<()> {
        for (name, command) in [("allowed", "git status"), ("forbidden", FORBIDDEN)] {
            // A record of it needs a new page: a full disk may have room in the last one.
            let input = json!({ "command": command, "description": "x".repeat(16 << 10) });
            let payload = payload(Client::Claude, &self.workspace(), "t-number", "Bash", &input);
            self.place.write(name, &payload.to_string());
        }
        let unshare = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--mount", "sh", "-euc", script]);
            command.env("AMPLIFIER", env!("CARGO_BIN_EXE_amplifier")).env("PLACE", self.place.at(""));
            run(&mut command, b"")
        };
        if !unshare("mount -t tmpfs tmpfs /mnt").status.success() {
            eprintln!("NOT TESTED: this system does not allow mounts in a namespace");
            return None;
        }
        let output = unshare(&format!("{CALL}{script}"));
        assert!(output.status.success(), "{}", text(&output));
        Some(())
    }

    /// The output of a call in a namespace.
    #[track_caller]
    fn check_called(&self, number: usize, code: &str, expected: &str) {
        let said =
            format!("{}{}", self.place.read(&format!("out.{number}")), self.place.read(&format!("err.{number}")));
        assert_eq!(self.place.read(&format!("code.{number}")).trim(), code, "{number}: {said}");
        assert!(said.contains(expected), "{number}: no `{expected}` in: {said}");
    }
}

#[test]
fn a_home_that_cannot_be_written_denies_and_says_why() {
    let guarded = Guarded::installed();
    guarded.kill_daemons();
    let script = r#"
        mount --bind "$PLACE/home" "$PLACE/home"
        mount -o remount,bind,ro "$PLACE/home"
        call 1 allowed
        call 2 forbidden
        end_daemon
    "#;
    if guarded.in_namespace(script).is_none() {
        return;
    }
    guarded.check_called(1, "2", "Read-only file system");
    guarded.check_called(2, "2", "Read-only file system");
    // Afterwards the guard works as before.
    assert!(guarded.call("t-1", "git status").status.success());
    check_log(&guarded.place);
}

#[test]
fn a_full_disk_denies_until_there_is_room_and_loses_no_acknowledged_record() {
    let guarded = Guarded::installed();
    guarded.kill_daemons();
    let script = r#"
        cp -a "$PLACE/home" "$PLACE/copy"
        mount -t tmpfs -o size=4m,mode=700 tmpfs "$PLACE/home"
        cp -a "$PLACE/copy/." "$PLACE/home"
        call 1 allowed
        call 2 forbidden
        # The daemon runs, and the disk is full.
        dd if=/dev/zero of="$PLACE/home/fill" bs=512 2> "$PLACE/dd" || true
        call 3 allowed
        call 4 forbidden
        # The daemon has to start, and the disk is full.
        end_daemon
        call 5 allowed
        call 6 forbidden
        rm "$PLACE/home/fill"
        end_daemon
        call 7 allowed
        call 8 forbidden
        end_daemon
        rm -r "$PLACE/copy"
        cp -a "$PLACE/home" "$PLACE/copy"
    "#;
    if guarded.in_namespace(script).is_none() {
        return;
    }
    assert!(guarded.place.read("dd").contains("No space left"), "{}", guarded.place.read("dd"));
    guarded.check_called(1, "0", "");
    guarded.check_called(2, "2", "Denied by hook no-force-push");
    for call in 3..=6 {
        guarded.check_called(call, "2", "No space left on device");
    }
    guarded.check_called(7, "0", "");
    guarded.check_called(8, "2", "Denied by hook no-force-push");
    // The log of the namespace.
    let home = guarded.place.at("home");
    fs::remove_dir_all(&home).unwrap();
    fs::rename(guarded.place.at("copy"), &home).unwrap();
    check_log(&guarded.place);
    for call in [1, 7] {
        assert!(guarded.has_record(&[&format!("\"canary-t-{call}\""), "\"intent\""]), "{call}");
    }
    for call in [2, 8] {
        guarded.check_denial_recorded(&format!("canary-t-{call}"));
    }
}

#[test]
fn a_home_that_is_gone_denies_and_a_missing_variable_changes_nothing() {
    let guarded = Guarded::installed();
    let payload = shell_payload(Client::Claude, &guarded.workspace(), "t-1", "git status").to_string();
    let line = guarded.line("PreToolUse");
    let call = || -> Output { run(Command::new("/bin/sh").args(["-c", &line]).env_clear(), payload.as_bytes()) };
    // The daemon starts with the variables of its installation.
    guarded.kill_daemons();
    let started = call();
    assert!(started.status.success(), "{}", text(&started));
    guarded.kill_daemons();
    fs::rename(guarded.place.at("home"), guarded.place.at("away")).unwrap();
    check_denied(Client::Claude, &call(), "home/guard` cannot be used");
    // Without a home, nothing is installed.
    let mut install = guarded.place.command(&["guard", "install", "claude"]);
    let refused = install.env_remove("AMPLIFIER_HOME").output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("HOME"), "{}", text(&refused));
}
