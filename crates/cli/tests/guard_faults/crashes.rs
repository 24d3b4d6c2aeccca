//! Daemons that are killed, replaced and started several times while calls run.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{FORBIDDEN, check_log, recorded};
use crate::common::{LIMIT, Place};
use crate::guard::{Guarded, call, text};

const CALLERS: usize = 4;

/// A call that has ended.
struct EndedCall {
    id: String,
    is_allowed: bool,
    /// `true` if the policy denied it, not a failure.
    is_policy: bool,
}

/// Calls the hook in several threads, every third time with a forbidden command.
fn start_callers(line: &str, place: &Place, calls: usize) -> Vec<JoinHandle<Vec<EndedCall>>> {
    let (line, folder): (Arc<str>, Arc<str>) = (line.into(), place.at("workspace").display().to_string().into());
    let callers = (0..CALLERS).map(|caller| {
        let (line, folder) = (line.clone(), folder.clone());
        thread::spawn(move || {
            let call = |number| {
                let id = format!("t-{caller}-{number}");
                let is_forbidden = number % 3 == 0;
                let command = if is_forbidden { FORBIDDEN } else { "git status" };
                let output = call(&line, &folder, &id, command);
                let is_allowed = output.status.success();
                assert!(is_allowed || output.status.code() == Some(2), "{}", text(&output));
                assert!(!(is_allowed && is_forbidden), "{id}");
                EndedCall { id, is_allowed, is_policy: text(&output).contains("no-force-push") }
            };
            (0..calls / CALLERS).map(call).collect()
        })
    });
    callers.collect()
}

/// Checks that the log has an intent for each allowed call, and a denial for each that the policy denied. Returns the numbers of both.
fn check_records(place: &Place, callers: Vec<JoinHandle<Vec<EndedCall>>>) -> (usize, usize) {
    let calls: Vec<EndedCall> = callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
    let folder = place.at("home/audit");
    let (intents, denials) = (recorded(&folder, &["\"intent\""]), recorded(&folder, &["no-force-push"]));
    let without = |known: &HashSet<String>, is_lost: fn(&EndedCall) -> bool| -> Vec<String> {
        let lost = calls.iter().filter(|call| is_lost(call) && !known.contains(&call.id));
        lost.map(|call| call.id.clone()).collect()
    };
    assert_eq!(without(&intents, |call| call.is_allowed), [""; 0], "allowed without a record");
    assert_eq!(without(&denials, |call| call.is_policy), [""; 0], "denied without a record");
    check_log(place);
    let count = |is: fn(&EndedCall) -> bool| calls.iter().filter(|call| is(call)).count();
    (count(|call| call.is_allowed), count(|call| call.is_policy))
}

#[test]
fn a_daemon_killed_during_a_thousand_calls_lets_nothing_through_and_loses_no_acknowledged_record() {
    let guarded = Guarded::installed();
    let callers = start_callers(&guarded.line("PreToolUse"), &guarded.place, 1_000);
    let mut kills = 0;
    while callers.iter().any(|caller| !caller.is_finished()) {
        kills += guarded.daemons().len();
        guarded.kill_daemons();
        // Long enough for some calls, also on a slow machine.
        for between in 0..10 {
            _ = guarded.call(&format!("t-between-{between}"), "git status");
        }
    }
    let (allowed, denied) = check_records(&guarded.place, callers);
    assert!(allowed > 0 && denied > 0 && kills > 1, "{allowed} allowed, {denied} denied, {kills} kills");
}

/// Copies the program in a process of its own: one that this process writes cannot run while another thread starts something.
fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_amplifier")).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn an_upgrade_while_calls_run_denies_no_allowed_call_and_loses_no_record() {
    let guarded = Guarded::new();
    let program = guarded.place.at("amplifier");
    copy_program(&program);
    let install = |guarded: &Guarded| {
        let mut command = Command::new(&program);
        command.args(["guard", "install", "claude"]).env_clear().current_dir(guarded.place.at("workspace"));
        command.env("AMPLIFIER_HOME", guarded.place.at("home")).env("HOME", guarded.place.at("user"));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let installed = command.output().unwrap();
        assert!(installed.status.success(), "{}", text(&installed));
    };
    install(&guarded);
    let first = guarded.daemons();
    let callers = start_callers(&guarded.line("PreToolUse"), &guarded.place, 200);
    let mut daemons: HashSet<i32> = first.into_iter().collect();
    while callers.iter().any(|caller| !caller.is_finished()) {
        let new = guarded.place.at("new");
        copy_program(&new);
        fs::rename(&new, &program).unwrap();
        for between in 0..5 {
            assert!(guarded.call(&format!("t-between-{between}"), "git status").status.success());
        }
        daemons.extend(guarded.daemons());
    }
    let (allowed, denied) = check_records(&guarded.place, callers);
    // Each call was decided by a daemon, an old or a new one.
    assert_eq!(allowed + denied, 200 / CALLERS * CALLERS);
    assert!(daemons.len() > 1, "no daemon was replaced");
}

#[test]
fn of_daemons_that_start_at_the_same_time_one_remains_and_answers() {
    let guarded = Guarded::installed();
    guarded.kill_daemons();
    let null = || Stdio::from(File::options().read(true).write(true).open("/dev/null").unwrap());
    let folder = guarded.place.at("home/guard").display().to_string();
    let start = |_| {
        let mut command = guarded.place.command(&["guard", "daemon", "--folder", &folder]);
        command.stdin(null()).stdout(null()).stderr(null()).spawn().unwrap()
    };
    let mut started: Vec<_> = (0..6).map(start).collect();
    let callers = start_callers(&guarded.line("PreToolUse"), &guarded.place, 40);
    let (allowed, denied) = check_records(&guarded.place, callers);
    assert_eq!(allowed + denied, 40);
    let begun = Instant::now();
    while guarded.daemons().len() > 1 && begun.elapsed() < LIMIT {
        for child in &mut started {
            _ = child.try_wait();
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(guarded.daemons().len(), 1);
    guarded.kill_daemons();
    for mut child in started {
        child.wait().unwrap();
    }
}
