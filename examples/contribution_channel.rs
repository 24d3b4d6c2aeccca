//! Modules offer data without knowing who will ask for it; whoever needs it collects it. A contributor that fails is
//! left out and reported, and the others still count.
//!
//! Run it with `cargo run --example contribution_channel`.
#![allow(clippy::print_stdout)]

use amplifier_core::{Coordinator, HookRegistry};
use serde_json::{Value, json};

const CHANNEL: &str = "agent_capabilities";

/// Reads its capabilities from a file that is not there.
async fn read_plugin_file() -> Result<Value, std::io::Error> {
    let text = std::fs::read_to_string("no-such-directory/plugin.json")
        .map_err(|error| std::io::Error::new(error.kind(), "plugin.json is missing"))?;
    Ok(serde_json::from_str(&text)?)
}

async fn print_capabilities(session: &Coordinator) {
    let capabilities = session.collect_contributions(CHANNEL).await;
    for contribution in &capabilities.values {
        println!("  {}: {}", contribution.name, contribution.value);
    }
    for failure in &capabilities.failures {
        println!("  {} was left out: {}", failure.name, failure.error);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Coordinator::builder(HookRegistry::new()).build();
    let search = session.register_contributor(CHANNEL, "search", async || json!(["web", "code"]));
    session.register_contributor(CHANNEL, "plugin", read_plugin_file);
    // Nothing to offer today is no failure.
    session.register_contributor(CHANNEL, "calendar", async || None::<Value>);
    session.register_contributor(CHANNEL, "editor", async || json!({ "languages": ["rust", "python"] }));

    println!("capabilities:");
    print_capabilities(&session).await;

    println!("after search was unloaded:");
    search.unregister();
    print_capabilities(&session).await;
    Ok(())
}
