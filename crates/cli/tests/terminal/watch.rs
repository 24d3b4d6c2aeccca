//! Requests of other processes, answered in one terminal.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::channel;

use amplifier_core::ApprovalAnswer;
use amplifier_host::Home;
use amplifier_server::client::{ApprovalUpdate, Client};
use serde_json::{Value, json};

use crate::common::{LIMIT, Place, Running, send_signal};
use crate::terminal::{Terminal, WAITS};

fn touch() -> Place {
    Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "when": "Denied by hook", "text": "Then not." },
        { "text": "Done." },
    ]))
}

/// A session without a terminal.
fn session(place: &Place) -> Running {
    Running::start(place.scripted(&["run", "--serve", "Make it"]))
}

fn serve(place: &Place) -> Running {
    let server = Running::start(place.command(&["serve", "--listen", "127.0.0.1:0", "--json"]));
    find(place);
    server
}

fn find(place: &Place) -> Client {
    let folder = Home::at(place.at("home")).server_folder();
    let begun = std::time::Instant::now();
    loop {
        match Client::find(&folder) {
            Ok(client) => return client,
            Err(error) => assert!(begun.elapsed() < LIMIT, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Answers the next request over the API, as another person does.
fn answer(place: &Place, option: &str) {
    let client = find(place);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut updates = client.approvals().await.unwrap();
        let Some(ApprovalUpdate::Hello { approvals, .. }) = updates.next().await.unwrap() else { panic!("no hello") };
        client.answer(&approvals[0], &ApprovalAnswer::from(option)).await.unwrap();
    });
}

#[test]
fn a_session_of_another_process_is_answered_and_control_c_ends_the_watch() {
    let place = touch();
    let server = serve(&place);
    let mut terminal = Terminal::start(&place, &["approvals", "watch"]);
    terminal.until("server: http://127.0.0.1:");
    terminal.until("Ctrl-C ends the command; requests stay open.");
    let running = session(&place);
    let shown = terminal.until(WAITS);
    assert!(shown.contains("amplifier ") && shown.contains("│   touch made"), "{shown}");
    terminal.keys("1");
    terminal.until("✓ allowed once");
    assert_eq!(running.end().code, 0);
    assert!(place.at("workspace/made").exists());
    terminal.until("waiting for approval requests");
    terminal.keys("\x03");
    assert_eq!(terminal.end(), 0);
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
}

#[test]
fn the_rules_of_a_request_are_offered_as_in_a_conversation() {
    let place = touch();
    place.answers(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "Done." },
    ]));
    let mut terminal = Terminal::start(&place, &["approvals", "watch"]);
    terminal.until("this command runs the server");
    let running = session(&place);
    terminal.until(WAITS);
    terminal.keys("2");
    terminal.until("allow without asking, until this session ends");
    terminal.until("Esc: back");
    terminal.keys("1");
    terminal.until("✓ allowed from now on");
    assert_eq!(running.end().code, 0);
    terminal.until("waiting for approval requests");
    terminal.keys("\x03");
    assert_eq!(terminal.end(), 0);
    assert_eq!(terminal.seen.matches("approval needed").count(), 1, "{}", terminal.seen);
}

#[test]
fn an_answer_of_somebody_else_is_shown_at_once() {
    let place = touch();
    let mut terminal = Terminal::start(&place, &["approvals", "watch"]);
    terminal.until("this command runs the server");
    let running = session(&place);
    terminal.until(WAITS);
    answer(&place, "Deny");
    terminal.until("✗ denied by ");
    terminal.until("over the API");
    assert_eq!(running.end().code, 3);
    terminal.until("waiting for approval requests");
    terminal.keys("\x03");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn esc_shows_the_next_request_and_control_c_leaves_all_of_them_open() {
    let place = touch();
    let server = serve(&place);
    let first = session(&place);
    let mut terminal = Terminal::start(&place, &["approvals", "watch"]);
    terminal.until(WAITS);
    // Alone, Esc only says that it does not answer.
    terminal.keys("\x1b");
    terminal.until("Esc does not answer");
    let second = session(&place);
    terminal.until("Esc: next (1 more)");
    terminal.keys("\x1b");
    terminal.until("○ not answered here");
    let list = terminal.until(WAITS);
    assert!(list.contains("2 open approval requests") && list.contains("▸ "), "{list}");
    terminal.until("Esc: next (1 more)");
    terminal.keys("\x03");
    terminal.until("○ not answered here");
    assert_eq!(terminal.end(), 0);

    answer(&place, "Deny");
    answer(&place, "Deny");
    assert_eq!((first.end().code, second.end().code), (3, 3));
    assert!(!place.at("workspace/made").exists());
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
}

#[test]
fn requests_outlive_the_server_and_are_answered_by_the_next_one() {
    let place = touch();
    let server = serve(&place);
    let mut terminal = Terminal::start(&place, &["approvals", "watch"]);
    let running = session(&place);
    terminal.until(WAITS);
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
    terminal.until("○ not answered here");
    terminal.until("the server has ended");
    terminal.until("this command runs the server");
    terminal.until(WAITS);
    terminal.keys("1");
    terminal.until("✓ allowed once");
    assert_eq!(running.end().code, 0);
    terminal.until("waiting for approval requests");
    terminal.keys("\x03");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn without_a_terminal_requests_are_lines_of_json() {
    let place = touch();
    let error = "amplifier: no terminal to ask on; run in a terminal, or print the requests with --json";
    place.amplifier(&["approvals", "watch"]).check_usage(error);
    let mut watching = place.command(&["approvals", "watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let (send, lines) = channel();
    let out = BufReader::new(watching.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().try_for_each(|line| send.send(line.unwrap())));
    let line = || serde_json::from_str::<Value>(&lines.recv_timeout(LIMIT).unwrap()).unwrap();
    find(&place);
    let running = session(&place);
    let asked = line();
    assert_eq!(
        (&asked["type"], &asked["approval"]["prompt"]),
        (&json!("approval_requested"), &json!("Run `touch made`?"))
    );
    answer(&place, "Allow once");
    let closed = line();
    assert_eq!((&closed["type"], &closed["id"]), (&json!("approval_closed"), &asked["approval"]["id"]));
    assert_eq!(closed["decided"]["granted"], true);
    assert_eq!(running.end().code, 0);
    send_signal("TERM", watching.id());
    assert!(watching.wait().unwrap().success());
    assert!(lines.recv_timeout(LIMIT).is_err(), "two lines are all");
}
