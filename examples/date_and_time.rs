//! Tells the model what day and time it is, before it reads the prompt.
//!
//! Run it with `cargo run --example date_and_time`.
#![allow(clippy::print_stdout)]

use amplifier_core::{
    Conversation, Coordinator, Event, HookError, HookRegistry, HookResult, Message, PROMPT_SUBMIT, PromptSubmit,
    Verdict,
};
use jiff::{Timestamp, tz::TimeZone};

fn tell_time(event: Event<PromptSubmit>) -> Result<HookResult, HookError> {
    // The event's own time rather than the clock's: a test that stops the kernel's clock stops this hook's too.
    let at: Timestamp = event.timestamp().unwrap_or_default().parse()?;
    let at = at.to_zoned(TimeZone::UTC);
    Ok(HookResult::inject(format!("It is {} UTC.", at.strftime("%A, %d %B %Y, %H:%M"))))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    hooks.hook(PROMPT_SUBMIT).named("date-and-time").run(tell_time);
    let conversation = Conversation::new();
    let session = Coordinator::builder(hooks).context(conversation.clone()).build();

    match session.emit(PROMPT_SUBMIT, PromptSubmit::new("Which day is the day after tomorrow?")).await {
        Verdict::Proceed(data) => conversation.push(Message::user(data.text("prompt").unwrap_or_default())),
        denied => println!("{denied}"),
    }

    println!("the model sees:");
    for message in conversation.next_call() {
        println!("{:?}: {}", message.role, message.content);
    }
    Ok(())
}
