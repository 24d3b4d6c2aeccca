//! Shared parts of the tests: real logs, and sessions that write to them.
#![allow(dead_code, reason = "each test uses some of it")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use amplifier_audit::{Log, LogOptions, RecordFilter};
use amplifier_core::{
    ActionPreview, Approval as Asking, ApprovalAnswer, ApprovalError, ApprovalSystem, AuditEntry, AuditRecord,
    Coordinator, DecisionKind, EventData, EventEntry, EventName, HookRegistry, HookResult, Level, Map, MessageEntry,
    OpenRequest, PROMPT_SUBMIT, PortError, PreviewSource, PromptSubmit, SESSION_START, SessionStart, TOOL_POST,
    TOOL_PRE, ToolPost, ToolPre, Verdict,
};
use amplifier_link::{
    LinkClient, LinkClientOptions, LinkHandle, MachineReply, MachineRequest, OpenApproval, RuleList, serve_machine,
};
use amplifier_server::feed::{Feed, Page};
use amplifier_server::hub::HubErrorCode;
use amplifier_server::{Hub, HubEvent};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Secret in an approval request, which viewers must not see.
pub(crate) const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// Test time limit, longer than any operation here.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// A folder for a log and a key.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    pub(crate) fn options(&self) -> LogOptions {
        Log::at(self.log(), self.folder.path().join("audit.key"))
    }

    pub(crate) fn open(&self) -> Log {
        self.options().open().unwrap()
    }

    pub(crate) fn feed(&self) -> Feed {
        Feed::open(&self.log(), None).unwrap()
    }

    pub(crate) fn segment(&self, number: u64) -> PathBuf {
        self.log().join(format!("seg-{number:06}.jsonl"))
    }
}

/// A record with a text in it.
pub(crate) fn message(session: &str, text: &str) -> AuditRecord {
    let entry = AuditEntry::Message(MessageEntry {
        shown: true,
        source: "test".to_owned(),
        level: Level::Info,
        text: text.to_owned(),
    });
    AuditRecord { at: SystemTime::now(), session: Some(session.to_owned()), turn: 1, event: TOOL_PRE.name(), entry }
}

/// An event without hooks.
pub(crate) fn event(session: &str, name: &str, data: serde_json::Value) -> AuditRecord {
    let event: EventName = name.parse().unwrap();
    let data = EventData::from(data.as_object().cloned().unwrap());
    let entry = AuditEntry::Event(EventEntry {
        data: data.into(),
        decision: DecisionKind::Continue,
        denied_by: None,
        reason: None,
    });
    AuditRecord { at: SystemTime::now(), session: Some(session.to_owned()), turn: 1, event, entry }
}

/// Waits until the condition holds. Polls, because the threads involved send no notification.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let limit = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < limit, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns all matching records, page by page.
pub(crate) fn all(feed: &Feed, filter: &RecordFilter, limit: usize) -> Vec<amplifier_server::api_types::LogRecord> {
    let (mut records, mut after) = (Vec::new(), 0);
    loop {
        let Page { records: some, cursor, .. } = feed.records(filter, after, limit).unwrap();
        records.extend(some);
        if cursor == after || cursor >= feed.cursor() {
            return records;
        }
        after = cursor;
    }
}

/// Waits until the feed has read this many records.
pub(crate) fn read_to(feed: &Feed, size: u64) {
    until(&format!("{size} records"), || (feed.cursor() >= size).then_some(()));
}

/// Connects a machine with these replies, and waits until the server lists it.
pub(crate) async fn machine(hub: &Hub, reply: impl Fn(MachineRequest) -> MachineReply + Send + Sync + 'static) {
    let pipe = hub.machine_pipes().open();
    tokio::spawn(async move {
        let (_news, rules) = tokio::sync::watch::channel(RuleList::default());
        serve_machine(pipe, rules, move |request| std::future::ready(reply(request))).await
    });
    let connecting = async {
        while hub.test_bundle(None).await.is_err_and(|error| error.code == HubErrorCode::Offline) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, connecting).await.expect("the machine connects");
}

