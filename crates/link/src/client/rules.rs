//! Standing answers of a session: its own, and those that are kept for its project.

use std::sync::Arc;

use amplifier_core::{Actor, ApprovalRequest, ApprovalRule, Coordinator, DefaultDecision, RuleScope};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Shared, State};
use crate::message::ToServer;

impl Shared {
    /// Keeps an answer for the project. What keeps it from being kept is given back: the answer counts all the same, for once.
    pub(super) async fn keep_for_project(&self, request: &ApprovalRequest, option: &str, by: Actor) -> Option<String> {
        let Some(book) = self.options.book.clone() else {
            return Some("it counts once, because this session keeps no rules".to_owned());
        };
        let allows = request.options.iter().any(|offered| offered.label == option && offered.effect.allows());
        let (hook, pattern) = (request.hook.to_string(), request.prompt.clone());
        // A `*` in the question would stand for any text in the rule, and a colon in the name would end it.
        if pattern.contains('*') || hook.contains([':', '*']) {
            return Some("it counts once, because a rule would stand for more than this question".to_owned());
        }
        let decision = if allows { DefaultDecision::Allow } else { DefaultDecision::Deny };
        let (scope, project) = (RuleScope::Project, Some(self.workspace.clone()));
        let rule = ApprovalRule { scope, project, by: Some(by), ..ApprovalRule::new(hook, pattern, decision) };
        let kept = tokio::task::spawn_blocking(move || book.add(&rule)).await;
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

    /// Adds a rule for the rest of the session.
    pub(super) fn add_rule(&self, rule: ApprovalRule) -> Result<(), String> {
        rule.check().map_err(|error| error.to_string())?;
        let change = json!({ "rule": rule.written(), "decision": rule.decision, "change": "added", "by": &rule.by });
        self.record(&change)?;
        let session = self.session.borrow().clone();
        self.state().given.push(ApprovalRule { session, created_at: Some(Timestamp::now()), ..rule });
        self.put_in_force();
        Ok(())
    }

    pub(super) fn revoke(&self, id: &str, by: &Actor) -> Result<(), String> {
        let (rule, coordinator) = {
            let state = self.state();
            (state.rules().into_iter().find(|rule| rule.id() == id), state.coordinator.clone())
        };
        let rule = rule.ok_or("the session has no such rule")?;
        self.record(&json!({ "rule": rule.written(), "change": "revoked", "by": by }))?;
        if let Some(coordinator) = coordinator {
            coordinator.forget_approval(&rule);
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
        if let Some(coordinator) = &state.coordinator {
            coordinator.set_session_rules(state.given.iter().cloned().collect());
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
    /// Returns the rules of the session: the answers that last, and those that were added.
    pub(super) fn rules(&self) -> Vec<ApprovalRule> {
        let remembered = self.coordinator.as_ref().map(Coordinator::remembered_approvals).unwrap_or_default();
        let session = self.coordinator.as_ref().and_then(|coordinator| coordinator.session_id().map(str::to_owned));
        let remembered = remembered.into_iter().map(|rule| ApprovalRule { session: session.clone(), ..rule });
        remembered.chain(self.given.iter().cloned()).collect()
    }
}
