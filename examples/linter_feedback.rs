//! Checks a file right after the agent wrote it, and tells the agent in the same turn what is wrong with it.
//!
//! Run it with `cargo run --example linter_feedback`. It needs `python3`, whose compiler is the linter here.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_core::{
    Conversation, Coordinator, Event, HookError, HookRegistry, HookResult, Message, TOOL_POST, ToolPost, Verdict, data,
};
use tokio::process::Command;

async fn lint(workspace: PathBuf, event: Event<ToolPost>) -> Result<Option<HookResult>, HookError> {
    let file = event.text_at("/tool_input/file_path");
    let (Some(file), "Write" | "Edit" | "MultiEdit") = (file, event.tool_name()) else {
        return Ok(None);
    };
    let mut linter = Command::new("python3");
    linter.args(["-m", "py_compile", file]).current_dir(workspace);
    // Killed on drop, because a hook whose time is up is dropped.
    let output = linter.kill_on_drop(true).output().await?;
    if output.status.success() {
        return Ok(None);
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    let feedback = format!("The linter found a problem in {file}:\n{}", problem.trim_end());
    let notice = format!("{file} does not pass the linter");
    Ok(Some(HookResult::inject(feedback).warning(notice)))
}

async fn scene(workspace: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    let linted = workspace.to_owned();
    let linter = hooks.hook(TOOL_POST).named("linter").timeout(Duration::from_secs(20));
    linter.run(move |event| lint(linted.clone(), event));
    let conversation = Conversation::new();
    let session = Coordinator::builder(hooks)
        .context(conversation.clone())
        .display_fn(|message| println!("the person sees: {} ({})", message.text, message.level.as_str()))
        .build();

    conversation.push(Message::user("Write greet.py."));
    for (call, header) in [("call-1", "def greet(name)"), ("call-2", "def greet(name):")] {
        let content = format!("{header}\n    print(name)\n");
        let input = data! { "file_path": "greet.py", "content": content };
        conversation.push(Message::assistant(format!("I write {header}")).calling(call, "Write", input.clone()));
        std::fs::write(workspace.join("greet.py"), content)?;
        let post = ToolPost::new("Write", input, "written", true, 1);
        // The model reads what the hooks left of the result, then what they injected.
        let result = match session.emit(TOOL_POST, post).await {
            Verdict::Proceed(data) => data.text("tool_result").unwrap_or_default().to_owned(),
            denied => denied.to_string(),
        };
        conversation.push(Message::tool_result(call, result));
    }

    println!("the model sees:");
    for message in conversation.next_call() {
        println!("{:?}: {}", message.role, message.content);
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = std::env::temp_dir().join(format!("linter-feedback-{}", std::process::id()));
    std::fs::create_dir(&workspace)?;
    let result = scene(&workspace).await;
    std::fs::remove_dir_all(&workspace)?;
    result
}
