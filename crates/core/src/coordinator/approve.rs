//! Approvals, decided without I/O: who has to be asked, and what an answer means.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::EventName;
use crate::ports::approval::{Answer, Answerer, ApprovalError, ApprovalRequest, Settled};
use crate::ports::rules::{ApprovalRules, ToolDefinition};
use crate::result::DefaultDecision;

/// What became of one approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ruling {
    pub(super) granted: bool,
    /// What it rests on, in a word.
    pub(super) basis: &'static str,
    pub(super) reason: String,
    /// Whether the same question is answered the same way for the rest of the session.
    pub(super) lasting: bool,
    /// Who answered, where that is known.
    pub(super) by: Option<Answerer>,
}

impl Ruling {
    fn new(granted: bool, basis: &'static str, reason: String) -> Self {
        Self { granted, basis, reason, lasting: false, by: None }
    }

    /// What the answer means, or its absence. Everything that is not a clear yes is a no.
    pub(super) fn on_answer(request: &ApprovalRequest, answer: Result<Answer, ApprovalError>) -> Self {
        let prompt = &request.prompt;
        match answer {
            Ok(Answer { label, by }) => {
                let ruling = match request.options.iter().find(|option| option.label == label) {
                    Some(option) => {
                        Self { lasting: option.effect.is_lasting(), ..Self::by_person(option.effect.allows(), prompt) }
                    }
                    None => Self::new(false, "not_offered", format!("Answer `{label}` was not offered: {prompt}")),
                };
                Self { by, ..ruling }
            }
            Err(ApprovalError::TimedOut) => {
                if request.default == DefaultDecision::Allow {
                    Self::new(true, "timeout", format!("Approval timed out, allowed by default: {prompt}"))
                } else {
                    Self::new(false, "timeout", format!("Approval timed out, denied by default: {prompt}"))
                }
            }
            Err(error) => Self::failed(prompt, &error),
        }
    }

    /// What the rules say, if they say something.
    pub(super) fn by_rules(rules: &ApprovalRules, Question { hook, prompt, .. }: &Question) -> Option<Self> {
        Some(match rules.answer(hook, prompt)? {
            DefaultDecision::Allow => Self::new(true, "rule", format!("Allowed by rule: {prompt}")),
            DefaultDecision::Deny => Self::new(false, "rule", format!("Denied by rule: {prompt}")),
        })
    }

    fn by_person(granted: bool, prompt: &str) -> Self {
        let said = if granted { "User allowed" } else { "User denied" };
        Self::new(granted, "answer", format!("{said}: {prompt}"))
    }

    pub(super) fn failed(prompt: &str, error: &dyn std::fmt::Display) -> Self {
        Self::new(false, "failed", format!("Approval failed ({error}): {prompt}"))
    }

    pub(super) fn no_system(prompt: &str) -> Self {
        Self::new(false, "no_system", format!("No approval system: {prompt}"))
    }

    pub(super) fn cancelled(prompt: &str) -> Self {
        Self::new(false, "cancelled", format!("Cancelled: {prompt}"))
    }
}

impl From<&Ruling> for Settled {
    fn from(Ruling { granted, basis, reason, by, .. }: &Ruling) -> Self {
        Self { granted: *granted, basis, reason: reason.clone(), by: by.clone() }
    }
}

/// The lasting answers of one session. Kept by the kernel: hooks ask, they cannot grant.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    lasting: HashMap<Question, Lasting>,
}

#[derive(Debug)]
struct Lasting {
    granted: bool,
    /// The definition of the tool that it was given for; an allow counts for no other.
    definition: Option<ToolDefinition>,
    by: Option<Answerer>,
}

/// An answer that lasts for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingAnswer {
    /// The hook that asked.
    pub hook: Arc<str>,
    /// The event at which it asked.
    pub event: EventName,
    /// The question.
    pub prompt: String,
    /// Whether it was a yes.
    pub granted: bool,
    /// Who gave it, where that is known.
    pub by: Option<Answerer>,
}

/// What a lasting answer is remembered by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) hook: Arc<str>,
    pub(super) event: EventName,
    pub(super) prompt: String,
}

impl Ledger {
    pub(super) fn remember(&mut self, question: Question, definition: Option<&ToolDefinition>, ruling: &Ruling) {
        if ruling.lasting {
            let Ruling { granted, by, .. } = ruling.clone();
            self.lasting.insert(question, Lasting { granted, definition: definition.cloned(), by });
        }
    }

    /// The answer that was given before and lasts.
    pub(super) fn recall(&self, question: &Question, definition: Option<&ToolDefinition>) -> Option<Ruling> {
        let known = self.lasting.get(question);
        let Lasting { granted, by, .. } =
            known.filter(|known| !known.granted || known.definition.as_ref() == definition)?;
        Some(Ruling { basis: "remembered", by: by.clone(), ..Ruling::by_person(*granted, &question.prompt) })
    }

    /// All of them, in the order of their questions.
    pub(super) fn all(&self) -> Vec<StandingAnswer> {
        let all = self.lasting.iter().map(|(question, lasting)| {
            let Question { hook, event, prompt } = question.clone();
            StandingAnswer { hook, event, prompt, granted: lasting.granted, by: lasting.by.clone() }
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by(|a, b| (&a.hook, a.event.as_str(), &a.prompt).cmp(&(&b.hook, b.event.as_str(), &b.prompt)));
        all
    }

    /// Takes one back. False if there is none.
    pub(super) fn forget(&mut self, question: &Question) -> bool {
        self.lasting.remove(question).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.lasting.clear();
    }
}
