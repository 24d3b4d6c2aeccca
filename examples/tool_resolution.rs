//! Asks every hook which tool it would take, and weighs the answers. Nothing is blocked or changed: the bare registry
//! is enough.
//!
//! Run it with `cargo run --example tool_resolution`.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use amplifier_core::{
    DECISION_TOOL_RESOLUTION, DecisionToolResolution, Event, EventData, HookError, HookRegistry, HookResult, data,
};

fn calculator(event: Event<DecisionToolResolution>) -> Option<HookResult> {
    let has_sum = event.text("prompt")?.contains(['+', '*', '/']);
    has_sum.then(|| HookResult::respond(data! { "tool": "calculator", "confidence": 0.9 }))
}

fn current_choice(event: Event<DecisionToolResolution>) -> HookResult {
    HookResult::respond(data! { "tool": event.selected_tool(), "confidence": 0.5 })
}

fn broken(_event: Event<DecisionToolResolution>) -> Result<HookResult, HookError> {
    Err(HookError::failed("no model loaded"))
}

async fn asleep(_event: Event<DecisionToolResolution>) -> HookResult {
    std::future::pending().await
}

fn confidence(answer: &EventData) -> f64 {
    answer["confidence"].as_f64().unwrap_or_default()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    hooks.register(DECISION_TOOL_RESOLUTION, current_choice, 0, "current-choice");
    hooks.register(DECISION_TOOL_RESOLUTION, calculator, 0, "calculator");
    hooks.register(DECISION_TOOL_RESOLUTION, broken, 0, "broken");
    hooks.register(DECISION_TOOL_RESOLUTION, asleep, 0, "asleep");

    let tools = ["search", "calculator"];
    for prompt in ["What is 6 * 7?", "Who was Ada Lovelace?"] {
        println!("{prompt}");
        let question = DecisionToolResolution::new(tools, "search").with("prompt", prompt);
        // Each hook has this long. One that fails or takes longer is left out.
        let limit = Duration::from_millis(50);
        let answers = hooks.emit_and_collect(DECISION_TOOL_RESOLUTION, question, limit).await;

        for answer in &answers {
            println!("  {} says {} ({})", answer.hook, answer["tool"], confidence(answer));
        }
        let best = answers.iter().max_by(|a, b| confidence(a).total_cmp(&confidence(b)));
        if let Some(best) = best {
            println!("  chosen: {}", best["tool"]);
        }
    }
    Ok(())
}
