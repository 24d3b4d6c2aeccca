//! Tells the person that the agent is done, how it went, and how long it took.
//!
//! Run it with `cargo run --example completion_notice`.
#![allow(clippy::print_stdout)]

use amplifier_core::{
    Coordinator, Event, HookRegistry, HookResult, Level, ORCHESTRATOR_COMPLETE, OrchestratorComplete,
};

fn notice(event: Event<OrchestratorComplete>) -> HookResult {
    let (turns, seconds) = (event.turn_count(), event.duration_ms() as f64 / 1000.0);
    let (level, how) = match event.status() {
        "success" => (Level::Info, "Done"),
        "interrupted" => (Level::Warning, "Interrupted"),
        _ => (Level::Error, "Failed"),
    };
    let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
    HookResult::proceed().message(level, format!("{how} after {turns}, {seconds:.1} s"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    // An observer changes nothing, but what it tells the person is shown.
    hooks.hook(ORCHESTRATOR_COMPLETE).named("completion-notice").observer().run(notice);
    let session = Coordinator::builder(hooks).display_fn(|message| println!("{message}")).build();

    for (turns, took_ms, status) in [(3, 12_340, "success"), (1, 800, "interrupted"), (2, 4_060, "error")] {
        let complete = OrchestratorComplete::new("loop-basic", turns, took_ms, status);
        let _ = session.emit(ORCHESTRATOR_COMPLETE, complete).await;
    }
    Ok(())
}
