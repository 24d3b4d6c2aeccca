//! Writes one line of JSON when a session begins and one when it ends, with what happened in between.
//!
//! Run it with `cargo run --example session_logger`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use amplifier_core::{
    Coordinator, Event, HookRegistry, SESSION_END, SESSION_START, SessionEnd, SessionStart, TOOL_PRE, ToolPre, data,
};
use serde_json::json;

fn log_start(event: Event<SessionStart>) {
    let line = json!({ "event": event.name.as_str(), "session": event.session_id(), "source": event.source() });
    println!("{line}");
}

fn log_end(event: Event<SessionEnd>) {
    let stats = event.stats();
    let line = json!({
        "event": event.name.as_str(),
        "session": event.session_id(),
        "reason": event.reason(),
        "messages": stats.get("total_messages"),
        "tools": stats.get("tool_invocations"),
        "took_ms": event.duration_ms(),
    });
    println!("{line}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    hooks.hook(SESSION_START).named("session-logger").observer().run(log_start);
    hooks.hook(SESSION_END).named("session-logger").observer().run(log_end);
    // The session puts its name on every event, so that no line of the log can be put down to another session.
    let session = Coordinator::builder(hooks).session_id("session-7").build();

    let began = Instant::now();
    let plan = data! { "orchestrator": "loop-basic" };
    let start = SessionStart::new(plan, "startup").with("session_id", "forged");
    if !session.emit(SESSION_START, start).await.is_proceed() {
        return Err("the session was not allowed to start".into());
    }
    let mut tools = 0;
    for command in ["ls", "cargo test"] {
        if session.emit(TOOL_PRE, ToolPre::new("Bash", data! { "command": command })).await.is_proceed() {
            tools += 1;
        }
    }
    let stats = data! { "total_messages": 2 + 2 * tools, "tool_invocations": tools, "total_tokens": 0 };
    let took_ms = u64::try_from(began.elapsed().as_millis())?;
    let _ = session.emit(SESSION_END, SessionEnd::new("complete", took_ms, stats)).await;
    Ok(())
}
