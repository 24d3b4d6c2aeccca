//! A terminal beside a server: the first answer counts, and prompts come from both.

use std::time::Duration;

use amplifier_core::ApprovalAnswer;
use amplifier_link::{AnswerScope, OpenApproval};
use amplifier_server::Hub;
use amplifier_server::LinkListener;
use amplifier_server::hub::{Command, HubErrorCode, SubmittedAnswer};
use serde_json::json;

use crate::common::{LIMIT, Place};
use crate::terminal::{Terminal, WAITS};

/// A server, as far as sessions see it.
struct Server {
    runtime: tokio::runtime::Runtime,
    hub: Hub,
    _door: LinkListener,
}

impl Server {
    fn open(place: &Place) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let hub = Hub::new();
        let guard = runtime.enter();
        let door = LinkListener::open(&place.at("home/server"), hub.clone()).unwrap();
        drop(guard);
        Self { runtime, hub, _door: door }
    }

    fn until<T>(&self, mut look: impl FnMut(&Hub) -> Option<T>) -> T {
        let begun = std::time::Instant::now();
        loop {
            if let Some(found) = look(&self.hub) {
                return found;
            }
            assert!(begun.elapsed() < LIMIT, "it never happens");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn asked(&self) -> OpenApproval {
        self.until(|hub| hub.pending().pop())
    }

    fn answer(&self, question: &OpenApproval, option: &str) -> Result<bool, (HubErrorCode, Option<String>)> {
        let answer = ApprovalAnswer::by(option, "ann", "console");
        let submitted = SubmittedAnswer { answer, nonce: question.nonce.clone(), scope: AnswerScope::Once };
        let answered = self.runtime.block_on(self.hub.answer(&question.id, submitted));
        answered.map(|decided| decided.granted).map_err(|refused| (refused.code, refused.by.map(|by| by.via)))
    }
}

fn touch() -> Place {
    Place::with(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "Done." },
    ]))
}

#[test]
fn the_console_answers_and_the_terminal_says_who_did() {
    let place = touch();
    let server = Server::open(&place);
    let mut terminal = Terminal::start(&place, &["run", "--serve", "Make it"]);
    terminal.until(WAITS);
    let question = server.asked();
    assert_eq!(question.prompt, "Run `touch made`?");
    assert_eq!(server.answer(&question, "Allow once"), Ok(true));
    terminal.until("✓ allowed once by ann in the console");
    assert_eq!(terminal.end(), 0);
    assert!(place.at("workspace/made").exists());
}

#[test]
fn the_terminal_answers_and_the_console_is_told_so() {
    let place = touch();
    let server = Server::open(&place);
    // Another question keeps the session alive.
    place.answers(json!([
        { "tools": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "tools": [{ "name": "Bash", "input": { "command": "touch more" } }] },
        { "text": "Done." },
    ]));
    let mut terminal = Terminal::start(&place, &["run", "--serve", "Make it"]);
    terminal.until(WAITS);
    let question = server.asked();
    terminal.keys("1");
    terminal.until("✓ allowed once");
    terminal.until(WAITS);
    server.until(|hub| hub.decision(&question.id));
    assert_eq!(server.answer(&question, "Deny"), Err((HubErrorCode::Answered, Some("terminal".to_owned()))));
    terminal.keys("3");
    assert_eq!(terminal.end(), 3);
    let late = place.amplifier(&["audit", "export", "--kind", "late_answer"]).fine();
    assert!(late.contains("\"ann\"") && late.lines().count() == 1, "{late}");
}

#[test]
fn a_conversation_takes_prompts_from_the_server() {
    let place = Place::with(json!([{ "when": "from afar", "text": "I hear you." }]));
    let server = Server::open(&place);
    let mut terminal = Terminal::start(&place, &["chat", "--serve"]);
    terminal.until_prompt();
    let id = server.until(|hub| hub.connected().pop().map(|about| about.session));
    let mode = |hub: &Hub| hub.connected().pop().and_then(|about| about.mode);
    server.until(|hub| mode(hub).filter(|mode| mode == "ask"));
    terminal.line("/mode plan");
    server.until(|hub| mode(hub).filter(|mode| mode == "plan"));
    server.until(|hub| hub.is_idle(&id).filter(|idle| *idle));
    server.hub.send(&id, Command::Prompt("A prompt from afar".to_owned())).unwrap();
    terminal.until("> A prompt from afar");
    terminal.until("I hear you.");
    server.until(|hub| hub.is_idle(&id).filter(|idle| *idle));
    server.hub.send(&id, Command::End).unwrap();
    assert_eq!(terminal.end(), 0);
    server.until(|hub| hub.connected().is_empty().then_some(()));
}
