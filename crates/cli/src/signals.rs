//! Being stopped: by a person with Ctrl-C, by the system, or because the terminal has gone away.

use std::process::ExitCode;
use std::time::Duration;

use amplifier_agent::{Cancel, CancelLevel};
use amplifier_core::HookRegistry;
use amplifier_process::signals::{Interrupts, Termination};
use anyhow::Result;

use crate::terminal::Screen;

/// The exit code of what was stopped.
pub const INTERRUPTED: u8 = 130;
/// How long hooks may take to look at what has happened already, once the program is told to end.
const GRACE: Duration = Duration::from_secs(5);
/// How long the rest may take then.
const LAST_GRACE: Duration = Duration::from_secs(3);

/// From now on, Ctrl-C stops the turn, and not the program.
pub fn stop_on_ctrl_c(cancel: &Cancel, screen: &Screen) {
    let (cancel, screen) = (cancel.clone(), screen.clone());
    // Listened for at once and all the time, so that no second one is missed while the first is dealt with.
    let mut interrupts = match Interrupts::listen() {
        Ok(interrupts) => interrupts,
        Err(error) => return screen.note(&format!("Ctrl-C ends the program at once: {error}")),
    };
    tokio::spawn(async move {
        while interrupts.recv().await.is_some() {
            match cancel.request() {
                CancelLevel::Immediate => screen.note("stopping now"),
                _ => screen.note("stopping when the running tool has finished; Ctrl-C again stops it now"),
            }
        }
    });
}

/// From now on, the turn is stopped at once when the program is told to end or the terminal goes away: what a tool has begun ends with
/// it, and the record has an end. Hooks that take too long for that, or are still at it when the program is told again, are given up.
///
/// # Errors
/// If the system does not let it listen.
pub fn stop_on_termination(cancel: &Cancel, hooks: &HookRegistry) -> Result<()> {
    let (cancel, hooks) = (cancel.clone(), hooks.clone());
    spawn_listener(move |mut termination| async move {
        termination.recv().await;
        // The second time is at once.
        cancel.request();
        cancel.request();
        // Told again, it waits no longer.
        let _ = tokio::time::timeout(GRACE, termination.recv()).await;
        hooks.give_up();
        tokio::time::sleep(LAST_GRACE).await;
        // Something does not let go, such as a keyboard that is no longer there. The record then says that the session has no end.
        std::process::exit(INTERRUPTED.into());
    })
}

/// Listens on a thread of its own: whatever keeps all other threads busy or waiting, the program can be told to end.
fn spawn_listener<F: Future<Output = ()>>(termination: impl FnOnce(Termination) -> F + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let termination_signal = {
        let _within = runtime.enter();
        Termination::listen()?
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(termination(termination_signal)))?;
    Ok(())
}

/// Does something that leaves no record behind: it is dropped when the program is to end, and what it has begun ends with it.
///
/// # Errors
/// As what it does, and if the system does not let it listen.
pub async fn run_until_stopped(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let mut interrupts = Interrupts::listen()?;
    let mut termination = Termination::listen()?;
    spawn_listener(|mut termination| async move {
        termination.recv().await;
        termination.recv().await;
        std::process::exit(INTERRUPTED.into());
    })?;
    tokio::select! {
        biased;
        done = work => done,
        _ = interrupts.recv() => Ok(ExitCode::from(INTERRUPTED)),
        () = termination.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}
