//! Reminds the model of its open todos at every call, and leaves no trace in the history.
//!
//! Run it with `cargo run --example todo_reminder`.
#![allow(clippy::print_stdout)]

use amplifier_core::{
    Conversation, Coordinator, HookRegistry, HookResult, Injection, Message, TOOL_PRE, ToolPre, data,
};
use tokio::sync::watch;

fn remind(todos: &[&str]) -> Option<HookResult> {
    let list: String = todos.iter().map(|todo| format!("\n- {todo}")).collect();
    // Ephemeral, because a list of todos from an hour ago would only mislead.
    (!todos.is_empty()).then(|| HookResult::inject(Injection::new(format!("Still to do:{list}")).ephemeral()))
}

fn print(title: &str, messages: &[Message]) {
    println!("{title}");
    for Message { role, content, .. } in messages {
        println!("  {role:?}: {}", content.replace('\n', "\n    "));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (todos, open) = watch::channel(vec!["write the parser", "test the parser"]);
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("todo-reminder").run(move |_| remind(&open.borrow()));
    let conversation = Conversation::new();
    let session = Coordinator::builder(hooks).context(conversation.clone()).build();

    conversation.push(Message::user("Build me a parser."));
    for (call, file) in [("call-1", "grammar.txt"), ("call-2", "parser.rs")] {
        let input = data! { "file_path": file };
        conversation.push(Message::assistant(format!("I read {file}.")).calling(call, "Read", input.clone()));
        let verdict = session.emit(TOOL_PRE, ToolPre::new("Read", input)).await;
        let result = if verdict.is_proceed() { format!("(what is in {file})") } else { verdict.to_string() };
        conversation.push(Message::tool_result(call, result));

        print("the next call to the model:", &conversation.next_call());
        // The first one is done: the next reminder is shorter, and the old one is gone.
        todos.send_modify(|todos| {
            todos.remove(0);
        });
    }
    print("the history:", &conversation.history());
    Ok(())
}
