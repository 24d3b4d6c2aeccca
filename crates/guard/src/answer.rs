//! The answer to a client: a decision in our words, and the output of the hook program that expresses it.

use amplifier_core::Map;
use amplifier_core::text::{is_readable, truncate_bytes};
use serde_json::{Value, json};

/// The longest reason and message for a client, in bytes.
const MAX_REASON_BYTES: usize = 2 << 10;
/// The longest context for a client, in bytes. Clients put more than that into files.
const MAX_CONTEXT_BYTES: usize = 8 << 10;

/// The decision on an event, in our words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuardAnswer {
    /// The reason, if the event is denied.
    pub denial: Option<String>,
    /// The question for the client's own dialog, if the user has to decide there.
    pub question: Option<String>,
    /// The change, if hooks changed the event.
    pub change: Option<Change>,
    /// Texts for the conversation.
    pub context: Vec<String>,
    /// Messages for the user.
    pub messages: Vec<String>,
}

/// A change that hooks made.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another input of the tool, in the client's words.
    Input(Value),
    /// Another result of the tool, in the client's form.
    Result(Value),
    /// Another prompt.
    Prompt(String),
}

/// Output of the hook program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOutput {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code: 0, or 2 for a denial.
    pub code: u8,
}

/// An answer as a client can express it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The output.
    pub output: HookOutput,
    /// The parts of the answer that the client cannot express.
    pub losses: Vec<Loss>,
    /// Context that the client accepts only after the tool has run.
    pub deferred: Vec<String>,
}

/// A part of an answer that a client cannot express. The reply is never weaker than the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The part: `deny`, `ask_user`, `modify`, `inject_context` or `user_message`.
    pub part: &'static str,
    /// The effect instead.
    pub instead: &'static str,
}

impl Loss {
    /// A question in the dialog of the client. Its answer is not recorded.
    pub(crate) const DIALOG: Self = Self {
        part: "ask_user",
        instead: "asked in the agent's dialog, without options, time limit, digest and record",
    };
    /// A question that the client cannot ask.
    pub(crate) const NO_DIALOG: Self = Self { part: "ask_user", instead: "denied" };
    /// A modification that becomes a denial.
    pub(crate) const MODIFY: Self = Self { part: "modify", instead: "denied" };
    /// A result that cannot be withheld.
    pub(crate) const RESULT: Self = Self { part: "deny", instead: "the result stays, the reason is added" };
    /// A denial that takes effect at the next prompt or tool.
    pub(crate) const LATER: Self = Self { part: "deny", instead: "denied at the first prompt or tool" };
    /// Context that is dropped.
    pub(crate) const CONTEXT: Self = Self { part: "inject_context", instead: "dropped" };
    /// Context of which only the beginning is added.
    pub(crate) const CUT_CONTEXT: Self = Self { part: "inject_context", instead: "cut after 8 KB" };
    /// A message that is dropped.
    pub(crate) const MESSAGE: Self = Self { part: "user_message", instead: "dropped" };

    /// Returns `true` if the event is denied because of the loss.
    pub fn denies(&self) -> bool {
        [Self::MODIFY, Self::NO_DIALOG].contains(self)
    }
}

impl GuardAnswer {
    /// A denial.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { denial: Some(reason.into()), ..Self::default() }
    }

    /// Returns the reason of a denial in a form for clients.
    pub(crate) fn reason(&self) -> Option<String> {
        self.denial.as_deref().map(reason)
    }

    /// Returns the question in a form for clients.
    pub(crate) fn dialog_text(&self) -> Option<String> {
        self.question.as_deref().map(|question| clean(question, MAX_REASON_BYTES))
    }

    /// Returns the joined context; none if there is none.
    pub(crate) fn joined_context(&self) -> Option<String> {
        joined(&self.context, MAX_CONTEXT_BYTES)
    }

    /// Returns `true` if the joined context is cut.
    pub(crate) fn has_cut_context(&self) -> bool {
        joined(&self.context, usize::MAX).is_some_and(|context| context.len() > MAX_CONTEXT_BYTES)
    }

    /// Returns the joined messages; none if there are none.
    pub(crate) fn joined_messages(&self) -> Option<String> {
        joined(&self.messages, MAX_REASON_BYTES)
    }

    /// Returns the change of a tool's input.
    pub(crate) fn input(&self) -> Option<&Value> {
        match &self.change {
            Some(Change::Input(input)) => Some(input),
            _ => None,
        }
    }

    /// Returns the change of a tool's result.
    pub(crate) fn result(&self) -> Option<&Value> {
        match &self.change {
            Some(Change::Result(result)) => Some(result),
            _ => None,
        }
    }
}

impl HookOutput {
    /// The denial that every client understands in every event with a gate: for failures of the guard itself.
    pub fn failure(reason_text: &str) -> Self {
        let reason = reason(reason_text);
        Self::denial(&common_denial(&reason), &reason)
    }

    /// JSON on standard output, the reason on standard error, exit code 2: each of them denies.
    pub(crate) fn denial(json: &Value, reason: &str) -> Self {
        Self { stdout: json.to_string(), stderr: format!("{reason}\n"), code: 2 }
    }

    /// JSON with exit code 0; nothing for an empty object.
    pub(crate) fn success(fields: Map) -> Self {
        let stdout = if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() };
        Self { stdout, ..Self::default() }
    }
}

impl Reply {
    pub(crate) fn new(output: HookOutput) -> Self {
        Self { output, ..Self::default() }
    }

    pub(crate) fn lose(mut self, loss: Loss, is_lost: bool) -> Self {
        self.losses.extend(is_lost.then_some(loss));
        self
    }
}

/// A denial in the forms of all clients at once.
fn common_denial(reason: &str) -> Value {
    json!({
        "decision": "block",
        "reason": reason,
        "permission": "deny",
        "user_message": reason,
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        },
    })
}

/// Returns a text for a model, never empty: one client runs the tool if the reason of a denial is empty.
fn reason(text: &str) -> String {
    let text = clean(text, MAX_REASON_BYTES);
    if text.trim().is_empty() { "denied by the guard".to_owned() } else { text }
}

fn joined(texts: &[String], limit: usize) -> Option<String> {
    (!texts.is_empty()).then(|| clean(&texts.join("\n\n"), limit)).filter(|text| !text.trim().is_empty())
}

fn clean(text: &str, limit: usize) -> String {
    let readable: String = text.chars().filter(|c| is_readable(*c)).collect();
    truncate_bytes(&readable, limit).into_owned()
}
