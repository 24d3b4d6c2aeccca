//! Terminal sessions, built from the configuration.

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

/// A session that is ready to start, and the parts that must outlive it.
pub struct TerminalSession {
    /// The parts of the session.
    pub parts: SessionParts,
    /// The observer that shows the session on the screen.
    pub observer: TerminalObserver,
    /// The connection to a server, if configured.
    pub server: Option<ServerLink>,
}

impl TerminalSession {
    /// Replaces the display for messages.
    pub fn with_display(mut self, display: impl Display) -> Self {
        self.parts.builder = self.parts.builder.display(display);
        self
    }
}

/// Builds a session that is shown on `screen`. Approval requests go to the terminal and to the server, if available.
///
/// # Errors
/// If the configuration is invalid.
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
    if let Some(client) = &client {
        client.set_mode(parts.policy.mode().current().as_str());
    }
    let parts = match (client, terminal) {
        (Some(client), Some(terminal)) => parts.approvals(ApprovalFanOut::new(terminal, client)),
        (Some(client), None) => parts.approvals(client),
        (None, Some(terminal)) => parts.approvals(terminal),
        (None, None) => parts.approvals(HeadlessApprovals),
    };
    Ok(TerminalSession { parts, observer, server })
}

/// Shows the activity of a session on a screen. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct TerminalObserver {
    screen: Screen,
    // A std lock: nothing awaits while it is held.
    state: Arc<Mutex<TurnDisplay>>,
}

#[derive(Default)]
struct TurnDisplay {
    thinking: Option<Spinner>,
    /// `true` if a part of the response has arrived.
    has_text: bool,
    /// Spinners of running tools, by call id.
    tools: HashMap<String, Spinner>,
    /// The call whose line is the last one. The result of any other call names its tool.
    last_call: Option<String>,
    failure: Option<io::Error>,
}

impl TerminalObserver {
    /// Creates an observer that draws on `screen`.
    pub fn new(screen: Screen) -> Self {
        Self { screen, state: Arc::default() }
    }

    /// Ends all output of a turn.
    ///
    /// # Errors
    /// If a part of the model's answer could not be written.
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
        // Dropped first, so that two spinners never overlap.
        state.thinking = None;
        state.has_text = false;
        state.thinking = Some(self.screen.spinner("thinking"));
    }

    fn text(&self, text: &str) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.has_text, true) {
            state.thinking = None;
            // Rows appear when they are complete. Until then, the progress line shows that more is coming.
            state.thinking = self.screen.shows_rows().then(|| self.screen.spinner("writing"));
        }
        drop(state);
        self.screen.text(text);
    }

    fn response_ended(&self, _usage: &TokenUsage) {
        let mut state = self.state();
        state.thinking = None;
        state.has_text = false;
        // The agent continues; `end_turn` returns the error.
        if let Err(error) = self.screen.end_text() {
            state.failure.get_or_insert(error);
        }
    }

    fn tool_started(&self, call: &ToolCall) {
        self.screen.tool(&call.name, &describe_call(call));
        let working = self.screen.spinner(&format!("running {}", call.name));
        let mut state = self.state();
        state.tools.insert(call.id.clone(), working);
        state.last_call = Some(call.id.clone());
    }

    fn tool_ended(&self, call: &ToolCall, success: bool, output: &str) {
        let mut state = self.state();
        let has_begun = state.tools.remove(&call.id).is_some();
        let is_below = state.last_call.take().as_ref() == Some(&call.id);
        drop(state);
        if has_begun && is_below {
            self.screen.tool_done(success, &excerpt(output));
        } else if has_begun {
            self.screen.tool_done(success, &format!("{}: {}", call.name, excerpt(output)));
        } else {
            // The call was denied. The reason is shown in full, because it may say what to do.
            self.screen.tool(&call.name, &describe_call(call));
            self.screen.tool_done(success, output);
        }
    }

    fn note(&self, text: &str) {
        self.screen.note(text);
    }
}

fn describe_call(call: &ToolCall) -> String {
    describe_input(&call.input).unwrap_or_default()
}

/// Returns a short description of a tool's input, if the tool is known.
pub(crate) fn describe_input(input: &Value) -> Option<String> {
    ["command", "file_path", "pattern", "task"].iter().find_map(|field| input.get(field)?.as_str()).map(excerpt)
}

/// Returns the beginning of the first line.
pub(crate) fn excerpt(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    match truncate_chars(first.trim_end_matches('\r'), 100) {
        Cow::Borrowed(first) if !rest.is_empty() => format!("{first}…"),
        first => first.into_owned(),
    }
}
