//! Logs every tool call without touching any: an observer runs after the gates and changes nothing.
//!
//! Run it with `cargo run --example audit_logger`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use amplifier_core::{
    Coordinator, Event, HookRegistry, HookResult, TOOL_POST, TOOL_PRE, ToolPost, ToolPre, Verdict, data,
};

fn log_start(event: Event<ToolPre>) {
    let (at, tool) = (event.timestamp().unwrap_or("-"), event.tool_name());
    // The name, not the parameters: they may hold secrets, and logs are read by many.
    println!("{at} audit: {tool} starts");
}

fn log_end(event: Event<ToolPost>) {
    let (at, tool) = (event.timestamp().unwrap_or("-"), event.tool_name());
    let how = if event.success() { "succeeded" } else { "failed" };
    println!("{at} audit: {tool} {how} after {} ms", event.duration_ms());
}

/// Lists a directory as an agent's tool does: ask the hooks, run, tell the hooks.
async fn list(session: &Coordinator, directory: &str) -> Result<(), Box<dyn std::error::Error>> {
    let input = data! { "directory": directory };
    let verdict = session.emit(TOOL_PRE, ToolPre::new("List", input.clone())).await;
    if !verdict.is_proceed() {
        println!("{directory} was not listed: {verdict}");
        return Ok(());
    }
    let began = Instant::now();
    let listed = std::fs::read_dir(directory);
    let took_ms = u64::try_from(began.elapsed().as_millis())?;
    let (success, result) = match listed {
        Ok(_) => (true, "listed".to_owned()),
        Err(error) => (false, error.to_string()),
    };
    match session.emit(TOOL_POST, ToolPost::new("List", input, result, success, took_ms)).await {
        Verdict::Proceed(data) => println!("the model reads {}", data["tool_result"]),
        denied => println!("the model reads {denied}"),
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("audit").observer().run(log_start);
    hooks.hook(TOOL_POST).named("audit").observer().run(log_end);
    hooks.hook(TOOL_PRE).named("no-secrets").run(|event| {
        let directory = event.pointer("/tool_input/directory")?;
        (directory == "/secrets").then(|| HookResult::deny("private"))
    });
    let session = Coordinator::builder(hooks).build();

    list(&session, "/").await?;
    list(&session, "/no/such/directory").await?;
    // The gate blocks this one. The observer sees all the same that it was tried.
    list(&session, "/secrets").await
}
