//! Ctrl-C, termination signals and a closed terminal.

use std::process::ExitCode;
use std::time::Duration;

use amplifier_agent::{Cancel, CancelLevel};
use amplifier_core::HookRegistry;
use amplifier_process::signals::{Interrupts, Termination};
use anyhow::Result;

use crate::commands::exit::Exit;
use crate::terminal::Screen;

/// The time that hooks have to process pending events after a termination signal.
const GRACE: Duration = Duration::from_secs(5);
/// The time for all other work after that.
const LAST_GRACE: Duration = Duration::from_secs(3);

/// Makes Ctrl-C stop the turn instead of the program.
pub fn stop_on_ctrl_c(cancel: &Cancel, screen: &Screen) {
    let (cancel, screen) = (cancel.clone(), screen.clone());
    // Listens all the time, so that a second signal is not missed while the first is handled.
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

/// Makes a termination signal or a closed terminal stop the turn at once: running tools end, and the session is sealed in the audit log.
/// Hooks that take too long, or still run at a second signal, are abandoned.
///
/// # Errors
/// If signals cannot be received.
pub fn stop_on_termination(cancel: &Cancel, hooks: &HookRegistry) -> Result<()> {
    let (cancel, hooks) = (cancel.clone(), hooks.clone());
    spawn_listener(move |mut termination| async move {
        termination.recv().await;
        // The second request stops the turn at once.
        cancel.request();
        cancel.request();
        // A second signal ends the wait.
        let _ = tokio::time::timeout(GRACE, termination.recv()).await;
        hooks.give_up();
        tokio::time::sleep(LAST_GRACE).await;
        // Something still blocks, such as a closed terminal. The session then stays unsealed in the audit log.
        std::process::exit(Exit::Interrupted as i32);
    })
}

/// Listens on a dedicated thread, so that the program can be terminated even if all other threads are busy or blocked.
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

/// Runs a command without a session until it is done or the program is stopped; stopping drops the future.
///
/// # Errors
/// If the command fails or signals cannot be received.
pub async fn run_until_stopped(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let mut interrupts = Interrupts::listen()?;
    let mut termination = Termination::listen()?;
    spawn_listener(|mut termination| async move {
        termination.recv().await;
        termination.recv().await;
        std::process::exit(Exit::Interrupted as i32);
    })?;
    tokio::select! {
        biased;
        done = work => done,
        _ = interrupts.recv() => Ok(Exit::Interrupted.into()),
        () = termination.recv() => Ok(Exit::Interrupted.into()),
    }
}
