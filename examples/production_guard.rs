//! Lets a person decide about writes to production files. The answers come from a script, so that the example runs
//! unattended; a terminal or a web page would stand in its place.
//!
//! Run it with `cargo run --example production_guard`.
#![allow(clippy::print_stdout)]

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use amplifier_core::{
    Approval, ApprovalInbox, Coordinator, Event, HookError, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre,
    approval_channel, data,
};

fn guard(event: Event<ToolPre>) -> Result<Option<HookResult>, HookError> {
    if !matches!(event.tool_name(), "Write" | "Edit" | "MultiEdit") {
        return Ok(None);
    }
    let path = event.text_at("/tool_input/file_path");
    let path = resolve(path.ok_or_else(|| HookError::failed("a write without `file_path`"))?);
    let is_production = path.components().any(|part| part.as_os_str() == "production")
        || path.file_name().is_some_and(|name| name == ".env");
    if !is_production {
        return Ok(None);
    }
    // "Allow always" is remembered by this text, so the text names the file.
    let question = Approval::new(format!("Write to production: {}?", path.display()))
        .options(["Allow once", "Allow always", "Deny"])
        .timeout(Duration::from_secs(60));
    Ok(Some(HookResult::ask(question).because("production files need a person's consent")))
}

/// The path without `..`. A guard for real work also makes it absolute and follows symbolic links.
fn resolve(path: &str) -> PathBuf {
    Path::new(path).components().fold(PathBuf::new(), |mut resolved, part| {
        if part == Component::ParentDir {
            resolved.pop();
        } else {
            resolved.push(part);
        }
        resolved
    })
}

/// The person. When the answers have run out, the inbox is gone and every question is denied.
async fn answer(mut inbox: ApprovalInbox, answers: [&str; 3]) {
    for answer in answers {
        let Some(question) = inbox.next().await else {
            return;
        };
        println!("  asked: {}", question.request.prompt);
        match question.answer(answer) {
            Ok(()) => println!("  answered: {answer}"),
            Err(too_late) => println!("  {too_late}"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    // A guard that fails must not let anything through.
    hooks.hook(TOOL_PRE).named("production-guard").on_error(OnError::Deny).run(guard);
    let (approvals, inbox) = approval_channel();
    let person = tokio::spawn(answer(inbox, ["Allow once", "Allow always", "Deny"]));
    let session = Coordinator::builder(hooks).approvals(approvals).build();

    let paths = [
        "/srv/staging/app.toml",
        "/srv/production/app.toml",
        "/srv/production/app.toml",
        // The same file by a detour: the person said "always", so nobody is asked again.
        "/srv/staging/../production/app.toml",
        "/srv/staging/.env",
    ];
    for path in paths {
        println!("Write {path}");
        let write = ToolPre::new("Write", data! { "file_path": path });
        println!("  {}", session.emit(TOOL_PRE, write).await);
    }
    person.await?;
    Ok(())
}
