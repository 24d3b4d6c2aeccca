//! Events of your own: a module that builds something emits when it is done, and other people's hooks listen.
//!
//! Run it with `cargo run --example own_events`.
#![allow(clippy::print_stdout)]

use amplifier_core::{
    Coordinator, EventData, EventType, HookRegistry, HookResult, InvalidPayload, Payload, Verdict, data,
};
use serde::Deserialize;

/// What the event carries.
#[derive(Clone, Deserialize)]
struct BuildDone {
    target: String,
    warnings: u64,
}

impl Payload for BuildDone {
    fn view(data: EventData) -> Result<Self, InvalidPayload> {
        Ok(serde_json::from_value(data.into())?)
    }
}

impl From<BuildDone> for EventData {
    fn from(done: BuildDone) -> Self {
        data! { "target": done.target, "warnings": done.warnings }
    }
}

/// A malformed name would not compile.
const BUILD_DONE: EventType<BuildDone> = EventType::new("build:done");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    hooks.hook(BUILD_DONE).named("strict").run(|build| {
        let too_many = build.warnings > 10;
        too_many.then(|| HookResult::deny(format!("{} warnings in {}", build.warnings, build.target)))
    });
    // Those who do not know the type listen by name or pattern.
    hooks.on("build:*", |event| println!("heard {} for {}", event.name, event["target"]))?;

    let session = Coordinator::builder(hooks).build();
    for warnings in [3, 42] {
        match session.emit(BUILD_DONE, BuildDone { target: "app".to_owned(), warnings }).await {
            Verdict::Proceed(_) => println!("{warnings} warnings: published"),
            denied => println!("{warnings} warnings: {denied}"),
        }
    }
    Ok(())
}
