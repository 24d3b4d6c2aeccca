//! A small world around a session, in which every place can be looked at: the model, the tools, the person, the history and the
//! audit log.
#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

mod saw;
mod screen;
mod tools;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_agent::provider::{ModelRequest, Script, ScriptedProvider};
use amplifier_agent::tool::Tool;
use amplifier_agent::{
    Cancel, Orchestrator, Session, SessionBuilder, SessionError, SessionOptions, Store, StoredSession, TurnEnd,
};
use amplifier_audit::{Durability, Folder, Log, Report, Verifier, read_records};
use amplifier_core::testing::{CollectingDisplay, EventRecorder, ScriptedApprovals};
use amplifier_core::{DisplayMessage, EventData, HookRegistry, Message, OpenRequest, SessionConfig};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use self::saw::{Saw, rendered, texts};
pub(crate) use self::screen::Screen;
pub(crate) use self::tools::{Inputs, tool};

/// Both ways in which answers are told.
pub(crate) const ORCHESTRATORS: [Orchestrator; 2] = [Orchestrator::Basic, Orchestrator::Streaming];

/// Everything around a session, before it begins.
pub(crate) struct World {
    pub(crate) hooks: HookRegistry,
    pub(crate) recorder: EventRecorder,
    pub(crate) provider: Arc<ScriptedProvider>,
    pub(crate) screen: Screen,
    pub(crate) inputs: Inputs,
    pub(crate) cancel: Cancel,
    pub(crate) orchestrator: Orchestrator,
    pub(crate) options: SessionOptions,
    pub(crate) config: SessionConfig,
    tools: Vec<Arc<dyn Tool>>,
    person: ScriptedApprovals,
    pub(crate) display: CollectingDisplay,
    folder: TempDir,
}

impl World {
    /// A model that follows the script, the tools `Echo` and `Shout`, and a person who allows everything.
    pub(crate) fn new(script: Script) -> Self {
        Self::with(ScriptedProvider::new(script))
    }

