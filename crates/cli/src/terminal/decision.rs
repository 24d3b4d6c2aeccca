//! Decisions on approval requests, in words: by whom, where, and by which rule.

use amplifier_core::{Actor, ApprovalDecision, DecisionBasis, ReportedDecision};

use super::line::{DIM, GREEN, RED, StyledLine};
use crate::session::excerpt;

/// Returns the approver and the channel.
pub(crate) fn describe_approver(by: Option<&Actor>) -> String {
    match by {
        None => "elsewhere".to_owned(),
        Some(Actor { name, via }) if ["console", "terminal"].contains(&via.as_str()) => {
            format!("by {name} in the {via}")
        }
        Some(Actor { name, via }) if via == "api" => format!("by {name} over the API"),
        Some(Actor { name, via }) => format!("by {name} ({via})"),
    }
}

/// Returns the origin of a decision: a user, an approval rule, an earlier answer or a time limit.
pub(crate) fn describe_basis(decision: &ApprovalDecision) -> String {
    let ApprovalDecision { basis, by, rule, operations, reason, .. } = decision;
    match basis {
        DecisionBasis::Answer if by.is_none() => "by the user".to_owned(),
        DecisionBasis::Answer => describe_approver(by.as_ref()),
        DecisionBasis::Remembered if by.is_none() => "by an earlier answer of the user".to_owned(),
        DecisionBasis::Remembered => format!("by an earlier answer, {}", describe_approver(by.as_ref())),
        DecisionBasis::Rule => match rule {
            Some(rule) => format!("by the approval rule `{rule}`"),
            None if operations.is_empty() => "by an approval rule".to_owned(),
            None => format!("by the approval rule `{}`", operations.join("`, `")),
        },
        DecisionBasis::Timeout => "because no answer came in time".to_owned(),
        DecisionBasis::NoApprovalSystem => "because no approver is available".to_owned(),
        DecisionBasis::Cancelled => "because the operation was cancelled".to_owned(),
        _ => reason.clone(),
    }
}

/// Returns a line about a decision that no prompt on this terminal has shown.
pub(super) fn decision_line(decided: &ReportedDecision, has_prompts: bool) -> Option<(StyledLine, String)> {
    let ReportedDecision { prompt, decision, .. } = decided;
    let is_news = match decision.basis {
        DecisionBasis::Rule | DecisionBasis::Remembered => true,
        DecisionBasis::Answer | DecisionBasis::Timeout | DecisionBasis::InvalidOption => !has_prompts,
        // The denial of the operation has the reason.
        _ => false,
    };
    let (sign, style, word) = if decision.granted { ("✓ ", GREEN, "allowed") } else { ("✗ ", RED, "denied") };
    let text = format!("{word} {}: {}", describe_basis(decision), excerpt(prompt));
    is_news.then(|| (StyledLine::new().exact(style.effects(DIM.get_effects()), sign), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_basis_is_told_with_its_origin() {
        let check = |decision: ApprovalDecision, expected: &str| assert_eq!(describe_basis(&decision), expected);
        let new = |basis| ApprovalDecision::new(true, basis, "why");
        let by = |basis, via: &str| ApprovalDecision { by: Some(Actor::new("ann", via)), ..new(basis) };
        check(by(DecisionBasis::Answer, "terminal"), "by ann in the terminal");
        check(by(DecisionBasis::Answer, "api"), "by ann over the API");
        check(by(DecisionBasis::Remembered, "console"), "by an earlier answer, by ann in the console");
        check(new(DecisionBasis::Answer), "by the user");
        let rule = ApprovalDecision { rule: Some("confirm:*".to_owned()), ..new(DecisionBasis::Rule) };
        check(rule, "by the approval rule `confirm:*`");
        check(new(DecisionBasis::Rule), "by an approval rule");
        let operation = ApprovalDecision { operations: vec!["run cargo *".to_owned()], ..new(DecisionBasis::Rule) };
        check(operation, "by the approval rule `run cargo *`");
        check(new(DecisionBasis::Timeout), "because no answer came in time");
        check(new(DecisionBasis::Error), "why");
    }
}
