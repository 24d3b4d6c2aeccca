//! Decisions on approval requests.

use serde::{Deserialize, Serialize};

use super::{
    Actor, ApprovalAnswer, ApprovalError, ApprovalKey, ApprovalRequest, ApprovalRules, OperationParts, RuleScope,
};
use crate::result::{ApprovalOption, DefaultDecision, Effect};
use crate::words::words;

/// The decision on an approval request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalDecision {
    /// `true` if the operation may run.
    pub granted: bool,
    /// The basis of the decision.
    pub basis: DecisionBasis,
    /// The reason, in words.
    pub reason: String,
    /// The approver, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// The approval rule about the prompt that decided: `<hook>:<pattern>`, as files have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The operations of the rules that decided, or of the rule that the approver created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// The scope of the rule that the approver created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<RuleScope>,
    /// The effect of the option that was chosen, if an approver chose one. Records have only whether it allows.
    #[serde(skip)]
    pub effect: Option<Effect>,
}

words! {
    /// The basis of a decision.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum DecisionBasis("basis of a decision") {
        /// An approver answered.
        Answer = "answer",
        /// A rule given in advance.
        Rule = "rule",
        /// An earlier answer that the session remembers.
        Remembered = "remembered",
        /// The time limit passed; the request's default counts.
        Timeout = "timeout",
        /// The answer was none of the options.
        InvalidOption = "not_offered",
        /// The session has no approval system, or nobody can be asked.
        NoApprovalSystem = "no_system",
        /// The approval system failed.
        Error = "failed",
        /// The operation was given up while the request was open.
        Cancelled = "cancelled",
        /// The session was gone before it reported a decision. A server's view; never in a record.
        Disconnected = "disconnected",
    }
}

impl ApprovalDecision {
    /// A decision that no approver made.
    pub fn new(granted: bool, basis: DecisionBasis, reason: impl Into<String>) -> Self {
        Self {
            granted,
            basis,
            reason: reason.into(),
            by: None,
            rule: None,
            operations: Vec::new(),
            scope: None,
            effect: None,
        }
    }

    /// Returns the decision on an answer, or on a missing one. Everything but a clear yes is a no.
    pub(crate) fn on_answer(request: &ApprovalRequest, answer: Result<ApprovalAnswer, ApprovalError>) -> Self {
        let prompt = &request.prompt;
        match answer {
            Ok(answer) => {
                let why = answer.clean_reason();
                let ApprovalAnswer { label, by, rule, .. } = answer;
                let option = request.options.iter().find(|option| option.label == label);
                let is_offered = |option: &ApprovalOption| match &rule {
                    Some(rule) => {
                        option.effect == Effect::AllowAlways && request.offers.iter().any(|offer| offer.is_chosen(rule))
                    }
                    None => true,
                };
                let decision = match option {
                    Some(option) if !is_offered(option) => {
                        let operations = rule.iter().flat_map(|rule| &rule.operations).map(|name| format!("`{name}`"));
                        let operations = operations.collect::<Vec<_>>().join(", ");
                        let reason = format!("The rule for {operations} was not offered: {prompt}");
                        Self::new(false, DecisionBasis::InvalidOption, reason)
                    }
                    Some(option) => {
                        let mut decision = Self::by_user(DecisionBasis::Answer, option.effect.allows(), prompt);
                        if let Some(why) = why.filter(|_| !decision.granted) {
                            decision.reason += &format!("\nReason: {why}");
                        }
                        let (operations, scope) = rule.map(|rule| (rule.operations, rule.scope)).unzip();
                        let operations = operations.unwrap_or_default();
                        Self { effect: Some(option.effect), operations, scope, ..decision }
                    }
                    None => {
                        let reason = format!("Answer `{label}` was not offered: {prompt}");
                        Self::new(false, DecisionBasis::InvalidOption, reason)
                    }
                };
                Self { by, ..decision }
            }
            Err(ApprovalError::TimedOut) => {
                let granted = request.default == DefaultDecision::Allow;
                let word = if granted { "allowed" } else { "denied" };
                Self::new(granted, DecisionBasis::Timeout, format!("Approval timed out, {word} by default: {prompt}"))
            }
            Err(error @ ApprovalError::Unavailable(_)) => {
                Self { basis: DecisionBasis::NoApprovalSystem, ..Self::failed(prompt, &error) }
            }
            Err(error) => Self::failed(prompt, &error),
        }
    }

    /// Returns the decision of rules about a prompt, or a denial of a part of the operation.
    pub(crate) fn by_rules(
        rules: &ApprovalRules,
        ApprovalKey { hook, prompt, .. }: &ApprovalKey,
        parts: &OperationParts,
    ) -> Option<Self> {
        let rule = rules.deciding(hook, prompt);
        if rule.is_none_or(|rule| rule.decision == DefaultDecision::Allow)
            && let Some(denied) = parts.denied_by(rules, hook)
        {
            return Some(Self { operations: vec![denied.to_owned()], ..Self::by_rule(false, prompt) });
        }
        let rule = rule?;
        let decision = Self::by_rule(rule.decision == DefaultDecision::Allow, prompt);
        Some(Self { rule: Some(rule.file_key()), ..decision })
    }

    /// Returns the decision of rules that allow every part of the operation.
    pub(crate) fn by_operations(
        rules: &ApprovalRules,
        ApprovalKey { hook, prompt, .. }: &ApprovalKey,
        parts: &OperationParts,
    ) -> Option<Self> {
        Some(Self { operations: parts.allowed_by(rules, hook)?, ..Self::by_rule(true, prompt) })
    }

    fn by_rule(granted: bool, prompt: &str) -> Self {
        let word = if granted { "Allowed" } else { "Denied" };
        Self::new(granted, DecisionBasis::Rule, format!("{word} by rule: {prompt}"))
    }

    pub(crate) fn by_user(basis: DecisionBasis, granted: bool, prompt: &str) -> Self {
        let word = if granted { "allowed" } else { "denied" };
        Self::new(granted, basis, format!("User {word}: {prompt}"))
    }

    pub(crate) fn failed(prompt: &str, error: &dyn std::fmt::Display) -> Self {
        Self::new(false, DecisionBasis::Error, format!("Approval failed ({error}): {prompt}"))
    }

    pub(crate) fn no_system(prompt: &str) -> Self {
        Self::new(false, DecisionBasis::NoApprovalSystem, format!("No approval system: {prompt}"))
    }

    pub(crate) fn cancelled(prompt: &str) -> Self {
        Self::new(false, DecisionBasis::Cancelled, format!("Cancelled: {prompt}"))
    }

    /// Returns `true` if the approver chose an option for the rest of the session.
    pub fn is_lasting(&self) -> bool {
        self.effect.is_some_and(Effect::is_lasting)
    }
}
