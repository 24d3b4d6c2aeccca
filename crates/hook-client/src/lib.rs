#![doc = include_str!("../README.md")]

mod arguments;
#[cfg(unix)]
mod daemon;
mod denial;
#[cfg(unix)]
mod exchange;
#[cfg(unix)]
mod user_folder;

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::arguments::HookArguments;
#[cfg(unix)]
use crate::exchange::AskError;
#[cfg(unix)]
pub use crate::user_folder::user_folder;

/// The time for printing an answer at the deadline.
const PRINT_LIMIT: Duration = Duration::from_millis(200);

/// Output for the client.
struct Answer {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    code: u8,
}

/// Answers one call of a hook, with the arguments after the name of the program. The exit code is 0, or 2 for a denial.
///
/// At the deadline, the process ends.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let started = Instant::now();
    let arguments = match HookArguments::parse(arguments.into_iter()) {
        Ok(arguments) => arguments,
        Err(problem) => return ExitCode::from(print(&denial::answer(&problem))),
    };
    let deadline = started + arguments.deadline;
    let is_observer = arguments.is_observer;
    let is_answered = Arc::new(AtomicBool::new(false));
    let answer = match start_watchdog(deadline, is_observer, is_answered.clone()) {
        Ok(()) => catch_unwind(AssertUnwindSafe(|| answer_from_daemon(&arguments, deadline)))
            .unwrap_or_else(|_| Err("the hook program failed".to_owned())),
        Err(error) => Err(format!("a thread cannot be started: {error}")),
    };
    if is_answered.swap(true, Ordering::SeqCst) {
        // The watchdog is about to end the process.
        loop {
            thread::park();
        }
    }
    ExitCode::from(print(&answer.unwrap_or_else(|problem| failure(&problem, is_observer))))
}

/// Ends the process at the deadline, so that nothing outlasts it: no standard input that stays open, and no client that reads no output.
fn start_watchdog(deadline: Instant, is_observer: bool, is_answered: Arc<AtomicBool>) -> std::io::Result<()> {
    let watch = move || {
        thread::sleep(deadline.saturating_duration_since(Instant::now()));
        if is_answered.swap(true, Ordering::SeqCst) {
            // The answer is being printed. A denial that nobody reads is still a denial by its exit code.
            thread::sleep(PRINT_LIMIT);
            exit(if is_observer { 0 } else { 2 });
        }
        exit(print(&failure("no decision within the time limit of this hook", is_observer)).into());
    };
    thread::Builder::new().spawn(watch).map(drop)
}

fn failure(problem: &str, is_observer: bool) -> Answer {
    if is_observer { denial::note(problem) } else { denial::answer(problem) }
}

#[cfg(unix)]
fn answer_from_daemon(arguments: &HookArguments, deadline: Instant) -> Result<Answer, String> {
    let payload = exchange::read_payload()?;
    let ask = || {
        let stream = daemon::connect(&arguments.place, deadline).map_err(AskError::Failed)?;
        exchange::ask(stream, arguments, &payload, deadline)
    };
    match ask() {
        // The next daemon decides. A second one that ends may do so because of this call.
        Err(AskError::Closed(first)) => ask().map_err(|error| format!("{first}; then {}", error.into_text())),
        answer => answer.map_err(AskError::into_text),
    }
}

#[cfg(not(unix))]
fn answer_from_daemon(_: &HookArguments, _: Instant) -> Result<Answer, String> {
    Err("the guard does not support this system; use Linux or macOS".to_owned())
}

/// Prints the answer, and returns the exit code. If the answer cannot be printed, the exit code denies.
fn print(answer: &Answer) -> u8 {
    let (mut stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    let errors = stderr.write_all(&answer.stderr).and_then(|()| stderr.flush());
    let output = stdout.write_all(&answer.stdout).and_then(|()| stdout.flush());
    let is_printed = output.is_ok() && (errors.is_ok() || answer.code == 0);
    if is_printed { answer.code } else { 2 }
}
