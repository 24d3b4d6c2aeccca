//! Being stopped: by a person with Ctrl-C, by the system, or because the terminal has gone away.

use std::process::ExitCode;
use std::time::Duration;

use amplifier_agent::{Cancel, CancelLevel};
use amplifier_core::HookRegistry;
use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::Screen;

/// The exit code of what was stopped.
pub const INTERRUPTED: u8 = 130;
/// How long hooks may take to look at what has happened already, once the program is told to end.
const GRACE: Duration = Duration::from_secs(5);
/// How long the rest may take then.
const LAST: Duration = Duration::from_secs(3);

/// From now on, Ctrl-C stops the turn, and not the program.
pub fn stop_on_ctrl_c(cancel: &Cancel, screen: &Screen) {
    let (cancel, screen) = (cancel.clone(), screen.clone());
    // Listened for at once and all the time, so that no second one is missed while the first is dealt with.
    let mut interrupts = match signal(SignalKind::interrupt()) {
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
pub fn stop_when_told(cancel: &Cancel, hooks: &HookRegistry) -> Result<()> {
    let (cancel, hooks) = (cancel.clone(), hooks.clone());
    on_own_thread(move |mut told| async move {
        told.to_end().await;
        // The second time is at once.
        cancel.request();
        cancel.request();
        // Told again, it waits no longer.
        let _ = tokio::time::timeout(GRACE, told.to_end()).await;
        hooks.give_up();
        tokio::time::sleep(LAST).await;
        // Something does not let go, such as a keyboard that is no longer there. The record then says that the session has no end.
        std::process::exit(INTERRUPTED.into());
    })
}

/// Listens on a thread of its own: whatever keeps all other threads busy or waiting, the program can be told to end.
fn on_own_thread<F: Future<Output = ()>>(told: impl FnOnce(Told) -> F + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listening = {
        let _within = runtime.enter();
        Told::listen()?
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(told(listening)))?;
    Ok(())
}

/// Does something that leaves no record behind: it is dropped when the program is to end, and what it has begun ends with it.
///
/// # Errors
/// As what it does, and if the system does not let it listen.
pub async fn until_stopped(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut told = Told::listen()?;
    on_own_thread(|mut told| async move {
        told.to_end().await;
        told.to_end().await;
        std::process::exit(INTERRUPTED.into());
    })?;
    tokio::select! {
        biased;
        done = work => done,
        _ = interrupts.recv() => Ok(ExitCode::from(INTERRUPTED)),
        () = told.to_end() => Ok(ExitCode::from(INTERRUPTED)),
    }
}

/// Listens for the program being told to end (SIGTERM), and its terminal going away (SIGHUP).
pub struct Told {
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Told {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the system does not let it.
    pub fn listen() -> Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        // Started with `nohup`, it is to go on.
        let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self { terminate, hangup })
    }

    /// Returns when the program is told to end, or is told again.
    pub async fn to_end(&mut self) {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => _ = hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            () = hung_up => {}
        }
    }
}

/// Whether whoever started the program wants it to outlive its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}
