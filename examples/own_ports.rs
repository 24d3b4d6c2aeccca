//! Ports of your own: approvals on a terminal, messages on a screen, and a record in a file, a line of JSON each.
//!
//! Run it with `cargo run --example own_ports`, and answer by number or by word. Without a terminal, nobody is asked and
//! the answer is no.
#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amplifier_core::{
    Approval, ApprovalAnswer, ApprovalError, ApprovalSystem, AuditLog, AuditRecord, Coordinator, HookRegistry,
    HookResult, OpenRequest, PortError, Receipt, TOOL_PRE, ToolPre, data,
};
use tokio::sync::{Mutex as AsyncMutex, mpsc};

/// Asks on the terminal. One thread reads all lines: a reader for each question would swallow the answer to the next one
/// after its own had run out of time.
struct Terminal {
    lines: AsyncMutex<mpsc::UnboundedReceiver<String>>,
}

impl Terminal {
    fn new() -> Self {
        let (typed, lines) = mpsc::unbounded_channel();
        // A plain thread, which does not keep the program from ending.
        std::thread::spawn(move || {
            std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| typed.send(line))
        });
        Self { lines: AsyncMutex::new(lines) }
    }
}

impl ApprovalSystem for Terminal {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        if !std::io::stdin().is_terminal() {
            return Err(ApprovalError::Closed);
        }
        let mut lines = self.lines.lock().await;
        // What was typed before the question was shown is no answer to it.
        while lines.try_recv().is_ok() {}
        println!("{} asks: {}", request.hook, request.prompt);
        for (number, option) in request.options.iter().enumerate() {
            println!("  {} {}", number + 1, option.label);
        }
        loop {
            let typed = tokio::select! {
                typed = lines.recv() => typed.ok_or(ApprovalError::Closed)?,
                _ = request.closed() => return Err(ApprovalError::TimedOut),
            };
            match request.option(&typed) {
                Some(option) => return Ok(option.label.as_str().into()),
                None => println!("please type one of the numbers"),
            }
        }
    }
}

/// Writes each record as a line. Taking a record does not wait; `flush` does.
struct JsonLines {
    file: Mutex<File>,
}

impl AuditLog for JsonLines {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)?;
        // A log that can lose records later numbers them here. This one has written them by now.
        Ok(Receipt::default())
    }

    async fn flush(&self, _since: Receipt) -> Result<(), PortError> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).try_clone()?;
        Ok(tokio::task::spawn_blocking(move || file.sync_data()).await??)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("own-ports-{}.jsonl", std::process::id()));
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("careful").run(|event| {
        let question = Approval::new(format!("Run {}?", event.tool_name())).timeout(Duration::from_secs(20));
        HookResult::ask(question).warning("this tool has not been used before")
    });
    let session = Coordinator::builder(hooks)
        .approvals(Terminal::new())
        .display_fn(|message| println!("{message}"))
        .audit(JsonLines { file: Mutex::new(File::create(&path)?) })
        .build();

    let verdict = session.emit(TOOL_PRE, ToolPre::new("Bash", data! { "command": "ls" })).await;
    println!("{verdict}");
    let record = std::fs::read_to_string(&path)?;
    println!("{} lines of record, the last one:", record.lines().count());
    println!("{}", record.lines().last().unwrap_or_default());
    std::fs::remove_file(&path)?;
    Ok(())
}
