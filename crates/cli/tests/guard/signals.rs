//! Signals to all processes of a hook, as a client or a terminal sends them: the call is denied.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::{Guarded, text};

#[test]
fn a_signal_to_the_hook_program_and_all_shells_denies() {
    let guarded = Guarded::new();
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    guarded.kill_daemons();
    while !guarded.daemons().is_empty() {
        sleep(Duration::from_millis(5));
    }
    let socket = guarded.place.at("home/guard/socket");
    _ = fs::remove_file(&socket);
    // Takes calls, and answers none.
    let listener = UnixListener::bind(&socket).unwrap();
    let line = guarded.line("PreToolUse");
    for (client_shell, our_shell) in [("sh", "/bin/sh"), ("dash", "/bin/dash"), ("bash", "/bin/bash")] {
        let line = line.replacen("/bin/sh", our_shell, 1);
        for signal in ["HUP", "INT", "QUIT", "TERM"] {
            let mut shell = Command::new(client_shell);
            shell.args(["-c", &line]).process_group(0);
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut shell = shell.spawn().unwrap();
            shell.stdin.take().unwrap().write_all(b"{}").unwrap();
            let (stream, _) = listener.accept().unwrap();
            let group = format!("-{}", shell.id());
            assert!(Command::new("kill").args(["-s", signal, "--", &group]).status().unwrap().success());
            let output = shell.wait_with_output().unwrap();
            drop(stream);
            assert_eq!(output.status.code(), Some(2), "{client_shell}, {our_shell}, {signal}: {output:?}");
            assert!(text(&output).contains("amplifier guard: this call is denied"), "{}", text(&output));
        }
    }
}
