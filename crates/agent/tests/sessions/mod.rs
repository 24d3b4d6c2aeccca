//! Shared code of session tests: stores, tools to wait for, and histories as text.
#![allow(dead_code, reason = "each test uses some of it")]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use amplifier_agent::provider::{Provider, Script, ScriptedProvider, ScriptedResponse, ToolSpec};
use amplifier_agent::tool::{Tool, ToolError, ToolOutput};
use amplifier_agent::{Session, SessionBuilder, SessionObserver, Store};
use amplifier_audit::{Integrity, Log, Verifier};
use amplifier_core::{Map, Message, Speaker};
use futures::future::BoxFuture;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc};

/// A folder for stored sessions and an audit log.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.folder.path().join("data/sessions")
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(self.sessions())
    }

    pub(crate) fn file(&self, id: &str, name: &str) -> PathBuf {
        self.sessions().join(id).join(name)
    }

    pub(crate) fn messages(&self, id: &str) -> String {
        fs::read_to_string(self.file(id, "messages.jsonl")).unwrap()
    }

    /// A session that is stored here, with a model that gives these answers.
    pub(crate) fn session(&self, answers: impl IntoIterator<Item = ScriptedResponse>) -> SessionBuilder {
        Session::builder(scripted(answers)).store(self.store()).tools([Arc::new(Echo) as Arc<dyn Tool>])
    }

    pub(crate) fn open_log(&self) -> Log {
        Log::at(self.folder.path().join("audit"), self.folder.path().join("audit.key")).open().unwrap()
    }

    /// The log is sound, so many sessions are sealed and no other, and nobody has to wonder whether something ran.
    pub(crate) fn check_log(&self, log: Log, sealed: u64) {
        log.close().unwrap();
        let report = Verifier::new().folder(self.folder.path().join("audit")).unwrap();
        let found = (report.integrity(), report.sealed, &report.unsealed[..], &report.in_doubt[..]);
        assert_eq!(found, (Integrity::Sound, sealed, &[][..], &[][..]), "{report}");
    }
}

pub(crate) fn scripted(answers: impl IntoIterator<Item = ScriptedResponse>) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new(Script::new(answers)).recording())
}

/// A model whose only answers are these, as a provider of sessions takes it.
pub(crate) fn provider(scripted: &Arc<ScriptedProvider>) -> Arc<dyn Provider> {
    scripted.clone()
}

/// One line for each message: who speaks, and what.
pub(crate) fn said(messages: &[Message]) -> Vec<String> {
    let one = |message: &Message| {
        let who = match message.role {
            Speaker::System => "system".to_owned(),
            Speaker::User => "user".to_owned(),
            Speaker::Assistant => "assistant".to_owned(),
            Speaker::Tool => format!("result of {}", message.tool_call_id.as_deref().unwrap_or("?")),
        };
        let hook = message.metadata.get("hook_name").and_then(|name| name.as_str());
        let hook = hook.map_or_else(String::new, |name| format!(" ({name})"));
        let calls: String = message.tool_calls.iter().map(|call| format!(" [{} {}]", call.id, call.name)).collect();
        format!("{who}{hook}: {}{calls}", message.content)
    };
    messages.iter().map(one).collect()
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: String::new(), input_schema: json!({ "type": "object" }) }
}

/// Says its `text` again.
pub(crate) struct Echo;

impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        spec("Echo")
    }

    fn run(&self, input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::text(input["text"].as_str().unwrap_or_default())) })
    }
}

/// A tool that takes until the test lets it go.
#[derive(Clone)]
pub(crate) struct Wait {
    begun: mpsc::UnboundedSender<()>,
    go: Arc<Semaphore>,
    pub(crate) finished: Arc<AtomicUsize>,
    pub(crate) dropped: Arc<AtomicUsize>,
}

impl Wait {
    /// The tool, and what tells when it begins.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<()>) {
        let (begun, begins) = mpsc::unbounded_channel();
        (Self { begun, go: Arc::new(Semaphore::new(0)), finished: Arc::default(), dropped: Arc::default() }, begins)
    }

    /// Lets so many runs finish.
    pub(crate) fn go(&self, runs: usize) {
        self.go.add_permits(runs);
    }

    /// The numbers of finished and dropped runs.
    pub(crate) fn ended(&self) -> (usize, usize) {
        (self.finished.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }
}

impl Tool for Wait {
    fn spec(&self) -> ToolSpec {
        spec("Wait")
    }

    fn run(&self, _input: Map) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let mut unfinished = CountDrop(Some(self.dropped.clone()));
            self.begun.send(()).unwrap();
            self.go.acquire().await.unwrap().forget();
            unfinished.0 = None;
            self.finished.fetch_add(1, Ordering::Relaxed);
            Ok(ToolOutput::text("waited"))
        })
    }
}

struct CountDrop(Option<Arc<AtomicUsize>>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        if let Some(count) = &self.0 {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Keeps what a person is told, and tells when.
#[derive(Clone)]
pub(crate) struct Notes {
    notes: Arc<Mutex<Vec<String>>>,
    news: mpsc::UnboundedSender<()>,
}

impl Notes {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<()>) {
        let (news, told) = mpsc::unbounded_channel();
        (Self { notes: Arc::default(), news }, told)
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    fn add(&self, note: String) {
        self.notes.lock().unwrap().push(note);
        // Not every test listens.
        let _ = self.news.send(());
    }
}

impl SessionObserver for Notes {
    fn text(&self, text: &str) {
        self.add(format!("text: {text}"));
    }

    fn note(&self, text: &str) {
        self.add(text.to_owned());
    }
}
