//! Prints what the turn machine itself costs for a tool call: with five hooks around it, and the audit log at `async`.
//!
//! `cargo bench -p amplifier-agent --bench turn`
#![allow(clippy::print_stdout, reason = "it is for people to read")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use amplifier_agent::provider::{Chunk, ModelRequest, Provider, ProviderError, StopReason, TokenUsage, ToolSpec};
use amplifier_agent::tool::{Tool, ToolError, ToolOutput};
use amplifier_agent::{Session, SessionOptions};
use amplifier_audit::{Durability, Log};
use amplifier_core::{HookRegistry, Map, ToolCall};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use serde_json::json;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 15;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    println!("What the turn machine costs for a tool call that does nothing. Median of {ROUNDS} rounds.\n");
    println!("{:>42} {:>12} {:>14}", "", "bare call", "in a turn");
    for (name, answers, calls, hooks, audited) in [
        ("100 calls in one answer, no hooks, no audit", 1, 100, 0, false),
        ("100 calls in one answer, 5 hooks, audit", 1, 100, 5, true),
        ("20 answers with one call, 5 hooks, audit", 20, 1, 5, true),
    ] {
        let bare = median(|| runtime.block_on(bare(answers * calls)))?;
        let turn = median(|| runtime.block_on(turn(answers, calls, hooks, audited)))?;
        println!("{name:>42} {:>9.2} µs {:>11.2} µs", micros(bare), micros(turn));
    }
    Ok(())
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn median(mut measure: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut all = (0..ROUNDS).map(|_| measure()).collect::<Result<Vec<_>>>()?;
    all.sort();
    Ok(all[ROUNDS / 2])
}

/// The same tool, called in a loop.
async fn bare(calls: usize) -> Result<Duration> {
    let begun = Instant::now();
    for _ in 0..calls {
        std::hint::black_box(Nothing.run(Map::new()).await?);
    }
    Ok(begun.elapsed() / calls as u32)
}

/// A whole turn, divided by its calls.
async fn turn(answers: usize, calls: usize, listeners: usize, audited: bool) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let hooks = HookRegistry::new();
    for number in 0..listeners {
        let event = ["tool:pre", "tool:post", "tool:*", "*", "tool:pre"][number % 5];
        hooks.hook(event).named(format!("hook-{number}")).run(|_| ())?;
    }
    let tools: [Arc<dyn Tool>; 1] = [Arc::new(Nothing)];
    let provider = Calls { answers, calls, given: AtomicUsize::new(0) };
    let mut builder = Session::builder(Arc::new(provider)).hooks(hooks).tools(tools).options(SessionOptions::default());
    let log = match audited {
        true => {
            Some(Log::at(folder.path().join("log"), folder.path().join("key")).durability(Durability::Async).open()?)
        }
        false => None,
    };
    if let Some(log) = &log {
        builder = builder.audit(log.clone());
    }
    let session = builder.start().await?;
    let begun = Instant::now();
    let end = session.prompt("go").await;
    let took = begun.elapsed();
    if end.status() != "success" {
        return Err(end.text().into());
    }
    session.end("complete").await?;
    Ok(took / (answers * calls) as u32)
}

/// Asks for so many tools so many times, at once.
struct Calls {
    answers: usize,
    calls: usize,
    given: AtomicUsize,
}

impl Provider for Calls {
    fn name(&self) -> &str {
        "bench"
    }

    fn model(&self) -> &str {
        "calls"
    }

    fn context_limit(&self) -> usize {
        1_000_000
    }

    fn answer(&self, _request: ModelRequest) -> BoxStream<'static, std::result::Result<Chunk, ProviderError>> {
        let answer = self.given.fetch_add(1, Ordering::Relaxed);
        let is_last = answer >= self.answers;
        let call =
            move |number| ToolCall { id: format!("call-{answer}-{number}"), name: "Nothing".into(), input: json!({}) };
        let calls = if is_last { 0 } else { self.calls };
        let stop = if is_last { StopReason::EndTurn } else { StopReason::ToolUse };
        let end = Chunk::End { stop, usage: TokenUsage::default() };
        stream::iter((0..calls).map(move |number| Ok(Chunk::ToolCall(call(number)))).chain([Ok(end)])).boxed()
    }
}

/// A tool that does nothing.
struct Nothing;

impl Tool for Nothing {
    fn spec(&self) -> ToolSpec {
        let input_schema = json!({ "type": "object" });
        ToolSpec { name: "Nothing".to_owned(), description: "Does nothing.".to_owned(), input_schema }
    }

    fn run(&self, _input: Map) -> BoxFuture<'_, std::result::Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text("nothing")) })
    }
}
