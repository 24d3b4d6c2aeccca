//! Remembered approval answers.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::approval::{ApprovalDecision, ApprovalKey, ApprovalRule, ApprovalRules, DecisionBasis, RuleScope};
use crate::ports::approval_rules::ToolDefinition;
use crate::result::DefaultDecision;

/// The answers that one session remembers. The kernel owns them: hooks can request approvals, not grant them.
#[derive(Debug, Default)]
pub(super) struct RememberedApprovals {
    rules: HashMap<ApprovalKey, RememberedAnswer>,
    /// The rules about operations, in the order of the answers.
    operations: Vec<RememberedAnswer>,
}

#[derive(Debug)]
struct RememberedAnswer {
    rule: ApprovalRule,
    /// The definition of the tool; an allow counts for no other.
    definition: Option<ToolDefinition>,
}

impl RememberedApprovals {
    pub(super) fn remember(
        &mut self,
        key: ApprovalKey,
        definition: Option<&ToolDefinition>,
        decision: &ApprovalDecision,
        at: Option<Timestamp>,
    ) {
        if decision.is_lasting() && decision.operations.is_empty() {
            let answer = if decision.granted { DefaultDecision::Allow } else { DefaultDecision::Deny };
            let rule = ApprovalRule {
                scope: RuleScope::Session,
                event: Some(key.event.clone()),
                by: decision.by.clone(),
                created_at: at,
                ..ApprovalRule::new(&*key.hook, key.prompt.clone(), answer)
            };
            self.rules.insert(key, RememberedAnswer { rule, definition: definition.cloned() });
        }
    }

    pub(super) fn recall(&self, key: &ApprovalKey, definition: Option<&ToolDefinition>) -> Option<ApprovalDecision> {
        let RememberedAnswer { rule, definition: given_for } = self.rules.get(key)?;
        let granted = rule.decision == DefaultDecision::Allow;
        let decision = ApprovalDecision::by_user(DecisionBasis::Remembered, granted, &key.prompt);
        (!granted || given_for.as_ref() == definition).then(|| ApprovalDecision { by: rule.by.clone(), ..decision })
    }

    /// Remembers a rule about an operation. It replaces the same rule for another definition.
    pub(super) fn remember_operation(&mut self, rule: ApprovalRule, definition: Option<&ToolDefinition>) {
        self.forget_operation(&rule);
        self.operations.push(RememberedAnswer { rule, definition: definition.cloned() });
    }

    /// Returns the rules about operations that count for this definition of the tool.
    pub(super) fn operations(&self, definition: Option<&ToolDefinition>) -> ApprovalRules {
        let valid = self.operations.iter().filter(|remembered| remembered.definition.as_ref() == definition);
        valid.map(|remembered| remembered.rule.clone()).collect()
    }

    /// Forgets a rule about an operation. Returns `false` if it is unknown.
    pub(super) fn forget_operation(&mut self, rule: &ApprovalRule) -> bool {
        let before = self.operations.len();
        let is_same = |known: &ApprovalRule| known.hook == rule.hook && known.operation == rule.operation;
        self.operations.retain(|known| !is_same(&known.rule));
        self.operations.len() < before
    }

    /// Returns all answers, ordered by hook, event and prompt, and then the rules about operations.
    pub(super) fn all(&self) -> Vec<ApprovalRule> {
        let mut keys: Vec<_> = self.rules.iter().collect();
        keys.sort_by_key(|(key, _)| (&key.hook, key.event.as_str(), &key.prompt));
        let prompts = keys.into_iter().map(|(_, remembered)| remembered);
        prompts.chain(&self.operations).map(|remembered| remembered.rule.clone()).collect()
    }

    /// Forgets an answer. Returns `false` if it is unknown.
    pub(super) fn forget(&mut self, key: &ApprovalKey) -> bool {
        self.rules.remove(key).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
        self.operations.clear();
    }
}
