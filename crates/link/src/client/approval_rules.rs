//! The approval rules of a session.

use std::sync::Arc;

use amplifier_core::{Actor, ApprovalRule, Coordinator};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ClientState, State};
use crate::session_message::SessionMessage;

impl ClientState {
    pub(super) fn change_rules(
        self: &Arc<Self>,
        reference: u64,
        change: impl FnOnce(&Self) -> Result<(), String> + Send + 'static,
    ) {
        let shared = self.clone();
        tokio::task::spawn_blocking(move || {
            let error = change(&shared).err();
            // The list first, so that the requester finds it when the reply arrives.
            shared.send_rules();
            shared.state().send(SessionMessage::RuleChanged { reference, error });
        });
    }

    pub(super) fn add_rule(&self, rule: ApprovalRule) -> Result<(), String> {
        rule.check().map_err(|error| error.to_string())?;
        let change = json!({ "rule": rule.file_key(), "decision": rule.decision, "change": "added", "by": &rule.by });
        self.record(&change)?;
        let session = self.session.borrow().clone();
        self.state().added_rules.push(ApprovalRule { session, created_at: Some(Timestamp::now()), ..rule });
        self.apply_session_rules();
        Ok(())
    }

    pub(super) fn revoke(&self, id: &str, by: &Actor) -> Result<(), String> {
        let (rule, coordinator) = {
            let state = self.state();
            (state.rules().into_iter().find(|rule| rule.id() == id), state.coordinator.clone())
        };
        let rule = rule.ok_or("unknown rule of the session")?;
        self.record(&json!({ "rule": rule.file_key(), "change": "revoked", "by": by }))?;
        if let Some(coordinator) = coordinator {
            coordinator.forget_approval(&rule);
        }
        self.state().added_rules.retain(|rule| rule.id() != id);
        self.apply_session_rules();
        Ok(())
    }

    /// Records a change of rules before it takes effect.
    fn record(&self, change: &Value) -> Result<(), String> {
        let Some(record) = &self.options.record else { return Ok(()) };
        let session = self.session.borrow().clone();
        record(&json!({ "session": session, "approval_rule": change }))
    }

    pub(super) fn apply_session_rules(&self) {
        let state = self.state();
        if let Some(coordinator) = &state.coordinator {
            coordinator.set_session_rules(state.added_rules.iter().cloned().collect());
        }
    }

    pub(super) fn send_rules(&self) {
        let mut state = self.state();
        let rules = state.rules();
        if rules != state.sent_rules {
            state.sent_rules.clone_from(&rules);
            state.send(SessionMessage::Rules { rules });
        }
    }
}

impl State {
    pub(super) fn rules(&self) -> Vec<ApprovalRule> {
        let remembered = self.coordinator.as_ref().map(Coordinator::remembered_approvals).unwrap_or_default();
        let session = self.coordinator.as_ref().and_then(|coordinator| coordinator.session_id().map(str::to_owned));
        let remembered = remembered.into_iter().map(|rule| ApprovalRule { session: session.clone(), ..rule });
        remembered.chain(self.added_rules.iter().cloned()).collect()
    }
}
