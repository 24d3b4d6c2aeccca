//! The state of a session, as its records tell it.

use amplifier_core::text::truncate_chars;
use jiff::Timestamp;
use serde::Deserialize;

use super::cost::SessionCost;
use super::views::SessionFacts;
use crate::api_types::SessionClient;

/// Limits of a prompt and of the model's last text, in characters.
const PROMPT: usize = 200;
const LAST_MESSAGE: usize = 400;

/// The reason of an end that is a failure.
const FAILED: &str = "error";

/// The state of a session, after the records read so far.
#[derive(Default)]
pub(super) struct SessionSummary {
    pub(super) name: Option<String>,
    pub(super) workspace: Option<String>,
    pub(super) parent: Option<String>,
    /// Direct parent session of a sub-agent.
    pub(super) delegated_by: Option<String>,
    pub(super) started_at: String,
    pub(super) updated_at: String,
    pub(super) last_seq: u64,
    pub(super) turns: u64,
    pub(super) tool_calls: u64,
    pub(super) denials: u64,
    pub(super) errors: u64,
    pub(super) tokens: u64,
    pub(super) prompt: Option<String>,
    pub(super) cost: SessionCost,
    pub(super) last_message: Option<String>,
    pub(super) client: Option<SessionClient>,
    pub(super) model: Option<String>,
    pub(super) is_served: bool,
    /// `true` for a test of the guard, which is no session of an agent.
    pub(super) is_canary: bool,
    pub(super) is_running: bool,
    pub(super) ended: Option<String>,
    /// `true` if sealed, late answers aside.
    pub(super) is_sealed: bool,
    /// `true` if there is a late answer after the seal.
    pub(super) is_reopened: bool,
}

#[derive(Deserialize)]
struct MountPlan {
    workspace: Option<String>,
    agent_name: Option<String>,
    parent_session_id: Option<String>,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    canary: bool,
    client: Option<SessionClient>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct TokenUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

/// The fields of event data that describe a session.
#[derive(Deserialize)]
pub(super) struct EventFields {
    mount_plan: Option<MountPlan>,
    prompt: Option<String>,
    reason: Option<String>,
    content: Option<String>,
    model: Option<String>,
    usage: Option<TokenUsage>,
    parent_session_id: Option<String>,
    name: Option<String>,
}

/// Returns `true` if the event's data describes its session, so that it is read also from a body file.
pub(super) fn describes_session(event: &str) -> bool {
    matches!(
        event,
        "session:start" | "session:resume" | "session:fork" | "session:end" | "prompt:submit" | "provider:response"
    )
}

impl SessionSummary {
    /// Applies an event; data may be missing.
    pub(super) fn apply_event(&mut self, event: &str, data: Option<EventFields>, is_denied: bool) {
        match event {
            "prompt:submit" => self.is_running = !is_denied,
            "execution:start" => self.is_running = true,
            "execution:complete" | "execution:end" | "prompt:complete" | "orchestrator:complete" | "session:end" => {
                self.is_running = false;
            }
            "session:start" | "session:resume" => self.ended = None,
            _ => {}
        }
        let Some(data) = data else { return };
        match event {
            "session:start" => {
                let Some(plan) = data.mount_plan else { return };
                self.workspace = plan.workspace.or(self.workspace.take());
                self.client = plan.client.or(self.client.take());
                self.model = plan.model.or(self.model.take());
                self.is_served = plan.served;
                self.is_canary = plan.canary;
                self.name = plan.agent_name.or(data.name).or(self.name.take());
                self.delegated_by.clone_from(&plan.parent_session_id);
                self.parent = plan.parent_session_id.or(self.parent.take());
            }
            "session:fork" => self.parent = data.parent_session_id.or(self.parent.take()),
            "prompt:submit" => self.prompt = data.prompt.map(|prompt| truncate_chars(&prompt, PROMPT).into_owned()),
            "provider:response" => {
                let said = data.content.filter(|text| !text.trim().is_empty());
                self.last_message = said
                    .map(|text| truncate_chars(text.trim(), LAST_MESSAGE).into_owned())
                    .or(self.last_message.take());
                self.model = data.model.or(self.model.take());
                let used = data.usage.map_or(0, |usage| usage.input_tokens.saturating_add(usage.output_tokens));
                self.tokens = self.tokens.saturating_add(used);
                if used > 0 {
                    self.cost.count_call();
                }
            }
            "session:end" => self.ended = data.reason,
            _ => {}
        }
    }

    /// Returns `true` if the session has ended after an error.
    pub(super) fn is_failed(&self) -> bool {
        self.ended.as_deref() == Some(FAILED)
    }

    pub(super) fn to_facts(&self, id: &str) -> SessionFacts {
        let time = |text: &str| text.parse::<Timestamp>().unwrap_or(Timestamp::UNIX_EPOCH);
        SessionFacts {
            id: id.to_owned(),
            name: self.name.clone(),
            workspace: self.workspace.clone(),
            parent: self.parent.clone(),
            started_at: time(&self.started_at),
            updated_at: time(&self.updated_at),
            turns: self.turns,
            tool_calls: self.tool_calls,
            denials: self.denials,
            errors: self.errors,
            tokens: self.tokens,
            prompt: self.prompt.clone(),
            cost: self.cost.cost(),
            last_message: self.last_message.clone(),
            client: self.client.clone(),
            model: self.model.clone(),
            within: None,
            is_served: self.is_served,
            is_running: self.is_running,
            ended: self.ended.clone(),
            is_failed: self.is_failed(),
            last_seq: self.last_seq,
        }
    }
}
