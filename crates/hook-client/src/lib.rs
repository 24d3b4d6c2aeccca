#![doc = include_str!("../README.md")]

mod arguments;
#[cfg(unix)]
mod daemon;
mod denial;
#[cfg(unix)]
mod exchange;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use crate::arguments::HookArguments;

/// Output for the client.
struct Answer {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    code: u8,
}

/// Answers one call of a hook, with the arguments after the name of the program. The exit code is 0, or 2 for a denial.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let started = Instant::now();
    let arguments = match HookArguments::parse(arguments.into_iter()) {
        Ok(arguments) => arguments,
        Err(problem) => return print(&denial::answer(&problem)),
    };
    let is_gate = !arguments.is_observer;
    let deadline = started + arguments.deadline;
    // The work is on a thread of its own, so that nothing in it, not even a standard input that stays open, outlasts the deadline.
    let (send, answer) = channel();
    let worker = thread::Builder::new().spawn(move || send.send(answer_from_daemon(&arguments, deadline)));
    let answer = match worker {
        Err(error) => Err(format!("a thread cannot be started: {error}")),
        Ok(_) => match answer.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err("no decision within the time limit of this hook".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err("the hook program failed".to_owned()),
        },
    };
    match answer {
        Ok(answer) => print(&answer),
        Err(problem) if is_gate => print(&denial::answer(&problem)),
        Err(problem) => print(&denial::note(&problem)),
    }
}

#[cfg(unix)]
fn answer_from_daemon(arguments: &HookArguments, deadline: Instant) -> Result<Answer, String> {
    let payload = exchange::read_payload()?;
    let stream = daemon::connect(&arguments.folder, deadline)?;
    exchange::ask(stream, arguments, &payload, deadline)
}

#[cfg(not(unix))]
fn answer_from_daemon(_: &HookArguments, _: Instant) -> Result<Answer, String> {
    Err("the guard does not support this system; use Linux or macOS".to_owned())
}

/// Prints the answer. If it cannot be printed, the exit code denies.
fn print(answer: &Answer) -> ExitCode {
    let (mut stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    let errors = stderr.write_all(&answer.stderr).and_then(|()| stderr.flush());
    let output = stdout.write_all(&answer.stdout).and_then(|()| stdout.flush());
    let is_printed = output.is_ok() && (errors.is_ok() || answer.code == 0);
    ExitCode::from(if is_printed { answer.code } else { 2 })
}
