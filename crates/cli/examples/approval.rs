//! Puts questions about a call of a tool, to see what they look like and how they are answered.
//!
//! ```text
//! cargo run -p amplifier --example approval -- '{"tool_name": "Bash", "tool_input": {"command": "ls"}}' 60
//! ```
//!
//! After the call and the seconds that a question stays open, a third word changes how it goes: `allow` lets the call
//! run when nobody answers, `later` asks after Enter, `cancel` gives up after two seconds, and `twice` asks two at once.
#![allow(clippy::print_stdout, reason = "an example talks on stdout")]

use std::time::Duration;

use amplifier::terminal::{Screen, TerminalApprovals, TerminalDisplay};
use amplifier_agent::tool::Workspace;
use amplifier_core::{Approval, Coordinator, EventData, HookRegistry, HookResult, TOOL_PRE};
use anyhow::Context;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let call = words.next().context("the call of a tool is missing: give it as JSON")?;
    let call: EventData = serde_json::from_str(&call).context("the call of a tool is not JSON")?;
    let seconds = words.next().map_or(Ok(300), |seconds| seconds.parse()).context("the seconds are not a number")?;
    let how = words.next().unwrap_or_default();

    let approval = Approval::new("⚠️ Is this what you want?").options(["Allow once", "Allow always", "Deny"]);
    let approval = approval.timeout(Duration::from_secs(seconds));
    let approval = if how == "allow" { approval.allow_by_default() } else { approval };
    let question = HookResult::ask(approval).because("it changes something").warning("this call needs a person");
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").run(move |_| question.clone());

    let screen = Screen::new();
    let session = Coordinator::builder(hooks)
        .approvals(TerminalApprovals::new(screen.clone()))
        .previews(Workspace::new(std::env::current_dir()?)?)
        .display(TerminalDisplay::new(screen.clone()))
        .build();
    if how == "later" {
        println!("press Enter");
        std::io::stdin().read_line(&mut String::new())?;
    }
    let verdict = async {
        let _working = screen.spinner("running the call");
        session.emit(TOOL_PRE, call.clone()).await
    };
    match how.as_str() {
        "cancel" => println!("in time: {}", tokio::time::timeout(Duration::from_secs(2), verdict).await.is_ok()),
        "twice" => {
            let (first, second) = tokio::join!(verdict, session.emit(TOOL_PRE, call.clone()));
            println!("verdicts: {} {}", first.is_proceed(), second.is_proceed());
        }
        _ => println!("verdict: {:?}", verdict.await),
    }
    Ok(())
}
