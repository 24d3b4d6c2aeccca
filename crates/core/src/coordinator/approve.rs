//! Approvals, decided without I/O: who has to be asked, and what an answer means.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::event::EventName;
use crate::ports::approval::{Answer, Answerer, ApprovalError, Settled};
use crate::result::{Approval, DefaultDecision};
use crate::wildcard;

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
    pub(super) fn on_answer(
        approval: &Approval,
        answer: Result<Answer, ApprovalError>,
        forbid_default_allow: bool,
    ) -> Self {
        let prompt = &approval.prompt;
        match answer {
            Ok(Answer { label, by }) => {
                let ruling = match approval.offered().iter().find(|option| option.label == label) {
                    Some(option) => {
                        Self { lasting: option.effect.is_lasting(), ..Self::by_person(option.effect.allows(), prompt) }
                    }
                    None => Self::new(false, "not_offered", format!("Answer `{label}` was not offered: {prompt}")),
                };
                Self { by, ..ruling }
            }
            Err(ApprovalError::TimedOut) => {
                if approval.default == DefaultDecision::Allow && !forbid_default_allow {
                    Self::new(true, "timeout", format!("Approval timed out, allowed by default: {prompt}"))
                } else {
                    Self::new(false, "timeout", format!("Approval timed out, denied by default: {prompt}"))
                }
            }
            Err(error) => Self::failed(prompt, &error),
        }
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
    pub(super) fn remember(&mut self, question: Question, ruling: &Ruling) {
        if ruling.lasting {
            self.lasting.insert(question, Lasting { granted: ruling.granted, by: ruling.by.clone() });
        }
    }

    /// The answer that was given before and lasts.
    pub(super) fn recall(&self, question: &Question) -> Option<Ruling> {
        let Lasting { granted, by } = self.lasting.get(question)?;
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

/// The person's own standing answers, from a file that the person owns.
///
/// Each rule is `"<hook>:<pattern>": "allow"` or `"deny"`; the pattern is compared with the whole prompt, and `*` stands
/// for any text. Where several match, deny wins.
///
/// ```
/// let rules = amplifier_core::ApprovalRules::from_json(
///     r#"{ "production-guard:Allow write to staging/*": "allow", "cost-control:*": "deny" }"#,
/// )?;
/// # Ok::<(), amplifier_core::InvalidRules>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    // A list: a rule that stands twice in the file, once with each answer, counts as both, so that deny wins.
    rules: Vec<(String, DefaultDecision)>,
}

impl<'de> Deserialize<'de> for ApprovalRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rules;

        impl<'de> Visitor<'de> for Rules {
            type Value = ApprovalRules;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of rules")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ApprovalRules, A::Error> {
                let mut rules = Vec::new();
                while let Some((rule, decision)) = map.next_entry::<String, _>()? {
                    // A `*` in the place of the hook would look like "every hook" and match none.
                    if rule.split_once(':').is_none_or(|(hook, _)| hook.is_empty() || hook.contains('*')) {
                        return Err(A::Error::custom(format!("the rule `{rule}` names no hook")));
                    }
                    rules.push((rule, decision));
                }
                Ok(ApprovalRules { rules })
            }
        }

        deserializer.deserialize_map(Rules)
    }
}

/// Rules that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRules {
    /// The file cannot be read.
    #[error("the approval rules `{}` cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no set of rules.
    #[error("the approval rules are not of the form {{\"<hook>:<pattern>\": \"allow\" or \"deny\"}}: {0}")]
    Form(#[from] serde_json::Error),
}

impl ApprovalRules {
    /// Reads rules from JSON.
    ///
    /// # Errors
    /// If the text is no set of rules; nothing of it is used then.
    pub fn from_json(text: &str) -> Result<Self, InvalidRules> {
        Ok(serde_json::from_str(text)?)
    }

    /// Reads rules from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is no set of rules.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, InvalidRules> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path);
        Self::from_json(&text.map_err(|source| InvalidRules::Io { path: path.to_owned(), source })?)
    }

    /// These and others. Where both answer a question, deny wins.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.rules.extend(others.rules);
        self
    }

    /// Each rule, as `<hook>:<pattern>`, with what it answers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, DefaultDecision)> {
        self.rules.iter().map(|(rule, decision)| (rule.as_str(), *decision))
    }

    pub(super) fn answer(&self, question: &Question) -> Option<Ruling> {
        let subject = format!("{}:{}", question.hook, question.prompt);
        // The hook is compared letter by letter: a `*` must not let one hook's rule speak for another.
        let hook_part = question.hook.len() + 1;
        let applies = |rule: &str| {
            rule.get(..hook_part) == subject.get(..hook_part) && wildcard::matches(&rule[hook_part..], &question.prompt)
        };
        let matching = self.rules.iter().filter(|(rule, _)| applies(rule)).map(|(_, decision)| *decision);
        let decisions: Vec<_> = matching.collect();
        let prompt = &question.prompt;
        if decisions.contains(&DefaultDecision::Deny) {
            Some(Ruling::new(false, "rule", format!("Denied by rule: {prompt}")))
        } else if decisions.is_empty() {
            None
        } else {
            Some(Ruling::new(true, "rule", format!("Allowed by rule: {prompt}")))
        }
    }
}
