//! The hook program, beside daemons that behave well and badly.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "a test may fail loudly")]

mod package;
mod signals;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        Self(folder)
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn socket(&self) -> PathBuf {
        self.folder().join("socket")
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier-hook"));
        command.args(["--client", "claude", "--folder"]).arg(self.folder()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn run(&self, arguments: &[&str], payload: &[u8]) -> Output {
        let mut child = self.start(arguments);
        // A program that has denied does not read on.
        _ = child.stdin.take().unwrap().write_all(payload);
        child.wait_with_output().unwrap()
    }

    /// A daemon that answers one call.
    fn daemon(&self, answer: impl FnOnce(Request, UnixStream) + Send + 'static) -> JoinHandle<()> {
        let listener = UnixListener::bind(self.socket()).unwrap();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            answer(Request::read(&stream), stream);
        })
    }
}

#[derive(Debug)]
struct Request {
    header: Vec<(String, String)>,
    payload: Vec<u8>,
}

impl Request {
    fn read(stream: &UnixStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "amplifier-guard 1\n");
        let mut header = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end_matches('\n').split_once(' ') else { break };
            header.push((name.to_owned(), value.to_owned()));
        }
        let length = header.iter().find(|(name, _)| name == "length").unwrap().1.parse().unwrap();
        let mut payload = vec![0; length];
        reader.read_exact(&mut payload).unwrap();
        Self { header, payload }
    }

    fn get(&self, name: &str) -> &str {
        &self.header.iter().find(|(known, _)| known == name).unwrap().1
    }
}

fn check_denied(output: &Output, expected: &str) {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(expected), "{stderr}");
    let stdout: Value = serde_json::from_slice(&output.stdout).unwrap();
    for field in ["/permissionDecision", "/permission", "/hookSpecificOutput/permissionDecision"] {
        assert_eq!(stdout.pointer(field).unwrap(), "deny");
    }
    assert_eq!(stdout["decision"], "block");
    assert_eq!(stdout["reason"].as_str().unwrap(), stderr.trim_end());
}

#[test]
fn the_answer_of_the_daemon_is_printed_as_it_is() {
    let place = Place::new();
    let daemon = place.daemon(|request, mut stream| {
        assert_eq!(request.payload, b"{\"a\":\xff\0}\n");
        assert_eq!((request.get("client"), request.get("event")), ("claude", "PreToolUse"));
        let left: u64 = request.get("deadline").parse().unwrap();
        assert!(left > 5000 && left < 9800, "{left}");
        write!(stream, "amplifier-guard 1 {} 2 3 4\nout\nerr", request.get("nonce")).unwrap();
    });
    let output = place.run(&["--event", "PreToolUse", "--deadline", "10000"], b"{\"a\":\xff\0}\n");
    daemon.join().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..], &output.stderr[..]), (Some(2), &b"out"[..], &b"\nerr"[..]));
}

#[test]
fn variables_that_run_code_in_hooks_are_told_to_the_daemon() {
    let place = Place::new();
    let daemon = place.daemon(|request, mut stream| {
        let told = request.header.iter().filter(|(name, _)| name == "variable").map(|(_, value)| value.as_str());
        assert_eq!(told.collect::<Vec<_>>(), ["BASH_ENV=2f78"]);
        writeln!(stream, "amplifier-guard 1 {} 0 0 0", request.get("nonce")).unwrap();
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_amplifier-hook"));
    command.args(["--client", "claude", "--folder"]).arg(place.folder()).env("BASH_ENV", "/x").env("LD_AUDIT", "");
    assert!(command.stdin(Stdio::null()).status().unwrap().success());
    daemon.join().unwrap();
}

#[test]
fn a_payload_of_many_megabytes_arrives_whole() {
    let place = Place::new();
    let payload: Vec<u8> = (0..12 << 20).map(|number| number as u8).collect();
    let sent = payload.clone();
    let daemon = place.daemon(move |request, mut stream| {
        assert!(request.payload == sent);
        writeln!(stream, "amplifier-guard 1 {} 0 0 0", request.get("nonce")).unwrap();
    });
    let output = place.run(&[], &payload);
    daemon.join().unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(0), 0, 0));
}

#[test]
fn a_broken_answer_denies() {
    for answer in [
        "",
        "\n",
        "allow",
        "amplifier-guard 1\n",
        "amplifier-guard 1 NONCE 0\n",
        "amplifier-guard 1 NONCE 0 0 0",
        "amplifier-guard 1 NONCE 1 0 0\n",
        "amplifier-guard 1 NONCE 0 5 0\nabc",
        "amplifier-guard 1 NONCE 0 0 0\nabc",
        "amplifier-guard 1 NONCE 0 0 0 0\n",
        "amplifier-guard 1 0000 0 0 0\n",
        "amplifier-guard 2 NONCE 0 0 0\n",
        "amplifier-guard 2 version\n",
        "amplifier-guard 12 NONCE 0 0 0\n",
        "amplifier-guard 1 NONCE 0 18446744073709551615 1\n",
        "amplifier-guard 1 NONCE -0 0 0\n",
    ] {
        let place = Place::new();
        let daemon = place.daemon(move |request, mut stream| {
            stream.write_all(answer.replace("NONCE", request.get("nonce")).as_bytes()).unwrap();
        });
        let output = place.run(&[], b"{}");
        daemon.join().unwrap();
        let expected = match answer {
            "" => "the daemon gave no answer",
            other if other.starts_with("amplifier-guard 2") || other.starts_with("amplifier-guard 12") => {
                "the daemon has another version than this program; run `amplifier guard install` again"
            }
            _ => "answer of the daemon is broken",
        };
        check_denied(&output, expected);
    }
}