    /// The same with a provider that has settings of its own.
    pub(crate) fn with(provider: ScriptedProvider) -> Self {
        let hooks = HookRegistry::new();
        let inputs = Inputs::default();
        Self {
            recorder: EventRecorder::watch(&hooks),
            hooks,
            provider: Arc::new(provider.recording()),
            screen: Screen::default(),
            cancel: Cancel::default(),
            orchestrator: Orchestrator::default(),
            options: SessionOptions::default(),
            config: SessionConfig::default(),
            tools: tools::usual(&inputs),
            inputs,
            person: ScriptedApprovals::new(["Allow"]),
            display: CollectingDisplay::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A person who answers this, one answer a question; the last one repeats.
    pub(crate) fn person(mut self, answers: &[&'static str]) -> Self {
        self.person = ScriptedApprovals::new(answers.iter().copied());
        self
    }

    /// One more tool.
    pub(crate) fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Tells answers in this way.
    pub(crate) fn orchestrator(mut self, orchestrator: Orchestrator) -> Self {
        self.orchestrator = orchestrator;
        self
    }

    /// Changes limits of the session.
    pub(crate) fn options(mut self, change: impl FnOnce(&mut SessionOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Changes limits for what hooks say.
    pub(crate) fn config(mut self, change: impl FnOnce(&mut SessionConfig)) -> Self {
        change(&mut self.config);
        self
    }

    fn log_folder(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    fn log(&self) -> Log {
        let log = Log::at(self.log_folder(), self.folder.path().join("audit.key"));
        log.durability(Durability::Async).open().unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(self.folder.path().join("sessions"))
    }

    fn builder(&self, log: &Log) -> SessionBuilder {
        Session::builder(self.provider.clone())
            .hooks(self.hooks.clone())
            .tools(self.tools.clone())
            .approvals(self.person.clone())
            .display(self.display.clone())
            .observer(self.screen.clone())
            .cancel(self.cancel.clone())
            .options(self.options.clone())
            .config(self.config.clone())
            .orchestrator(self.orchestrator)
            .store(self.store())
            .audit(log.clone())
    }

    /// A whole session of these prompts.
    pub(crate) async fn run(self, prompts: &[&str]) -> Run {
        self.run_by(async |session| {
            let mut ends = Vec::new();
            for prompt in prompts {
                ends.push(session.prompt(prompt).await);
            }
            ends
        })
        .await
    }

    /// A whole session in which `act` is done.
    pub(crate) async fn run_by(self, act: impl AsyncFnOnce(&Session) -> Vec<TurnEnd>) -> Run {
        let log = self.log();
        let started = self.builder(&log).start().await;
        self.finish(log, started, act).await
    }

    /// A session with one prompt that is ended, and resumed for another one.
    pub(crate) async fn run_and_resume(self, first: &str, then: &str) -> Run {
        let log = self.log();
        let session = self.builder(&log).start().await.unwrap();
        let first = session.prompt(first).await;
        let id = session.id().to_owned();
        session.end("user_exit").await.unwrap();
        let resumed = self.builder(&log).resume(&id).await;
        self.finish(log, resumed, async |session| vec![first, session.prompt(then).await]).await
    }

    /// Ends the session, and looks at every place. What must hold in every run is checked here.
    async fn finish(
        self,
        log: Log,
        session: Result<Session, SessionError>,
        act: impl AsyncFnOnce(&Session) -> Vec<TurnEnd>,
    ) -> Run {
        let (mut ends, mut history, mut id, mut begun) = (Vec::new(), Vec::new(), String::new(), Ok(()));
        match session {
            Ok(session) => {
                ends = act(&session).await;
                history = session.history();
                id = session.id().to_owned();
                session.end("complete").await.unwrap();
            }
            Err(error) => begun = Err(error.to_string()),
        }
        log.close().unwrap();
        let report = Verifier::new().folder(self.log_folder()).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(report.in_doubt, [], "every operation that began has an end on record");
        let mut stored = None;
        if begun.is_ok() {
            assert_eq!(report.unsealed, [""; 0], "every session is sealed");
            let exported = self.store().export(&id).unwrap();
            let messages: Vec<Message> = exported.messages.into_iter().map(|(_, message)| message).collect();
            // Messages from before the compaction stay stored.
            let is_shortened = self.recorder.names().contains(&"context:post_compact".to_owned());
            assert!(is_shortened || messages.starts_with(&history), "what is stored is the history: {messages:?}");
            stored = Some(exported.session);
        }
        Run {
            begun,
            ends,
            session: id,
            requests: self.provider.requests(),
            inputs: self.inputs.all(),
            messages: self.display.messages(),
            questions: self.person.requests(),
            watched: self.screen.lines(),
            notes: self.screen.notes(),
            history,
            events: self.recorder.events(),
            audit: records(&self.log_folder()),
            report,
            stored,
            sessions: self.store().list().unwrap().into_iter().map(|session| session.id).collect(),
            files: files(self.folder.path()),
        }
    }
}

/// A session that is over, seen from everywhere.
pub(crate) struct Run {
    /// The reason for a failed start.
    pub(crate) begun: Result<(), String>,
    pub(crate) ends: Vec<TurnEnd>,
    pub(crate) session: String,
    /// The requests to the model.
    pub(crate) requests: Vec<ModelRequest>,
    /// The inputs of tools.
    pub(crate) inputs: Vec<(String, Value)>,
    /// The output to the user: messages of hooks, approval requests, and the terminal.
    pub(crate) messages: Vec<DisplayMessage>,
    pub(crate) questions: Vec<Arc<OpenRequest>>,
    pub(crate) watched: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) history: Vec<Message>,
    pub(crate) events: Vec<(String, EventData)>,
    /// The records of the audit log, as JSON.
    pub(crate) audit: Vec<Value>,
    pub(crate) report: Report,
    pub(crate) stored: Option<StoredSession>,
    /// The sessions that can be gone on with.
    pub(crate) sessions: Vec<String>,
    /// Everything that is on disk: the stored session and the audit log.
    pub(crate) files: String,
}

impl Run {
    /// The data of all events of that name.
    pub(crate) fn events(&self, name: &str) -> Vec<&EventData> {
        self.events.iter().filter(|(event, _)| event == name).map(|(_, data)| data).collect()
    }

    /// The names of all events of the session, without those of its sub-agents.
    pub(crate) fn own_events(&self) -> Vec<&str> {
        let own = self.events.iter().filter(|(_, data)| data.session_id() == Some(&self.session));
        own.map(|(name, _)| name.as_str()).collect()
    }

    /// The records of one kind at one event.
    pub(crate) fn records(&self, kind: &str, event: &str) -> Vec<&Value> {
        self.audit.iter().filter(|record| record["kind"] == kind && record["event"] == event).collect()
    }
}

fn records(folder: &Path) -> Vec<Value> {
    let mut records = Vec::new();
    read_records(&Folder::new(folder), |record| {
        records.push(serde_json::from_str(record.line()).unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    records
}

/// Everything under a folder, as one text.
fn files(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.push_str(&files(&path)),
            false => all.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap())),
        }
    }
    all
}
