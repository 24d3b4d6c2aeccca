//! Takes card numbers out of what a tool is given, in whichever of its parameters they stand.
//!
//! Run it with `cargo run --example sanitizer`.
#![allow(clippy::print_stdout)]

use amplifier_core::{Coordinator, Event, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre, Verdict, data};
use serde_json::Value;

const CARD: &str = "[card number]";

fn sanitize(event: Event<ToolPre>) -> Option<HookResult> {
    let before = event.tool_input().clone();
    let after = redact_all(before.clone());
    (after != before).then(|| {
        // The hooks that follow and the tool see the new value; nobody sees the old one again.
        HookResult::set("tool_input", after).because("card numbers stay here").warning("a card number was taken out")
    })
}

fn redact_all(value: Value) -> Value {
    match value {
        Value::String(text) => redact(&text).into(),
        Value::Array(items) => items.into_iter().map(redact_all).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, redact_all(value))).collect(),
        Value::Number(number) if number.to_string() != redact(&number.to_string()) => CARD.into(),
        other => other,
    }
}

/// Replaces every number of 13 digits or more, also when blanks or dashes group them.
fn redact(text: &str) -> String {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number_on) = rest.split_at(start);
        let end = number_on.find(|c: char| !c.is_ascii_digit() && c != ' ' && c != '-').unwrap_or(number_on.len());
        let number = number_on[..end].trim_end_matches([' ', '-']);
        let is_card = number.chars().filter(char::is_ascii_digit).count() >= 13;
        clean.push_str(before);
        clean.push_str(if is_card { CARD } else { number });
        rest = &number_on[number.len()..];
    }
    clean + rest
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("sanitizer").priority(-10).on_error(OnError::Deny).run(sanitize);
    hooks.hook(TOOL_PRE).named("later").run(|event| println!("a later hook sees {}", event.data["tool_input"]));
    let session = Coordinator::builder(hooks).build();

    let inputs = [
        data! { "to": "shop@example.com", "body": "Please charge 4111-1111-1111-1111, order 2024-17." },
        data! { "to": "me@example.com", "cards": ["4111 1111 1111 1111", "5500005555555559 (old)", 4111111111111111_u64] },
        data! { "to": "ada@example.com", "body": "Lunch at 12?" },
    ];
    for input in inputs {
        match session.emit(TOOL_PRE, ToolPre::new("SendEmail", input)).await {
            Verdict::Proceed(data) => println!("the tool runs with {}", data["tool_input"]),
            denied => println!("{denied}"),
        }
    }
    Ok(())
}
