//! Approval requests of a guarded agent: the person sees which agent asks, and answers in a terminal or over the API.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use amplifier_core::ApprovalAnswer;
use amplifier_host::Home;
use amplifier_server::api_types::{Session, SessionClient};
use amplifier_server::client::{ApprovalUpdate, Client};
use serde_json::{Value, json};

use crate::common::{LIMIT, Running};
use crate::guard::{Guarded, text};
use crate::terminal::Terminal;

const RULES: &str = "hooks:\n  - rule: ask-deploy\n    on: tool:pre\n    when: tool_name == \"Bash\" && tool_input.command.contains(\"deploy\")\n    ask: Deploy now?\n    options: [Allow once, Deny]\n";
const WAITS: &str = "press 1–2";

fn guarded() -> Guarded {
    let guarded = Guarded::new();
    guarded.place.write("home/bundle.yaml", RULES);
    let installed = guarded.guard(&["install", "claude"]);
    assert!(installed.status.success(), "{}", text(&installed));
    guarded
}

/// Calls a hook as Claude Code does, with the variable that has its version.
fn call(guarded: &Guarded, event: &str, more: Value) -> Child {
    run(&guarded.line(event), &payload(guarded, event, more))
}

fn payload(guarded: &Guarded, event: &str, more: Value) -> Value {
    let mut payload = json!({
        "session_id": "session-1", "prompt_id": "p", "cwd": guarded.place.at("workspace"), "hook_event_name": event,
    });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    payload
}

fn run(line: &str, payload: &Value) -> Child {
    let mut child = Command::new("/bin/sh")
        .args(["-c", line])
        .env("AI_AGENT", "claude-code_2-1-325_harness")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    child
}

fn deploy(guarded: &Guarded, id: &str) -> Child {
    let input = json!({ "command": format!("deploy {id}") });
    call(guarded, "PreToolUse", json!({ "tool_name": "Bash", "tool_input": input, "tool_use_id": id }))
}

/// Calls the hook with another time limit.
fn deploy_within(guarded: &Guarded, milliseconds: u64) -> Child {
    let line = guarded.line("PreToolUse");
    let (before, after) = line.split_once("--deadline ").unwrap();
    let after = after.split_once(' ').unwrap().1;
    let input = json!({ "command": "deploy" });
    let payload =
        payload(guarded, "PreToolUse", json!({ "tool_name": "Bash", "tool_input": input, "tool_use_id": "t" }));
    run(&format!("{before}--deadline {milliseconds} {after}"), &payload)
}

/// Starts the session of the agent.
fn start(guarded: &Guarded) {
    let started = call(guarded, "SessionStart", json!({ "source": "startup", "model": "claude-sonnet-4-5" }));
    assert!(started.wait_with_output().unwrap().status.success());
}

#[test]
fn a_person_who_watches_answers_a_guarded_agent() {
    let guarded = guarded();
    let mut terminal = Terminal::start(&guarded.place, &["approvals", "watch"]);
    terminal.until("this command runs the server, because there was none: http://127.0.0.1:");
    terminal.until("waiting for approval requests");
    start(&guarded);
    let asking = deploy(&guarded, "t-1");
    let shown = terminal.until(WAITS);
    for part in
        ["claude 2.1.325", "session sion-1", "/workspace", "│   deploy t-1", "hook ask-deploy says: Deploy now?"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    terminal.until("denies in ");
    terminal.keys("1");
    terminal.until("✓ allowed once");
    let allowed = asking.wait_with_output().unwrap();
    assert_eq!((allowed.status.code(), text(&allowed)), (Some(0), String::new()));

    let asking = deploy(&guarded, "t-2");
    terminal.until(WAITS);
    terminal.keys("/");
    terminal.until("reason: ");
    terminal.keys("only on Mondays\r");
    terminal.until("✗ denied");
    let denied = asking.wait_with_output().unwrap();
    assert_eq!(denied.status.code(), Some(2));
    assert!(text(&denied).contains("only on Mondays"), "{}", text(&denied));
    terminal.until("waiting for approval requests");
    terminal.keys("\x03");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_request_that_nobody_answers_is_denied_before_the_time_limit_of_the_hook() {
    let guarded = guarded();
    let watching = Running::start(guarded.place.command(&["approvals", "watch", "--json"]));
    let folder = Home::at(guarded.place.at("home")).server_folder();
    while Client::find(&folder).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // The rule would wait for five minutes.
    let denied = deploy_within(&guarded, 4_000).wait_with_output().unwrap();
    assert_eq!(denied.status.code(), Some(2));
    assert!(text(&denied).contains("no answer within the time limit of the hook"), "{}", text(&denied));
    watching.signal("TERM");
    assert!(watching.end().fine().contains("approval_requested"));
    let decisions = guarded.place.amplifier(&["audit", "export", "--kind", "approval_decision"]).fine();
    assert!(decisions.contains("no answer within the time limit of the hook"), "{decisions}");
}

/// Starts a server.
async fn serve(guarded: &Guarded) -> (Running, Client) {
    let server = Running::start(guarded.place.command(&["serve", "--listen", "127.0.0.1:0", "--json"]));
    let folder = Home::at(guarded.place.at("home")).server_folder();
    let client = tokio::time::timeout(LIMIT, async {
        loop {
            match Client::find(&folder) {
                Ok(client) => return client,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        }
    });
    (server, client.await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_of_the_guard_is_no_session_in_the_console() {
    let guarded = guarded();
    let (server, client) = serve(&guarded).await;
    let mut updates = client.approvals().await.unwrap();
    let tested = guarded.guard(&["test"]);
    assert!(tested.status.success(), "{}", text(&tested));
    start(&guarded);
    let mut ids = BTreeSet::new();
    while !ids.contains("session-1") {
        match updates.next().await.unwrap().unwrap() {
            ApprovalUpdate::Hello { sessions, .. } => ids.extend(sessions.into_iter().map(|session| session.id)),
            ApprovalUpdate::Session { session } => _ = ids.insert(session.id),
            _ => {}
        }
    }
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), ["session-1"]);
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_shows_which_agent_asks_and_an_answer_over_the_api_reaches_it() {
    let guarded = guarded();
    let (server, client) = serve(&guarded).await;
    let mut updates = client.approvals().await.unwrap();
    start(&guarded);
    let asking = deploy(&guarded, "t-1");
    let approval = loop {
        if let Some(ApprovalUpdate::ApprovalRequested { approval }) = updates.next().await.unwrap() {
            break approval;
        }
    };
    assert_eq!((approval.session.as_str(), approval.prompt.as_str()), ("session-1", "Deploy now?"));
    let decided = client.answer(&approval, &ApprovalAnswer::from("Allow once")).await.unwrap();
    assert!(decided.granted);
    assert!(asking.wait_with_output().unwrap().status.success());
    let session = loop {
        let sessions = match updates.next().await.unwrap().unwrap() {
            ApprovalUpdate::Hello { sessions, .. } => sessions,
            ApprovalUpdate::Session { session } => vec![session],
            _ => Vec::new(),
        };
        // The server reads it from the log.
        if let Some(session) = sessions.into_iter().find(|one| one.id == "session-1" && one.client.is_some()) {
            break session;
        }
    };
    let Session { client, model, workspace, connected, .. } = session;
    let expected = SessionClient { name: "claude".to_owned(), version: Some("2.1.325".to_owned()) };
    assert_eq!((client, model.as_deref(), connected), (Some(expected), Some("claude-sonnet-4-5"), true));
    assert!(workspace.unwrap().ends_with("/workspace"));
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
}
