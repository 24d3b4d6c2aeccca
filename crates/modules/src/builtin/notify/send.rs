//! Delivery of notifications. A failed delivery never fails the hook.

use std::io::Write;
use std::time::Duration;

use amplifier_process::sandbox::Sandbox;
use amplifier_process::{describe, terminal};
use tokio::time::timeout;

use super::Notification;
use crate::environment::HookEnvironment;
use crate::transport::{Post, Program};
use crate::trust::is_changeable;

const MOST_OUTPUT: usize = 64 << 10;

pub(super) struct NotificationChannels {
    pub(super) desktop: Option<Program>,
    pub(super) bell: bool,
    pub(super) command: Option<Program>,
    pub(super) webhook: Option<Post>,
    pub(super) timeout: Duration,
}

impl NotificationChannels {
    /// Sends a notification through all channels in parallel.
    pub(super) async fn send(&self, notification: &Notification) {
        let json = serde_json::to_vec(notification).unwrap_or_default();
        let desktop = async {
            if let Some(program) = &self.desktop {
                // Without a desktop, the program fails; that is expected.
                let _ = desktop_program(program, notification).run(&[], self.timeout, MOST_OUTPUT).await;
            }
        };
        let bell = async {
            if self.bell {
                let _ = timeout(self.timeout, tokio::task::spawn_blocking(ring)).await;
            }
        };
        let command = async {
            let Some(program) = &self.command else { return };
            match program.find_change().await {
                Ok(None) => {}
                Ok(Some(why)) => return tracing::warn!(why, "the notification command failed"),
                Err(error) => return tracing::warn!(%error, "the notification command failed"),
            }
            match program.run(&json, self.timeout, MOST_OUTPUT).await {
                Ok(ran) if ran.in_time && ran.status.is_some_and(|status| status.success()) => {}
                Ok(ran) => tracing::warn!("the notification command {}", describe(ran.status)),
                Err(error) => tracing::warn!(%error, "the notification command failed"),
            }
        };
        let webhook = async {
            let Some(post) = &self.webhook else { return };
            if let Err(error) = post.send(json.clone()).await {
                tracing::warn!(error, "the notification webhook failed");
            }
        };
        tokio::join!(desktop, bell, command, webhook);
    }
}

/// Returns the program that shows notifications on the desktop.
///
/// The program needs the session bus, which would let it do anything, so a sandbox has no use. It runs without one only if
/// the user's programs could not have replaced it.
///
/// # Errors
/// If the sandbox cannot be created.
pub(super) fn desktop(host: &HookEnvironment) -> Result<Program, String> {
    const NAME: &str = "notify-send";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(NAME)).find(|program| program.is_file());
    let Some(program) = found else { return Ok(Program::new([NAME])) };
    let sandbox = if is_changeable(&program) { host.default_sandbox(&[])? } else { Sandbox::default() };
    Ok(Program::new([program]).sandbox(sandbox))
}

fn desktop_program(program: &Program, notification: &Notification) -> Program {
    // A desktop reads the message as markup.
    let message = notification.message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut program = program.clone();
    let arguments = ["--app-name=Amplifier", "--", notification.title.as_str(), message.as_str()];
    program.command.extend(arguments.map(Into::into));
    program
}

fn ring() {
    if let Ok(mut terminal) = terminal::open() {
        let _ = terminal.write_all(b"\x07");
    }
}
