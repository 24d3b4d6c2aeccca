//! Standing answers of a session: its own, and those that are kept for its project.

use std::sync::Arc;

use amplifier_core::{Answerer, ApprovalRequest, ApprovalRules, Coordinator, InvalidRules, StandingAnswer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Shared, State};
use crate::hub::{KeptRule, decision, explain};
use crate::link::protocol::ToServer;
use crate::wire::{Rule, Scope};

/// A standing answer for the rest of the session that was not given to a question.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) hook: String,
    pub(super) pattern: String,
    pub(super) allows: bool,
    pub(super) by: Answerer,
}

impl Shared {
    /// Keeps an answer for the project. What keeps it from being kept is given back: the answer counts all the same, for once.
    pub(super) async fn keep_for_project(
        &self,
        request: &ApprovalRequest,
        option: &str,
        by: Answerer,
    ) -> Option<String> {
        let Some(book) = self.options.book.clone() else {
            return Some("it counts once, because this session keeps no rules".to_owned());
        };
        let allows = request.options.iter().any(|offered| offered.label == option && offered.effect.allows());
        let (hook, pattern) = (request.hook.to_string(), request.prompt.clone());
        // A `*` in the question would stand for any text in the rule, and a colon in the name would end it.
        if pattern.contains('*') || hook.contains([':', '*']) {
            return Some("it counts once, because a rule would stand for more than this question".to_owned());
        }
        let rule = KeptRule { project: Some(self.workspace.clone()), hook, pattern, allows };
        let kept = tokio::task::spawn_blocking(move || book.add(&rule, &by)).await;
        let kept = kept.unwrap_or_else(|error| Err(error.to_string()));
        kept.err().map(|error| format!("it counts once, because the rule cannot be kept: {error}"))
    }

    /// Changes a standing answer of the session, and says whether it is changed.
    pub(super) fn change_rules(
        self: &Arc<Self>,
        reference: u64,
        change: impl FnOnce(&Self) -> Result<(), String> + Send + 'static,
    ) {
        let shared = self.clone();
        tokio::task::spawn_blocking(move || {
            let error = change(&shared).err();
            // The list first: whoever waits for the change finds it there.
            shared.tell_rules();
            shared.state().say(ToServer::Ruled { reference, error });
        });
    }

    pub(super) fn give(&self, given: Given) -> Result<(), String> {
        given.rule().map_err(|error| error.to_string())?;
        let Given { hook, pattern, allows, by } = &given;
        self.record(
            &json!({ "rule": format!("{hook}:{pattern}"), "decision": decision(*allows), "change": "added", "by": by }),
        )?;
        self.state().given.push(given);
        self.put_in_force();
        Ok(())
    }

    pub(super) fn revoke(&self, id: &str, by: &Answerer) -> Result<(), String> {
        let (standing, given, coordinator) = {
            let state = self.state();
            let standing = state.standing().into_iter().find(|answer| standing_id(answer) == id);
            let given = state.given.iter().position(|given| given.id() == id);
            (standing, given, state.coordinator.clone())
        };
        let rule = match (&standing, given) {
            (Some(answer), _) => format!("{}:{}", answer.hook, answer.prompt),
            (None, Some(place)) => {
                let state = self.state();
                state.given.get(place).map(|given| format!("{}:{}", given.hook, given.pattern)).unwrap_or_default()
            }
            (None, None) => return Err("the session has no such rule".to_owned()),
        };
        self.record(&json!({ "rule": rule, "change": "revoked", "by": by }))?;
        if let (Some(answer), Some(coordinator)) = (&standing, coordinator) {
            coordinator.forget_answer(answer);
        }
        self.state().given.retain(|given| given.id() != id);
        self.put_in_force();
        Ok(())
    }

    /// Records a change of the session's rules before it counts.
    fn record(&self, change: &Value) -> Result<(), String> {
        let Some(book) = &self.options.book else { return Ok(()) };
        let session = self.session.borrow().clone();
        book.record(&json!({ "session": session, "approval_rule": change }))
    }

    /// Puts the rules in force that were given to the session.
    pub(super) fn put_in_force(&self) {
        let state = self.state();
        // Each was one when it was given.
        let given = state.given.iter().filter_map(|given| given.rule().ok());
        if let Some(coordinator) = &state.coordinator {
            coordinator.set_session_rules(given.fold(ApprovalRules::default(), ApprovalRules::and));
        }
    }

    pub(super) fn tell_rules(&self) {
        let mut state = self.state();
        let rules = state.rules();
        if rules != state.told_rules {
            state.told_rules.clone_from(&rules);
            state.say(ToServer::Rules { rules });
        }
    }
}

impl State {
    fn standing(&self) -> Vec<StandingAnswer> {
        self.coordinator.as_ref().map(Coordinator::standing_answers).unwrap_or_default()
    }

    /// The standing answers of the session. The server says whose they are.
    pub(super) fn rules(&self) -> Vec<Rule> {
        const HERE: &str = "until this session ends";
        let rule = |id, hook: &str, pattern: &str, allows, by, explanation| Rule {
            id,
            scope: Scope::Session,
            session: None,
            project: None,
            hook: hook.to_owned(),
            pattern: pattern.to_owned(),
            decision: decision(allows).to_owned(),
            by,
            explanation,
        };
        let standing = self.standing().into_iter().map(|answer| {
            let StandingAnswer { hook, event, prompt, granted, by } = &answer;
            let word = if *granted { "allowed" } else { "denied" };
            let explanation =
                format!("When hook `{hook}` asks \"{prompt}\" at `{event}`, it is {word} without asking, {HERE}.");
            rule(standing_id(&answer), hook, prompt, *granted, by.clone(), explanation)
        });
        let given = self.given.iter().map(|given| {
            let Given { hook, pattern, allows, by } = given;
            rule(given.id(), hook, pattern, *allows, Some(by.clone()), explain(hook, pattern, *allows, HERE))
        });
        standing.chain(given).collect()
    }
}

impl Given {
    fn id(&self) -> String {
        format!("rule-{}", short([&self.hook, &self.pattern, decision(self.allows)]))
    }

    fn rule(&self) -> Result<ApprovalRules, InvalidRules> {
        let rule = json!({ format!("{}:{}", self.hook, self.pattern): decision(self.allows) });
        ApprovalRules::from_json(&rule.to_string())
    }
}

fn standing_id(answer: &StandingAnswer) -> String {
    format!("answer-{}", short([&answer.hook, answer.event.as_str(), &answer.prompt]))
}

fn short(parts: [&str; 3]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