/// A session in the server whose hook requests approval before every tool. The tool's name sets the time limit:
/// [`call`]. The session is connected, so the server receives every request, however short.
pub(crate) fn asking(hub: &Hub, log: Option<&Log>, id: &str) -> (Coordinator, LinkHandle) {
    let (participant, _) = LinkClient::new(LinkClientOptions {
        workspace: "/".into(),
        run: log.map_or("run", Log::writer).to_owned(),
        name: None,
        takes_prompts: false,
        record: None,
        reload: None,
    });
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").run(|event| {
        let seconds = event.data.text("tool_name").unwrap_or_default().parse().unwrap();
        let asking = Asking::new("Run it *?").options(["Allow once", "Deny"]);
        HookResult::ask(asking.timeout(Duration::from_secs_f64(seconds)))
    });
    let session = Coordinator::builder(hooks).session_id(id).approvals(participant.clone()).previews(Curl);
    let session = match log {
        Some(log) => session.audit(log.clone()).build(),
        None => session.build(),
    };
    let link = participant.join(&hub.pipes());
    participant.begin(id, session.clone());
    // The list of hooks is the last message when a session connects.
    until("the connection", || hub.hooks_of(id).filter(|hooks| !hooks.is_empty()));
    (session, link)
}

/// Shows every operation as a command with a secret.
struct Curl;

impl PreviewSource for Curl {
    async fn preview(&self, _: &EventName, _: &EventData) -> Result<Option<ActionPreview>, PortError> {
        let command = format!("curl -H 'Authorization: Bearer {SECRET}' https://x.example");
        Ok(Some(ActionPreview::new("Bash").lines(&command)))
    }
}

/// Runs a tool call with this time limit in such a session.
pub(crate) fn call(session: &Coordinator, time: Duration) -> JoinHandle<Verdict> {
    let (session, tool) = (session.clone(), time.as_secs_f64().to_string());
    tokio::spawn(async move { session.emit(TOOL_PRE, ToolPre::new(tool, Map::new())).await })
}

/// Runs a tool call, and returns the approval request.
pub(crate) async fn asked(hub: &Hub, session: &Coordinator, time: Duration) -> (OpenApproval, JoinHandle<Verdict>) {
    let mut changes = hub.subscribe();
    let operation = call(session, time);
    loop {
        let change = tokio::time::timeout(LIMIT, changes.recv()).await.unwrap().unwrap();
        if let HubEvent::ApprovalRequested(approval) = change {
            return (OpenApproval::clone(&approval), operation);
        }
    }
}

/// An approver who always gives the same answer.
pub(crate) struct Always(pub(crate) &'static str);

impl ApprovalSystem for Always {
    async fn request_approval(&self, _: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        Ok(ApprovalAnswer::by(self.0, "alice", "console"))
    }
}

/// A session with hooks of every kind, which has had one turn with a tool that ran and one that was denied.
pub(crate) async fn turn(log: &Log, session: &str, answer: &'static str) {
    let hooks = HookRegistry::new();
    hooks.hook(TOOL_PRE).named("guard").run(|event| match event.data.text("tool_name") {
        Some("Rm") => HookResult::deny("not here"),
        _ => HookResult::ask("Run it?").because("it is new"),
    });
    hooks.hook(TOOL_POST).named("linter").run(|_| HookResult::inject("line 3 is too long").info("linted"));
    hooks.hook(TOOL_POST).named("broken").run(|_| -> HookResult { panic!("no luck") });
    let session = Coordinator::builder(hooks).session_id(session).audit(log.clone()).approvals(Always(answer)).build();
    let plan = json!({ "workspace": "/home/alice/project" }).as_object().cloned().unwrap();
    _ = session.emit(SESSION_START, SessionStart::new(plan, "startup")).await;
    session.begin_turn();
    _ = session.emit(PROMPT_SUBMIT, PromptSubmit::new("write a poem")).await;
    for (tool, call) in [("Write", "call-1"), ("Rm", "call-2")] {
        let pre = ToolPre::new(tool, Map::new()).with("tool_call_id", call);
        if session.emit(TOOL_PRE, pre).await.is_proceed() {
            let post = ToolPost::new(tool, Map::new(), json!("done"), true, 7).with("tool_call_id", call);
            _ = session.emit(TOOL_POST, post).await;
        }
    }
}
