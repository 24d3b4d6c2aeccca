//! Signals to the hook program, in the line that settings of clients have: the call is denied.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use crate::Place;

impl Place {
    /// The hook program in its line, with a payload.
    fn start_line(&self) -> Child {
        let line = format!(
            "\"{}\" --client claude --deadline 60000 --folder \"{}\"; \
             [ $? = 0 ] || {{ echo \"amplifier guard: this call is denied\" >&2; exit 2; }}",
            env!("CARGO_BIN_EXE_amplifier-hook"),
            self.folder().display()
        );
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"{}").unwrap();
        child
    }
}

/// Returns the process that a shell waits for.
fn child_of(shell: &Child) -> String {
    let id = shell.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    children.split_whitespace().next().expect("the shell waits for the hook program").to_owned()
}

#[test]
fn a_signal_to_the_hook_program_denies() {
    for signal in ["HUP", "INT", "QUIT", "PIPE", "TERM", "USR1", "ABRT", "KILL"] {
        let place = Place::new();
        let listener = UnixListener::bind(place.socket()).unwrap();
        let shell = place.start_line();
        // The program waits for the answer.
        let (stream, _) = listener.accept().unwrap();
        let sent = Command::new("kill").args(["-s", signal, &child_of(&shell)]).status().unwrap();
        assert!(sent.success());
        // Without a daemon, a program that lives on denies, too.
        drop((stream, listener));
        let output = shell.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{signal}: {output:?}");
        assert!(!output.stderr.is_empty(), "{signal}");
    }
}

#[test]
fn an_answer_that_nobody_reads_is_a_denial() {
    let place = Place::new();
    let daemon = place.daemon(|request, mut stream| {
        write!(stream, "amplifier-guard 1 {} 0 5 0\nallow", request.get("nonce")).unwrap();
    });
    let mut child = place.start(&[]);
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(b"{}").unwrap();
    daemon.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_client_that_reads_no_answer_is_not_waited_for_longer_than_the_deadline() {
    let place = Place::new();
    // More than a pipe takes.
    let answer = "x".repeat(4 << 20);
    let daemon = place.daemon(move |request, mut stream| {
        write!(stream, "amplifier-guard 1 {} 0 {} 0\n{answer}", request.get("nonce"), answer.len()).unwrap();
    });
    let mut child = place.start(&["--deadline", "2000"]);
    child.stdin.take().unwrap().write_all(b"{}").unwrap();
    daemon.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
}
