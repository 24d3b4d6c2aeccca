//! Search, activity and filters of sessions, as the API has them.

use std::time::{Duration, SystemTime};

use amplifier_audit::Log;
use amplifier_core::{
    ActionKind, AuditEntry, AuditRecord, CallCost, DecisionKind, EventData, EventEntry, HookReportEntry, Level,
    MessageEntry, TOOL_PRE,
};
use amplifier_server::Hub;
use amplifier_server::access::{Access, AccessOptions, Role, TokenFiles};
use amplifier_server::feed::Feed;
use amplifier_server::{App, RunningServer, Server, ServerOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::common::{LIMIT, SECRET, event, until};

/// A server over a log.
struct Served {
    app: App,
    log: Log,
    viewer: String,
    running: RunningServer,
    _folder: TempDir,
}

impl Served {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::at(folder.path().join("audit"), folder.path().join("key")).open().unwrap();
        let feed = Feed::open(&folder.path().join("audit"), None).unwrap();
        let server = folder.path().join("server");
        let access = Access::open(&server, AccessOptions::default()).unwrap();
        let app = App { hub: Hub::new(), feed, access, log: log.clone() };
        let viewer = TokenFiles::at(&server).unwrap().add("watcher", Role::Viewer).unwrap();
        let running = Server::start(app.clone(), ServerOptions::new("127.0.0.1:0".parse().unwrap())).await.unwrap();
        Self { app, log, viewer, running, _folder: folder }
    }

    fn take(&self, session: &str, name: &str, data: Value) {
        self.log.take(&event(session, name, data)).unwrap();
    }

    /// A session with a workspace and a client.
    fn start(&self, session: &str, client: &str) {
        let plan = json!({ "workspace": "/work", "client": { "name": client, "version": "1" } });
        self.take(session, "session:start", json!({ "mount_plan": plan, "source": "startup" }));
    }

    fn deny(&self, session: &str, hook: &str, reason: &str) {
        let data = json!({ "tool_name": "Bash", "tool_input": { "command": "true" } });
        let entry = AuditEntry::Event(EventEntry {
            data: EventData::from(data.as_object().cloned().unwrap()).into(),
            decision: DecisionKind::Deny,
            denied_by: Some(hook.into()),
            reason: Some(reason.into()),
        });
        let (at, session) = (SystemTime::now(), Some(session.to_owned()));
        self.log.take(&AuditRecord { at, session, turn: 1, event: TOOL_PRE.name(), entry }).unwrap();
    }

    /// Waits until the server has read all records.
    fn flush(&self) {
        self.log.checkpoint().unwrap();
        let size = self.log.status().size;
        until("the records", || (self.app.feed.cursor() >= size).then_some(()));
    }

    async fn ask(&self, path: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.running.address).await.unwrap();
        let (address, viewer) = (self.running.address, &self.viewer);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {viewer}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(LIMIT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Returns the parts and excerpts that a search finds, page by page, and the number of pages.
    async fn search(&self, query: &str) -> (Vec<(String, String)>, usize) {
        let (mut found, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = self.get(&format!("/api/search?{query}{cursor}")).await;
            pages += 1;
            let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
            found.extend(
                page["matches"].as_array().unwrap().iter().map(|one| (text(one, "part"), text(one, "excerpt"))),
            );
            match page["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return (found, pages),
            }
        }
    }
}

fn ids(list: &Value) -> Vec<&str> {
    list["sessions"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_paths_commands_and_reasons_are_found_in_any_case() {
    let served = Served::new().await;
    served.take("s-1", "prompt:submit", json!({ "prompt": "Deploy the harbour" }));
    served.take("s-1", "tool:pre", json!({ "tool_name": "Edit", "tool_input": { "file_path": "infra/deploy.tf" } }));
    served.take("s-2", "tool:pre", json!({ "tool_name": "Bash", "tool_input": { "command": "make deploy" } }));
    // Neither results of tools nor messages are searched.
    served.take("s-2", "tool:post", json!({ "tool_name": "Bash", "tool_result": "deploy: done" }));
    let message =
        MessageEntry { shown: true, source: "test".to_owned(), level: Level::Info, text: "deploy".to_owned() };
    let entry = AuditEntry::Message(message);
    let (at, session) = (SystemTime::now(), Some("s-2".to_owned()));
    served.log.take(&AuditRecord { at, session, turn: 1, event: TOOL_PRE.name(), entry }).unwrap();
    served.deny("s-2", "guard", "no deploy on Fridays");
    served.flush();
    let (found, _) = served.search("text=DEPLOY").await;
    let expected = [
        ("reason", "no deploy on Fridays"),
        ("input", "make deploy"),
        ("input", "infra/deploy.tf"),
        ("prompt", "Deploy the harbour"),
    ];
    assert_eq!(found, expected.map(|(part, text)| (part.to_owned(), text.to_owned())));
    // Every word must be in the same text; a session can be given by a part of its id.
    assert_eq!(served.search("text=harbour%20deploy").await.0.len(), 1);
    assert_eq!(served.search("text=deploy&session=-2").await.0.len(), 2);
    assert_eq!(served.search("text=nowhere").await.0.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_goes_on_with_its_cursor_and_finds_each_match_once() {
    let served = Served::new().await;
    for n in 0..700 {
        served.take("s-1", "prompt:submit", json!({ "prompt": format!("task {n}") }));
        served.take("s-1", "execution:start", json!({}));
    }
    served.flush();
    let (found, pages) = served.search("text=task&limit=64").await;
    let expected: Vec<String> = (0..700).rev().map(|n| format!("task {n}")).collect();
    assert_eq!(found.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), expected);
    assert!(pages >= 11, "{pages}");
    // A part of the log at a time: what was searched is told, and new records do not move the cursor.
    let first = served.get("/api/search?text=task&limit=3").await;
    served.take("s-1", "prompt:submit", json!({ "prompt": "task later" }));
    served.flush();
    let cursor = first["cursor"].as_str().unwrap();
    let second = served.get(&format!("/api/search?text=task&limit=1&cursor={cursor}")).await;
    assert_eq!(second["matches"][0]["excerpt"], "task 696");
    assert!(second["searched_since"].is_string(), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_never_finds_what_redaction_hides() {
    let served = Served::new().await;
    let command = format!("curl -H 'Authorization: Bearer {SECRET}' https://x.example");
    served.take("s-1", "tool:pre", json!({ "tool_name": "Bash", "tool_input": { "command": command } }));
    served.flush();
    assert_eq!(served.search(&format!("text={SECRET}")).await.0, []);
    assert_eq!(served.search("text=ghp_0123").await.0, []);
    let (found, _) = served.search("text=x.example").await;
    assert_eq!(found.len(), 1);
    assert!(found[0].1.contains("kind=github_token") && !found[0].1.contains("ghp_"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_and_records_are_limited_to_a_period() {
    let served = Served::new().await;
    served.take("s-1", "prompt:submit", json!({ "prompt": "early" }));
    served.flush();
    let early = served.get("/api/audit/records?event=prompt:submit").await["records"][0]["at"].clone();
    let between = early.as_str().unwrap().parse::<jiff::Timestamp>().unwrap() + jiff::SignedDuration::from_micros(1);
    until("a later moment", || (jiff::Timestamp::now() > between).then_some(()));
    served.take("s-1", "prompt:submit", json!({ "prompt": "early, and later" }));
    served.flush();
    for (period, expected) in [("since", "early, and later"), ("until", "early")] {
        let (found, _) = served.search(&format!("text=early&{period}={between}")).await;
        assert_eq!(found, [("prompt".to_owned(), expected.to_owned())], "{period}");
        let records = served.get(&format!("/api/audit/records?event=prompt:submit&{period}={between}")).await;
        let prompts: Vec<&Value> =
            records["records"].as_array().unwrap().iter().map(|one| &one["body"]["data"]["prompt"]).collect();
        assert_eq!(prompts, [expected], "{period}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_searches_are_errors() {
    let served = Served::new().await;
    let long = "x".repeat(101);
    for query in ["text=", "text=%20", &format!("text={long}"), "text=a%20b%20c%20d%20e%20f%20g%20h%20i"] {
        let (status, body) = served.ask(&format!("/api/search?{query}")).await;
        assert_eq!(status, 422, "{body}");
        assert!(body["error"]["message"].as_str().unwrap().starts_with("invalid search; enter 1 to 8 words"), "{body}");
    }
    for cursor in ["x", "AAAA", "12"] {
        let (status, body) = served.ask(&format!("/api/search?text=a&cursor={cursor}")).await;
        assert_eq!((status, &body["error"]["code"]), (422, &json!("query")), "{body}");
    }
    assert_eq!(served.ask("/api/search").await.0, 400);
    assert_eq!(served.ask("/api/search?text=a&since=yesterday").await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_filtered_by_outcome_client_and_time() {
    let served = Served::new().await;
    for (session, client, end) in
        [("s-1", "amplifier", "error"), ("s-2", "python", "complete"), ("s-3", "amplifier", "complete")]
    {
        served.start(session, client);
        served.take(session, "session:end", json!({ "reason": end }));
    }
    served.deny("s-3", "guard", "no");
    served.flush();
    let all = served.get("/api/sessions").await;
    assert_eq!(ids(&all), ["s-3", "s-2", "s-1"]);
    assert_eq!(ids(&served.get("/api/sessions?state=failed").await), ["s-1"]);
    assert_eq!(ids(&served.get("/api/sessions?denied=true").await), ["s-3"]);
    assert_eq!(ids(&served.get("/api/sessions?client=python").await), ["s-2"]);
    let newest = all["sessions"][0]["updated_at"].as_str().unwrap();
    assert_eq!(ids(&served.get(&format!("/api/sessions?since={newest}")).await), ["s-3"]);
    assert_eq!(all["sessions"][1]["client"], json!({ "name": "python", "version": "1" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_sessions_count_as_over_in_the_first_message_of_the_stream() {
    let served = Served::new().await;
    for n in 0..230 {
        let session = format!("s-{n}");
        served.start(&session, "amplifier");
        served.take(&session, "session:end", json!({ "reason": "error" }));
    }
    served.flush();
    let mut stream = TcpStream::connect(served.running.address).await.unwrap();
    let (address, viewer) = (served.running.address, &served.viewer);
    let request = format!("GET /api/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {viewer}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let hello = loop {
        let line = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
        if line.starts_with("{\"type\":\"hello\"") {
            break serde_json::from_str::<Value>(&line).unwrap();
        }
    };
    assert_eq!((ids(&hello).len(), &hello["known"]), (200, &json!(230)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_session_id_is_enough_unless_several_sessions_have_it() {
    let served = Served::new().await;
    for session in ["01a1-dca68d", "01a1-71f00d"] {
        served.start(session, "amplifier");
        served.take(session, "prompt:submit", json!({ "prompt": session }));
    }
    served.flush();
    for path in ["/api/sessions/dca68d", "/api/sessions/dca68d/timeline", "/api/hooks?session=dca68d"] {
        served.get(path).await;
    }
    assert_eq!(served.get("/api/sessions/dca68d").await["id"], "01a1-dca68d");
    let records = served.get("/api/audit/records?session=71f00d").await;
    assert!(records["records"].as_array().unwrap().iter().all(|one| one["session"] == "01a1-71f00d"));
    assert_eq!(records["records"].as_array().unwrap().len(), 2);
    for path in ["/api/sessions/01a1", "/api/audit/records?session=01a1", "/api/approvals/history?session=01a1"] {
        let (status, body) = served.ask(path).await;
        assert_eq!((status, &body["error"]["code"]), (409, &json!("ambiguous")), "{body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains("2 sessions match: `01a1-71f00d`, `01a1-dca68d`"), "{message}");
    }
    assert_eq!(served.ask("/api/sessions/nobody").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_activity_counts_tokens_denials_and_failed_sessions_by_the_hour() {
    let served = Served::new().await;
    served.start("s-1", "amplifier");
    served.take("s-1", "prompt:submit", json!({ "prompt": "Go" }));
    let answer = json!({ "content": " I go. ", "usage": { "input_tokens": 90, "output_tokens": 10 } });
    served.take("s-1", "provider:response", answer);
    served.deny("s-1", "guard", "no");
    served.deny("s-1", "guard", "no");
    served.take("s-1", "session:end", json!({ "reason": "error" }));
    served.flush();
    let day = served.get("/api/activity").await;
    let hours = day["hours"].as_array().unwrap();
    assert_eq!(hours.len(), 24);
    // The test may run across the end of an hour.
    let sum = |name: &str| hours.iter().map(|hour| hour[name].as_u64().unwrap()).sum::<u64>();
    let names = ["sessions", "prompts", "tool_calls", "denials", "hook_errors", "failed_sessions", "tokens"];
    assert_eq!(names.map(sum), [1, 1, 2, 2, 0, 1, 100]);
    assert_eq!(day["denials_by_hook"], json!([{ "hook": "guard", "denials": 2 }]));
    assert_eq!(served.get("/api/activity?hours=9999").await["hours"].as_array().unwrap().len(), 744);
    let session = served.get("/api/sessions/s-1").await;
    assert_eq!((&session["last_message"], &session["tokens"]), (&json!("I go."), &json!(100)));
}

#[tokio::test(flavor = "multi_thread")]
async fn costs_are_summed_where_a_hook_knows_the_price_and_none_are_invented() {
    let served = Served::new().await;
    let answer = json!({ "content": "", "usage": { "input_tokens": 90, "output_tokens": 10 } });
    let report = |hook: &str, reason: &str| {
        let entry = AuditEntry::HookReport(HookReportEntry {
            hook: hook.to_owned(),
            answer: ActionKind::Continue,
            took: Duration::from_micros(1),
            reason: Some(reason.to_owned()),
            error: None,
            suppressed_output: false,
        });
        let (at, session) = (SystemTime::now(), Some("s-1".to_owned()));
        let event = "provider:response".parse().unwrap();
        served.log.take(&AuditRecord { at, session, turn: 1, event, entry }).unwrap();
    };
    served.start("s-1", "amplifier");
    served.take("s-1", "provider:response", answer.clone());
    report("hooks-cost", &CallCost::new(0.25, "USD").unwrap().to_string());
    // A second counter of the same calls, and a reason that is none.
    report("other-cost", "cost: 9.000000 USD");
    report("hooks-cost", "cost: a lot");
    served.flush();
    let complete = json!([{ "amount": 0.25, "currency": "USD", "incomplete": false }]);
    assert_eq!(served.get("/api/activity").await["costs"], complete);
    served.start("s-2", "amplifier");
    served.take("s-2", "provider:response", answer.clone());
    served.flush();
    let session = served.get("/api/sessions/s-1").await;
    assert_eq!(session["cost"], json!({ "amount": 0.25, "currency": "USD", "incomplete": false }));
    assert!(served.get("/api/sessions/s-2").await["cost"].is_null());
    // The sums of a period include the call of `s-2`, whose price is unknown.
    let activity = served.get("/api/activity").await;
    let incomplete = json!([{ "amount": 0.25, "currency": "USD", "incomplete": true }]);
    let hours = activity["hours"].as_array().unwrap().iter().map(|hour| &hour["costs"]);
    let of_hour: Vec<&Value> = hours.filter(|costs| !costs.as_array().unwrap().is_empty()).collect();
    assert_eq!((&activity["costs"], of_hour), (&incomplete, vec![&incomplete]));
    // A call without a price makes the sum incomplete.
    served.take("s-1", "provider:response", answer);
    served.flush();
    assert_eq!(served.get("/api/sessions/s-1").await["cost"]["incomplete"], true);
}
