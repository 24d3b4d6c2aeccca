//! A session at a terminal, from what is configured.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_agent::provider::TokenUsage;
use amplifier_agent::{Cancel, SessionObserver};
use amplifier_core::text::truncate_chars;
use amplifier_core::{Display, HookRegistry, ToolCall};
use amplifier_host::{ApprovalFanOut, Config, Home, LinkTarget, ServerLink, SessionBuilder, SessionParts, TrustPrompt};
use anyhow::Result;
use serde_json::Value;

use crate::terminal::{HeadlessApprovals, Screen, Spinner, TerminalApprovals, TerminalDisplay, TerminalTrustPrompt};

/// A session at a terminal or in a server, to be started, and what has to live as long as it.
pub struct TerminalSession {
    /// The session.
    pub parts: SessionParts,
    /// What the person sees of it.
    pub observer: TerminalObserver,
    /// The connection to a server that sees the session, if one is configured.
    pub server: Option<ServerLink>,
}

impl TerminalSession {
    /// The same with another display for the messages of hooks.
    pub fn with_display(mut self, display: impl Display) -> Self {
        self.parts.builder = self.parts.builder.display(display);
        self
    }
}

/// Builds a session, and shows it on a screen. Its approval requests go to the terminal and the server, as far as there are any.
///
/// # Errors
/// If a part of the configuration cannot be used.
pub async fn build(
    config: &Config,
    home: &Home,
    hooks: HookRegistry,
    screen: &Screen,
    cancel: &Cancel,
    target: &LinkTarget,
) -> Result<TerminalSession> {
    let dialog = TerminalTrustPrompt { screen: screen.clone(), cancel: cancel.clone() };
    let prompt = screen.can_ask().then(|| Arc::new(dialog) as Arc<dyn TrustPrompt>);
    let mut parts = SessionBuilder::new(config, home)
        .hooks(hooks)
        .notices(screen.notices())
        .trust_prompt(prompt)
        .cancel(cancel)
        .in_server(matches!(target, LinkTarget::Pipe(_)))
        .build()
        .await?;
    let observer = TerminalObserver::new(screen.clone());
    parts.builder = parts.builder.display(TerminalDisplay::new(screen.clone())).observer(observer.clone());
    let server = parts.is_served.then(|| ServerLink::open(parts.policy.link_options(), target, screen.can_ask()));
    let terminal = screen.can_ask().then(|| {
        let cancel = cancel.clone();
        TerminalApprovals::new(screen.clone()).stopping(move || _ = cancel.request())
    });
    let client = server.as_ref().map(|server| server.client.clone());
    let parts = match (client, terminal) {
        (Some(client), Some(terminal)) => parts.approvals(ApprovalFanOut::new(terminal, client)),
        (Some(client), None) => parts.approvals(client),
        (None, Some(terminal)) => parts.approvals(terminal),
        (None, None) => parts.approvals(HeadlessApprovals),
    };
    Ok(TerminalSession { parts, observer, server })
}

/// Shows on a screen what a session does. A handle: clones share the same state.
#[derive(Clone)]
pub struct TerminalObserver {
    screen: Screen,
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<TurnDisplay>>,
}

/// What goes on.
#[derive(Default)]
struct TurnDisplay {
    thinking: Option<Spinner>,
    /// The tools that run, by the id of the call.
    tools: HashMap<String, Spinner>,
    failure: Option<io::Error>,
}

impl TerminalObserver {
    /// Shows it on that screen.
    pub fn new(screen: Screen) -> Self {
        Self { screen, state: Arc::default() }
    }

    /// Ends what is still shown of a turn that has ended, however it ended.
    ///
    /// # Errors
    /// If a part of an answer could not be written.
    pub fn end_turn(&self) -> io::Result<()> {
        let mut state = self.state();
        state.thinking = None;
        state.tools.clear();
        let ended = self.screen.end_text();
        state.failure.take().map_or(ended, Err)
    }

    fn state(&self) -> MutexGuard<'_, TurnDisplay> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionObserver for TerminalObserver {
    fn thinking(&self) {
        let mut state = self.state();
        // The old one ends before the new one begins.
        state.thinking = None;
        state.thinking = Some(self.screen.spinner("thinking"));
    }

    fn text(&self, text: &str) {
        self.state().thinking = None;
        self.screen.text(text);
    }

    fn response_ended(&self, _usage: &TokenUsage) {
        let mut state = self.state();
        state.thinking = None;
        // The agent goes on; `end_turn` tells what is wrong with standard output.
        if let Err(error) = self.screen.end_text() {
            state.failure.get_or_insert(error);
        }
    }

    fn tool_started(&self, call: &ToolCall) {
        self.screen.tool(&call.name, &describe_call(call));
        let working = self.screen.spinner(&format!("running {}", call.name));
        self.state().tools.insert(call.id.clone(), working);
    }

    fn tool_ended(&self, call: &ToolCall, success: bool, output: &str) {
        let has_begun = self.state().tools.remove(&call.id).is_some();
        if has_begun {
            self.screen.tool_done(success, &excerpt(output));
        } else {
            // It was not allowed to run. Why is shown in full: it may say what to do about it.
            self.screen.tool(&call.name, &describe_call(call));
            self.screen.tool_done(success, output);
        }
    }

    fn note(&self, text: &str) {
        self.screen.note(text);
    }
}

/// What a tool call is about, in a few words.
fn describe_call(call: &ToolCall) -> String {
    describe_input(&call.input).unwrap_or_default()
}

/// What the input of a tool is about, in a few words, if it is one that is known.
pub(crate) fn describe_input(input: &Value) -> Option<String> {
    ["command", "file_path", "pattern", "task"].iter().find_map(|field| input.get(field)?.as_str()).map(excerpt)
}

/// The beginning of the first line.
pub(crate) fn excerpt(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    match truncate_chars(first.trim_end_matches('\r'), 100) {
        Cow::Borrowed(first) if !rest.is_empty() => format!("{first}…"),
        first => first.into_owned(),
    }
}
