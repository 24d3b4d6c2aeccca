//! The answers that a client can express, found by asking its adapter.

use amplifier_host::ApprovalChannel;
use serde::Serialize;
use serde_json::json;

use crate::adapter;
use crate::answer::{Change, GuardAnswer};
use crate::client::Client;
use crate::event::{ClientEvent, ClientTool, Dialect, EventKind, ToolOperation};
use crate::settings;

/// An answer at an event, as a client expresses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expression {
    /// The event.
    pub event: &'static str,
    /// The answer: `deny`, `ask_user`, `modify`, `inject_context` or `user_message`.
    pub answer: &'static str,
    /// The effect: `exact`, or the effect instead.
    pub effect: String,
}

/// An answer that cannot change anything, because the client does not wait.
const NO_EFFECT: &str = "no effect: the agent does not wait";

/// Returns the effect of each answer at each event that a client has, with the place where approval requests are answered.
pub fn explain(client: Client, approvals: ApprovalChannel) -> Vec<Expression> {
    events_of(client).into_iter().flat_map(|name| explain_event(client, name, approvals)).collect()
}

/// Returns our events that a client has, by the hooks that are installed.
fn events_of(client: Client) -> Vec<&'static str> {
    let mut found = Vec::new();
    for hook in settings::hook_names(client) {
        let event = adapter::our_event(client, hook);
        found.extend(event.filter(|event| !found.contains(event)));
        // The tool that starts an agent has an event before tools.
        if event == Some("tool:pre") {
            found.push("agent:spawn");
        }
    }
    found.sort_by_key(|event| ORDER.iter().position(|known| known == event));
    found
}

/// The order of events in a session.
const ORDER: [&str; 8] = [
    "session:start",
    "prompt:submit",
    "tool:pre",
    "agent:spawn",
    "tool:post",
    "context:pre_compact",
    "orchestrator:complete",
    "session:end",
];

fn explain_event(client: Client, name: &'static str, approvals: ApprovalChannel) -> Vec<Expression> {
    let kind = match name {
        "session:start" => EventKind::SessionStart { source: "startup".to_owned() },
        "prompt:submit" => EventKind::Prompt { text: "prompt".to_owned() },
        "agent:spawn" if client == Client::Cursor => {
            EventKind::Spawn { agent: "general".to_owned(), task: "task".to_owned() }
        }
        "tool:pre" | "agent:spawn" => EventKind::ToolPre(command()),
        "tool:post" => {
            EventKind::ToolPost { tool: command(), result: json!({ "stdout": "a" }), success: true, milliseconds: 0 }
        }
        _ => EventKind::Complete { message: None },
    };
    let is_observed = matches!(kind, EventKind::Complete { .. });
    let change = match &kind {
        EventKind::Prompt { .. } => Some(Change::Prompt("another".to_owned())),
        EventKind::ToolPre(_) if name == "agent:spawn" => Some(Change::Input(json!({ "prompt": "another" }))),
        EventKind::ToolPre(_) | EventKind::Spawn { .. } => Some(Change::Input(json!({ "command": "another" }))),
        EventKind::ToolPost { .. } => Some(Change::Result(json!({ "stdout": "b" }))),
        _ => None,
    };
    let event = event(client, kind);
    let effect = |given: GuardAnswer| {
        let reply = adapter::answer(&event, &given);
        match reply.losses.first() {
            Some(loss) => loss.instead,
            None if !reply.deferred.is_empty() => "after the tool has run",
            None => "exact",
        }
    };
    let none = GuardAnswer::default;
    let decided = |effect: &dyn Fn() -> &'static str| if is_observed { NO_EFFECT } else { effect() };
    let asked = || match approvals {
        ApprovalChannel::Client => effect(GuardAnswer { question: Some("text".to_owned()), ..none() }),
        _ if event.is_gate() || name == "tool:post" => "answered in the console or in another terminal",
        _ => "answered in the console or in another terminal; a denial is as above",
    };
    // Data that no client takes from a hook cannot be changed.
    let modify = match change {
        Some(change) => Some(effect(GuardAnswer { change: Some(change), ..none() })),
        None => is_observed.then_some(NO_EFFECT),
    };
    let answers = [
        ("deny", Some(decided(&|| effect(GuardAnswer::deny("no"))))),
        ("ask_user", Some(decided(&asked))),
        ("modify", modify),
        ("inject_context", Some(effect(GuardAnswer { context: vec!["text".to_owned()], ..none() }))),
        ("user_message", Some(effect(GuardAnswer { messages: vec!["text".to_owned()], ..none() }))),
    ];
    let expressions = answers.into_iter().filter_map(|(answer, effect)| Some((answer, effect?)));
    expressions.map(|(answer, effect)| Expression { event: name, answer, effect: effect.to_owned() }).collect()
}

fn command() -> ClientTool {
    let input = json!({ "command": "ls" });
    let ours = input.as_object().cloned().unwrap_or_default();
    let operations = vec![ToolOperation { tool: "Bash".to_owned(), input: ours }];
    ClientTool { name: "Bash".to_owned(), input, operations }
}

fn event(client: Client, kind: EventKind) -> ClientEvent {
    ClientEvent {
        client,
        name: String::new(),
        session: String::new(),
        agent: None,
        parent: None,
        call: None,
        folder: None,
        model: None,
        version: None,
        mode: None,
        dialect: Dialect::Own,
        kind,
    }
}
