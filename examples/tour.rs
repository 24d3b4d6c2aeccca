//! One turn of an agent, with all six things that hooks can do: observe, block, modify, inject, ask, control output.
//!
//! Run it with `cargo run --release --example tour`. It needs no key, no network and no person: the model is a script,
//! and a task at the other end of a channel answers the one question that comes up.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use amplifier_core::{
    Approval, ApprovalInbox, Conversation, Coordinator, EventData, Hook, HookError, HookRegistry, HookResult,
    MemoryAudit, Message, OnError, PROMPT_SUBMIT, PromptSubmit, TOOL_POST, TOOL_PRE, ToolPost, ToolPre, Verdict,
    approval_channel, data,
};

/// Observe: an observer sees every event and cannot change any.
#[derive(Default)]
struct Meter {
    events: AtomicUsize,
}

impl Hook for Meter {
    async fn handle(&self, _event: &str, _data: &EventData) -> Result<HookResult, HookError> {
        self.events.fetch_add(1, Ordering::Relaxed);
        Ok(HookResult::proceed())
    }
}

fn register(hooks: &HookRegistry, meter: Arc<Meter>) -> Result<(), Box<dyn std::error::Error>> {
    hooks.hook("*").named("meter").observer().handler(meter)?;

    // Block: the tool does not run, and the model reads why. If the guard itself fails, that blocks too.
    hooks.hook(TOOL_PRE).named("guard").on_error(OnError::Deny).run(|event| {
        let command = event.text_at("/tool_input/command").unwrap_or_default();
        command.contains("rm -rf").then(|| HookResult::deny("deleting recursively is not allowed"))
    });

    // Modify: hooks that follow, the tool and the record see the changed data.
    hooks.hook(TOOL_POST).named("redact").run(|event| {
        let output = event.tool_result().as_str()?;
        let secret = output.split_whitespace().find(|word| word.starts_with("sk-"))?;
        Some(HookResult::set("tool_result", output.replace(secret, "[redacted]")))
    });

    // Inject: the model learns about it in the same turn, and can correct itself.
    hooks.hook(TOOL_POST).named("linter").run(|event| async move {
        let content = event.text_at("/tool_input/content")?;
        let problem = "app.py line 1: trailing white space";
        content.contains(" \n").then(|| HookResult::inject(problem).warning("the linter found a problem"))
    });

    // Ask: a person decides, within a time limit; no answer is a no.
    hooks.hook(TOOL_PRE).named("production-guard").run(|event| {
        let path = event.text_at("/tool_input/file_path")?;
        let question = Approval::new(format!("Write to {path}?")).options(["Allow once", "Allow always", "Deny"]);
        path.starts_with("production/").then(|| HookResult::ask(question))
    });

    // Control output: one clean line for the person; what the hook printed stays out of the transcript.
    hooks.hook(PROMPT_SUBMIT).named("greeter").run(|event| {
        let noise = format!("checked {} characters against 4 lists", event.prompt().len());
        HookResult::proceed().info("the prompt was checked").with_output(noise).suppress_output()
    });
    Ok(())
}

/// What the scripted model does: it calls four tools, one after another. Each shows one thing that a hook does.
fn calls() -> [(&'static str, &'static str, EventData, &'static str); 4] {
    let file = |path: &str, content: &str| data! { "file_path": path, "content": content };
    [
        ("Block: a guard refuses, and the model reads why", "Bash", data! { "command": "rm -rf build" }, ""),
        ("Modify: a secret is redacted before anyone sees it", "Bash", data! { "command": "cat .token" }, "sk-12345"),
        ("Inject: the model learns what a linter found", "Write", file("app.py", "import os \n"), "written"),
        ("Ask: a person decides", "Write", file("production/app.py", "import os\n"), "written"),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    let meter = Arc::new(Meter::default());
    register(&hooks, meter.clone())?;

    let conversation = Conversation::new();
    let audit = MemoryAudit::new();
    let (approvals, inbox) = approval_channel();
    tokio::spawn(answer(inbox));
    let session = Coordinator::builder(hooks)
        .session_id("tour")
        .context(conversation.clone())
        .approvals(approvals)
        .display_fn(|message| say("person", &format!("sees: {message}")))
        .audit(audit.clone())
        .build();

    session.begin_turn();
    let prompt = "tidy up and ship it";
    title("Control output: one clean line instead of a hook's chatter");
    say("person", &format!("says: {prompt}"));
    if let Verdict::Proceed(data) = session.emit(PROMPT_SUBMIT, PromptSubmit::new(prompt)).await {
        conversation.push(Message::user(data.text("prompt").unwrap_or(prompt)));
    }
    for (number, (what, tool, input, output)) in calls().into_iter().enumerate() {
        let id = format!("call-{}", number + 1);
        title(what);
        say("model", &format!("calls {tool} with {}", serde_json::to_string(&input)?));
        conversation.push(Message::assistant("").calling(&id, tool, input.clone()));
        let result = run_tool(&session, tool, input, output).await;
        say("model", &format!("reads: {result}"));
        conversation.push(Message::tool_result(id, result));
        for injected in conversation.history().iter().rev().take_while(|message| message.tool_call_id.is_none()) {
            say("model", &format!("reads, injected by {}: {}", injected.metadata["hook_name"], injected.content));
        }
    }

    title("Observe: everything was seen and recorded");
    say("meter", &format!("saw {} events and changed none", meter.events.load(Ordering::Relaxed)));
    let mut kinds = BTreeMap::<_, usize>::new();
    for record in audit.records() {
        *kinds.entry(record.entry.kind()).or_default() += 1;
    }
    for (kind, count) in kinds {
        say("record", &format!("holds {count:>2} {kind}"));
    }
    println!("\nNext: read examples/production_guard.rs, or write a hook of your own (README.md).");
    Ok(())
}

/// What an agent loop does around every tool call.
async fn run_tool(session: &Coordinator, tool: &str, input: EventData, output: &str) -> String {
    let input = match session.emit(TOOL_PRE, ToolPre::new(tool, input)).await {
        Verdict::Proceed(data) => data["tool_input"].as_object().cloned().unwrap_or_default(),
        denied => return denied.to_string(),
    };
    // Here the tool would run, with `input` as the hooks left it.
    let post = ToolPost::new(tool, input, output, true, 3);
    match session.emit(TOOL_POST, post).await {
        Verdict::Proceed(data) => data.text("tool_result").unwrap_or_default().to_owned(),
        denied => denied.to_string(),
    }
}

/// The person at the other end of the channel.
async fn answer(mut inbox: ApprovalInbox) {
    while let Some(question) = inbox.next().await {
        let labels: Vec<_> = question.request.options.iter().map(|option| option.label.as_str()).collect();
        say("person", &format!("is asked by {}: {} {labels:?}", question.request.hook, question.request.prompt));
        say("person", "answers: Allow once");
        let _ = question.answer("Allow once");
    }
}

fn title(what: &str) {
    let (bold, plain) = if is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    println!("\n{bold}{what}{plain}");
}

fn say(who: &str, what: &str) {
    let (dim, plain) = if is_terminal() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
    println!("  {dim}{who:<6}{plain}  {what}");
}

fn is_terminal() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
