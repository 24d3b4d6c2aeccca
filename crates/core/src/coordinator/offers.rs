//! Rules that an approver creates with an answer.

use super::Coordinator;
use super::record::RecordWriter;
use crate::approval::{ApprovalDecision, ApprovalKey, ApprovalRule, RuleScope};
use crate::ports::approval_rules::ToolDefinition;
use crate::result::{ApprovalOption, DefaultDecision, Effect, Level};
use crate::sync::lock;

/// Returns `true` if an option allows always: only then may a rule be created.
pub(super) fn allows_always(options: &[ApprovalOption]) -> bool {
    options.iter().any(|option| option.effect == Effect::AllowAlways)
}

impl Coordinator {
    /// Returns the scopes that a rule of a hook can have, each with its project if it is one.
    pub(super) fn rule_scopes(&self, key: &ApprovalKey) -> Vec<(RuleScope, Option<String>)> {
        let mut scopes = vec![(RuleScope::Session, None)];
        // A file could not tell such a name from another rule.
        if !key.hook.contains([':', '*'])
            && let Some(source) = &self.shared.rules.source
        {
            scopes.extend(source.scopes());
        }
        scopes
    }

    /// Creates the rules that an approver chose. A rule that cannot be stored counts for the session.
    pub(super) async fn create_rules(
        &self,
        recording: &mut RecordWriter<'_>,
        key: &ApprovalKey,
        definition: Option<&ToolDefinition>,
        decision: &ApprovalDecision,
        scope: RuleScope,
    ) {
        let scopes = self.rule_scopes(key);
        let project = scopes.into_iter().find(|(known, _)| *known == scope).and_then(|(_, project)| project);
        for operation in &decision.operations {
            let rule = ApprovalRule {
                scope,
                project: project.clone(),
                by: decision.by.clone(),
                created_at: self.clock().wall().try_into().ok(),
                ..ApprovalRule::for_operation(&*key.hook, operation.as_str(), DefaultDecision::Allow)
            };
            if let Some(source) = self.shared.rules.source.as_ref().filter(|_| scope != RuleScope::Session) {
                let Err(error) = recording.call("approval_rules", source.add(&rule)).await else { continue };
                let text = format!("the rule `{operation}` cannot be stored, so it counts for this session: {error}");
                self.show(recording, Level::Error, "kernel".to_owned(), text).await;
            }
            let rule = ApprovalRule { scope: RuleScope::Session, project: None, ..rule };
            lock(&self.shared.remembered).remember_operation(rule, definition);
        }
    }
}
