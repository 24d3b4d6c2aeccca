//! Calls the person back to the screen with `notify-send`. Where there is no desktop, it says so and nothing else
//! happens: a courtesy must not stop an agent.
//!
//! Run it with `cargo run --example desktop_notification`.
#![allow(clippy::print_stdout)]

use std::process::Stdio;
use std::time::Duration;

use amplifier_core::{Coordinator, Event, HookRegistry, USER_NOTIFICATION, UserNotification};
use tokio::process::Command;

async fn notify(event: Event<UserNotification>) {
    let mut command = Command::new("notify-send");
    // After `--`, a message that begins with a dash is still a message.
    command.args(["--", &format!("Amplifier: {}", event.notification_type()), event.message()]);
    // Killed on drop, because a hook whose time is up is dropped.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match command.status().await {
        Ok(status) if status.success() => println!("  shown on the desktop"),
        Ok(status) => println!("  not shown: notify-send ended with {status}"),
        Err(error) => println!("  not shown: notify-send cannot be run ({error})"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    let notifier = hooks.hook(USER_NOTIFICATION).named("desktop-notification");
    notifier.observer().timeout(Duration::from_secs(2)).run(notify);
    let session = Coordinator::builder(hooks).build();

    for (kind, message) in [("approval_required", "May I deploy?"), ("awaiting_input", "Which branch?")] {
        println!("{kind}: {message}");
        let notification = UserNotification::new(kind, message);
        let (_, outcome) = session.emit_with_outcome(USER_NOTIFICATION, notification).await;
        for error in outcome.reports().filter_map(|report| report.error) {
            println!("  not shown: {error}");
        }
    }
    println!("the agent goes on");
    Ok(())
}
