//! Comparison of recorded decisions with those of another policy.

use amplifier_core::{ActionKind, DataStatus, DecisionKind, EmissionReport, EventEffects, EventName};
use serde::Serialize;

use super::{DecisionSummary, ReplayPolicy};

/// Result of a comparison between a recorded decision and that of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Both decisions are the same.
    Same,
    /// The policy would decide differently.
    Changed {
        /// The recorded decision.
        was: DecisionSummary,
        /// The decision of the policy.
        would_be: DecisionSummary,
    },
    /// The decisions cannot be compared.
    Skipped(SkipReason),
}

/// Reason for skipping a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The data was erased.
    Erased,
    /// The data was never recorded, or cannot be decoded.
    Withheld,
    /// The emission was cancelled before a decision.
    Cancelled,
    /// The decision came from a hook that is also part of the policy but does not run in a replay.
    NotRun,
    /// Hooks modified the data before it was recorded, so the decision of the policy on the original data is unknown.
    Modified,
    /// The log has markers in place of secrets, and the policy denies inputs with markers.
    Redacted,
    /// The event has no valid name.
    Unnamed,
}

impl SkipReason {
    /// Returns the reason why data of this status cannot be compared; `None` if it can be.
    pub fn from_status(status: DataStatus) -> Option<Self> {
        match status {
            DataStatus::Whole | DataStatus::Redacted => None,
            DataStatus::Erased => Some(Self::Erased),
            DataStatus::Withheld => Some(Self::Withheld),
        }
    }
}

/// Compares a recorded decision with that of the policy on the same event.
pub fn compare(recorded: &EmissionReport, policy: &ReplayPolicy, would_be: DecisionSummary) -> Comparison {
    let Some(was) = DecisionSummary::new(recorded) else { return Comparison::Skipped(SkipReason::Withheld) };
    if was.decision == DecisionKind::Cancelled {
        return Comparison::Skipped(SkipReason::Cancelled);
    }
    let is_same = was.decision == would_be.decision
        && (same_hooks(&was.decided_by, &would_be.decided_by) || is_cut_short(recorded, &was, &would_be));
    if is_same && would_be.decision != DecisionKind::Modify {
        return Comparison::Same;
    }
    // The record has the data after its modification, so nothing is left for the policy to modify.
    let only_changes =
        |summary: &DecisionSummary| matches!(summary.decision, DecisionKind::Continue | DecisionKind::Modify);
    let was_changed = recorded.answered(ActionKind::Modify).next().is_some() && allows_modifications(&recorded.event);
    if was_changed && only_changes(&was) && only_changes(&would_be) {
        return Comparison::Skipped(SkipReason::Modified);
    }
    if was.decided_by.iter().any(|hook| policy.skipped().iter().any(|skipped| skipped.name == *hook)) {
        return Comparison::Skipped(SkipReason::NotRun);
    }
    // At events where modifications have no effect, the record has the original data, and the modification is the same.
    if is_same {
        return Comparison::Same;
    }
    Comparison::Changed { was, would_be }
}

/// Returns `true` if the same hooks asked, but the session requested only the first approvals, because one of them was denied.
fn is_cut_short(recorded: &EmissionReport, was: &DecisionSummary, would_be: &DecisionSummary) -> bool {
    let asked: Vec<&str> = recorded.answered(ActionKind::AskUser).collect();
    was.decision == DecisionKind::AskUser
        && recorded.approvals.iter().any(|approval| approval.granted() == Some(false))
        && was.decided_by.iter().all(|hook| would_be.decided_by.contains(hook))
        && would_be.decided_by.iter().all(|hook| asked.contains(&hook.as_str()))
}

/// Returns `true` if modifications have an effect at this event.
fn allows_modifications(event: &str) -> bool {
    event.parse::<EventName>().is_ok_and(|event| event.effects() != EventEffects::Observed)
}

/// Returns `true` if both lists have the same hooks, in any order.
fn same_hooks(some: &[String], others: &[String]) -> bool {
    let sorted = |hooks: &[String]| {
        let mut hooks = hooks.to_vec();
        hooks.sort_unstable();
        hooks
    };
    some == others || sorted(some) == sorted(others)
}

impl DecisionSummary {
    /// Returns `true` if both policies decided the same: the same decision by the same hooks, with the same modifications.
    /// Reasons may differ.
    pub fn agrees(&self, other: &Self) -> bool {
        self.decision == other.decision
            && same_hooks(&self.decided_by, &other.decided_by)
            && self.fields == other.fields
    }
}
