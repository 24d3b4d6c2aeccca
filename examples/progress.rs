//! Shows one clean line of progress and keeps the hook's own chatter out of the transcript.
//!
//! Run it with `cargo run --example progress`.
#![allow(clippy::print_stdout)]

use amplifier_core::{
    Coordinator, Display, DisplayMessage, Event, HookRegistry, HookResult, PortError, TOOL_POST, ToolPost, data,
};
use serde_json::json;

/// Counts the files that a tool has processed. What it did in detail is its output, as that of a command would be.
fn progress(event: Event<ToolPost>) -> Option<HookResult> {
    let files = event.tool_result().get("files")?.as_array()?;
    let details: Vec<_> = files.iter().map(|file| format!("counted {file}")).collect();
    Some(HookResult::proceed().info(format!("{} files processed", files.len())).with_output(details.join("\n")))
}

/// A screen with a place for messages and a transcript for what hooks print.
struct Screen;

impl Display for Screen {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        println!("  message    | {}", message.text);
        Ok(())
    }

    async fn show_output(&self, _source: &str, output: &str) -> Result<(), PortError> {
        output.lines().for_each(|line| println!("  transcript | {line}"));
        Ok(())
    }
}

async fn index(session: &Coordinator) {
    let result = json!({ "files": ["a.rs", "b.rs", "c.rs"] });
    let post = ToolPost::new("Index", data! { "directory": "src" }, result, true, 40);
    // Neither the tool's result nor the message can be suppressed: only what the hook itself printed.
    if session.emit(TOOL_POST, post).await.is_proceed() {
        println!("  the model reads the tool's whole result");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    let session = Coordinator::builder(hooks.clone()).display(Screen).build();

    println!("with its output:");
    let talkative = hooks.hook(TOOL_POST).named("progress").run(progress);
    index(&session).await;
    talkative.unregister();

    println!("with `suppress_output`:");
    hooks.hook(TOOL_POST).named("progress").run(|event| progress(event).map(HookResult::suppress_output));
    index(&session).await;
    Ok(())
}