#[test]
fn a_call_whose_daemon_ends_is_decided_by_the_next_one() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let daemons = thread::spawn(move || {
        // The first one reads the request, and is gone.
        let (stream, _) = listener.accept().unwrap();
        Request::read(&stream);
        drop(stream);
        let (mut stream, _) = listener.accept().unwrap();
        let request = Request::read(&stream);
        writeln!(stream, "amplifier-guard 1 {} 0 0 0", request.get("nonce")).unwrap();
    });
    let output = place.run(&[], b"{}");
    daemons.join().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
}

#[test]
fn a_daemon_that_does_not_answer_is_not_waited_for_longer_than_the_deadline() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let started = Instant::now();
    let output = place.run(&["--deadline", "300"], b"{}");
    check_denied(&output, "no decision within the time limit");
    assert!(started.elapsed() < Duration::from_secs(30));
    drop(listener);
}

#[test]
fn a_standard_input_that_stays_open_is_not_waited_for_longer_than_the_deadline() {
    let place = Place::new();
    let mut child = place.start(&["--deadline", "200"]);
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    check_denied(&output, "no decision within the time limit");
}

#[test]
fn without_a_daemon_the_call_is_denied() {
    let place = Place::new();
    check_denied(&place.run(&[], b"{}"), "run `amplifier guard install` again");
    fs::write(place.folder().join("start"), "program=/nonexistent/\"amplifier\"\n").unwrap();
    check_denied(&place.run(&[], b"{}"), "cannot be started");
    // A daemon that fails leaves its reason. That of an earlier one does not count.
    fs::write(place.folder().join("error"), "an earlier reason").unwrap();
    fs::write(place.folder().join("start"), "program=/bin/false\n").unwrap();
    check_denied(&place.run(&[], b"{}"), "the daemon cannot start: exit status: 1");
    let program = place.folder().join("fails");
    fs::write(&program, "#!/bin/sh\necho 'the disk is full' > \"$4/error\"\nexit 1\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::write(place.folder().join("start"), format!("program={}\n", program.display())).unwrap();
    check_denied(&place.run(&[], b"{}"), "the daemon cannot start: the disk is full");
    // A socket that nobody listens on.
    drop(UnixListener::bind(place.socket()).unwrap());
    check_denied(&place.run(&[], b"{}"), "the daemon cannot start");
}

#[test]
fn the_daemon_starts_with_the_environment_of_its_installation_and_inherits_no_output() {
    let place = Place::new();
    let program = place.folder().join("fake");
    // Lives on after the hook: with an inherited output, the test would wait for it.
    fs::write(&program, "#!/bin/sh\n/usr/bin/env > \"$4.env\"\necho \"$@\" >&2\nexec /bin/sleep 20\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::write(place.folder().join("start"), format!("program={}\nNAME=a=b\n", program.display())).unwrap();
    let started = Instant::now();
    check_denied(&place.run(&["--deadline", "2000"], b"{}"), "");
    assert!(started.elapsed() < Duration::from_secs(15));
    let environment = fs::read_to_string(format!("{}.env", place.folder().display())).unwrap();
    fs::remove_file(format!("{}.env", place.folder().display())).unwrap();
    assert!(environment.contains("NAME=a=b") && !environment.contains("CARGO"), "{environment}");
}

#[test]
fn a_folder_that_others_can_use_is_refused() {
    let place = Place::new();
    fs::set_permissions(place.folder(), Permissions::from_mode(0o770)).unwrap();
    check_denied(&place.run(&[], b"{}"), "is not private");
}

#[test]
fn a_wrong_command_line_denies() {
    let place = Place::new();
    for (arguments, expected) in [
        (&["--deadline", "soon"][..], "expected milliseconds"),
        (&["--deadline", "0"], "expected milliseconds"),
        (&["--deadline"], "has no value"),
        (&["--alow"], "unknown argument `--alow`"),
        (&["--event", "a\nb"], "invalid value of `--event`"),
    ] {
        check_denied(&place.run(arguments, b"{}"), expected);
    }
    let output = Command::new(env!("CARGO_BIN_EXE_amplifier-hook")).output().unwrap();
    check_denied(&output, "`--client` is missing");
}

#[test]
fn a_failure_at_an_event_without_a_gate_is_only_a_remark() {
    let place = Place::new();
    let output = place.run(&["--observe"], b"{}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(!output.stderr.is_empty());
}

#[test]
fn the_shell_of_the_configured_line_denies_what_the_program_cannot() {
    let line = |program: &str| {
        format!("{program}; [ $? = 0 ] || {{ echo \"amplifier guard: this call is denied\" >&2; exit 2; }}")
    };
    for (program, code) in [
        ("/nonexistent/amplifier-hook", 2),
        ("/bin/sh -c 'kill -9 $$'", 2),
        ("/bin/sh -c 'kill -15 $$'", 2),
        ("/bin/sh -c 'exit 1'", 2),
        ("/bin/sh -c 'exit 2'", 2),
        ("/bin/sh -c 'exit 0'", 0),
    ] {
        let output = Command::new("/bin/sh").arg("-c").arg(line(program)).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{program}");
        // Some clients take exit code 2 for a denial only if there is text.
        assert_eq!(output.stderr.is_empty(), code == 0, "{program}");
    }
}
