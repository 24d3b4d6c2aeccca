//! Rules that an approver may create with an answer.

use serde::{Deserialize, Serialize};

use super::{ApprovalRule, ApprovalRules, RuleScope};
use crate::ports::operations::{OperationPart, OperationWidth};
use crate::result::DefaultDecision;

/// The longest name of an operation in an offered rule, in bytes: the approver must see all of it.
const LONGEST: usize = 500;

/// The largest number of widths offered for one part: the narrowest and the widest ones.
const WIDTHS: usize = 6;

/// A rule that an approver may create with an answer: it allows the operation of the request, and others like it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RuleOffer {
    /// The names of the allowed operations, one for each part of this one.
    pub operations: Vec<String>,
    /// The allowed operations in a few words.
    pub label: String,
    /// The sessions that the rule would be for.
    pub scope: RuleScope,
    /// A sentence about the requests that the rule would answer.
    pub explanation: String,
}

/// The rule that an approver chose, by the values of its [`RuleOffer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChosenRule {
    /// The names of the allowed operations, as offered.
    pub operations: Vec<String>,
    /// The sessions that the rule is for.
    pub scope: RuleScope,
}

impl RuleOffer {
    /// Returns `true` if the approver chose this offer.
    pub fn is_chosen(&self, chosen: &ChosenRule) -> bool {
        self.operations == chosen.operations && self.scope == chosen.scope
    }
}

/// The parts of one operation, as the hook that requests approval sees them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperationParts(pub(crate) Vec<OperationPart>);

impl OperationParts {
    /// Returns the name that a rule denies, if there is one.
    pub(crate) fn denied_by(&self, rules: &ApprovalRules, hook: &str) -> Option<&str> {
        let mut widths = self.0.iter().flat_map(|part| &part.widths);
        let is_denied = |width: &&OperationWidth| rules.has_operation(hook, &width.operation, DefaultDecision::Deny);
        widths.find(is_denied).map(|width| &*width.operation)
    }

    /// Returns the names that allow the operation, if rules allow every part of it. No rule allows an operation without parts.
    pub(crate) fn allowed_by(&self, rules: &ApprovalRules, hook: &str) -> Option<Vec<String>> {
        let allowing = |part: &OperationPart| {
            let mut widths = part.widths.iter().filter(|width| width.allows);
            let width = widths.find(|width| rules.has_operation(hook, &width.operation, DefaultDecision::Allow))?;
            Some(width.operation.clone())
        };
        let allowed: Option<Vec<String>> = self.0.iter().map(allowing).collect();
        allowed.map(without_duplicates).filter(|allowed| !allowed.is_empty())
    }

    /// Returns the rules that would allow the operation together with those that exist, from narrow to wide, for each scope.
    pub(crate) fn offers(
        &self,
        rules: &ApprovalRules,
        hook: &str,
        scopes: &[(RuleScope, Option<String>)],
    ) -> Vec<RuleOffer> {
        let is_allowed = |width: &&OperationWidth| {
            width.allows && rules.has_operation(hook, &width.operation, DefaultDecision::Allow)
        };
        let open = self.0.iter().filter(|part| !part.widths.iter().any(|width| is_allowed(&width)));
        let open: Vec<Vec<&OperationWidth>> = open.map(offered_widths).collect();
        let levels = open.iter().map(Vec::len).max().unwrap_or_default();
        let mut offers: Vec<RuleOffer> = Vec::new();
        for (scope, project) in scopes {
            for level in 0..levels {
                // A part with fewer widths keeps its widest one.
                let chosen: Option<Vec<&OperationWidth>> =
                    open.iter().map(|widths| widths.get(level).or(widths.last()).copied()).collect();
                let Some(chosen) = chosen else { continue };
                let operations = without_duplicates(chosen.iter().map(|width| width.operation.clone()).collect());
                let label = without_duplicates(chosen.iter().map(|width| width.label.clone()).collect()).join(", and ");
                if offers.iter().any(|offer| offer.operations == operations && offer.scope == *scope) {
                    continue;
                }
                let explanation = explain(hook, &operations, *scope, project.as_deref());
                offers.push(RuleOffer { operations, label, scope: *scope, explanation });
            }
        }
        offers
    }
}

/// Returns the widths of a part that an approver can choose from.
fn offered_widths(part: &OperationPart) -> Vec<&OperationWidth> {
    let widths = part.widths.iter().filter(|width| width.allows && width.operation.len() <= LONGEST);
    let mut widths: Vec<&OperationWidth> = widths.collect();
    if widths.len() > WIDTHS {
        widths.drain(WIDTHS / 2..widths.len() - WIDTHS / 2);
    }
    widths
}

fn explain(hook: &str, operations: &[String], scope: RuleScope, project: Option<&str>) -> String {
    let rules = operations.iter().map(|operation| ApprovalRule {
        scope,
        project: project.map(str::to_owned),
        ..ApprovalRule::for_operation(hook, operation.as_str(), DefaultDecision::Allow)
    });
    rules.map(|rule| rule.explanation()).collect::<Vec<_>>().join(" ")
}

fn without_duplicates(all: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}
