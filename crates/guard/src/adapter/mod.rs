//! Adapters: one file for each client, all of one shape. `parse` turns a payload into our event, `answer` turns a decision into output.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod form;
mod gemini;
mod opencode;

use amplifier_core::Map;
use serde_json::Value;

use crate::answer::{GuardAnswer, Loss, Reply};
use crate::client::Client;
use crate::event::{ClientEvent, Dialect, EventKind};
use crate::patch::PatchError;

/// The reason why a payload cannot be understood. The hook then denies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The payload is not a JSON object.
    #[error("the payload is not a JSON object: {0}")]
    Json(String),
    /// A field is missing or of the wrong type.
    #[error("the payload of {client} has no usable field `{field}`")]
    Field {
        /// The client.
        client: Client,
        /// The field.
        field: &'static str,
    },
    /// A tool input cannot be understood.
    #[error("{0}")]
    Input(String),
    /// A patch cannot be read, so its files are unknown.
    #[error(transparent)]
    Patch(#[from] PatchError),
}

/// Parses the payload of a hook. `told` and `event` are from the command line; the payload overrides both.
///
/// # Errors
/// If the payload cannot be understood: the hook must deny with [`HookOutput::failure`](crate::HookOutput::failure).
pub fn parse(told: Client, event: Option<&str>, payload: &[u8]) -> Result<ClientEvent, PayloadError> {
    let payload: Map = serde_json::from_slice(payload).map_err(|error| PayloadError::Json(error.to_string()))?;
    let parse = match told.recognize(&payload) {
        Client::Claude => claude::parse,
        Client::Codex => codex::parse,
        Client::Gemini => gemini::parse,
        Client::Copilot => copilot::parse,
        Client::Opencode => opencode::parse,
        Client::Cursor => cursor::parse,
    };
    parse(event, &payload)
}

/// Expresses an answer in the words of the event's client.
pub fn answer(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    let reply = answer_with_dialog(event, answer);
    let loss = lost_context(answer, &reply);
    Reply { losses: reply.losses.into_iter().chain(loss).collect(), ..reply }
}

/// The fields of outputs for context.
const CONTEXT_FIELDS: [&str; 3] = ["additionalContext", "additional_context", "context"];

/// Returns the loss of context, found by comparing the output with the answer. Deferred context is compared later.
fn lost_context(answer: &GuardAnswer, reply: &Reply) -> Option<Loss> {
    let context = Value::from(answer.joined_context().filter(|_| reply.deferred.is_empty())?).to_string();
    let is_sent = |field: &str| reply.output.stdout.contains(&format!("\"{field}\":{context}"));
    match CONTEXT_FIELDS.into_iter().any(is_sent) {
        false => Some(Loss::CONTEXT),
        true => answer.has_cut_context().then_some(Loss::CUT_CONTEXT),
    }
}

fn answer_with_dialog(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    if answer.question.is_none() || answer.denial.is_some() {
        return express(event, answer);
    }
    if !has_dialog(event) {
        let denial = GuardAnswer::deny("a user has to decide, and this client has no dialog here");
        return express(event, &denial).lose(Loss::NO_DIALOG, true);
    }
    if answer.change.is_some() {
        let denial = GuardAnswer::deny("a hook changed a call that the client has to ask about");
        return express(event, &denial).lose(Loss::MODIFY, true);
    }
    express(event, answer).lose(Loss::DIALOG, true)
}

/// Returns our event for one of a client; none if it has no counterpart.
pub(crate) fn our_event(client: Client, name: &str) -> Option<&'static str> {
    let events = match client {
        Client::Claude | Client::Codex => form::NESTED_EVENTS,
        Client::Gemini => gemini::FORM.events,
        Client::Copilot => copilot::FORM.events,
        Client::Opencode => opencode::FORM.events,
        Client::Cursor => cursor::FORM.events,
    };
    events.iter().find(|(known, _)| *known == name).and_then(|(_, meaning)| meaning.our_event())
}

/// Returns `true` if the client has a dialog for the event that a hook can open.
fn has_dialog(event: &ClientEvent) -> bool {
    // In this mode, the client decides itself, and is reported to ignore the question.
    let is_automatic = event.mode.as_deref() == Some("auto");
    !is_automatic
        && event.client.has_dialog()
        && event.dialect == Dialect::Own
        && matches!(event.kind, EventKind::ToolPre(_))
}

fn express(event: &ClientEvent, answer: &GuardAnswer) -> Reply {
    let express = match event.client {
        Client::Claude => claude::answer,
        Client::Codex => codex::answer,
        Client::Gemini => gemini::answer,
        Client::Copilot => copilot::answer,
        Client::Opencode => opencode::answer,
        Client::Cursor => cursor::answer,
    };
    express(event, answer)
}
