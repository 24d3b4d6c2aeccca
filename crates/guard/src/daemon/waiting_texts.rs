//! Texts of hooks that wait for the next answer to an agent.

use std::collections::HashMap;

use crate::answer::GuardAnswer;
use crate::event::{ClientEvent, EventKind};

/// The waiting texts of a session. What was meant for one agent does not reach another.
#[derive(Debug, Default)]
pub(super) struct WaitingTexts {
    /// By sub-agent; `None` is the main agent.
    agents: HashMap<Option<String>, AgentTexts>,
}

#[derive(Debug, Default)]
struct AgentTexts {
    context: Vec<String>,
    messages: Vec<String>,
    /// Context for the answer after the tool.
    deferred: Vec<String>,
}

impl WaitingTexts {
    /// Adds texts for the next answer to the main agent.
    pub(super) fn add(&mut self, context: Vec<String>, messages: Vec<String>) {
        if context.is_empty() && messages.is_empty() {
            return;
        }
        let texts = self.agents.entry(None).or_default();
        texts.context.extend(context);
        texts.messages.extend(messages);
    }

    /// Adds context for the answer after the next tool of an agent.
    pub(super) fn defer(&mut self, agent: Option<&String>, context: &[String]) {
        if !context.is_empty() {
            let texts = self.agents.entry(agent.cloned()).or_default();
            texts.deferred.extend(context.iter().cloned());
        }
    }

    /// Moves the texts for an agent into the answer to its event.
    pub(super) fn take(&mut self, event: &ClientEvent, answer: &mut GuardAnswer) {
        let Some(texts) = self.agents.get_mut(&event.agent) else { return };
        answer.context.append(&mut texts.context);
        answer.messages.append(&mut texts.messages);
        if matches!(event.kind, EventKind::ToolPost { .. }) {
            answer.context.append(&mut texts.deferred);
        }
        if texts.deferred.is_empty() {
            self.agents.remove(&event.agent);
        }
    }

    /// Forgets all texts, and returns the agents whose context is lost.
    pub(super) fn lose(&mut self) -> Vec<Option<String>> {
        let agents = std::mem::take(&mut self.agents).into_iter();
        let lost = agents.filter(|(_, texts)| !texts.context.is_empty() || !texts.deferred.is_empty());
        lost.map(|(agent, _)| agent).collect()
    }
}
