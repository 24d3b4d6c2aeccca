//! Whether a recorded decision would be another one.

use amplifier_core::{ActionKind, Answers, DataStatus, DecisionKind, EmissionReport, EventName};
use serde::Serialize;

use super::{DecisionSummary, ReplayPolicy};

/// How a recorded decision compares with that of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// It would be the same.
    Same,
    /// It would be another one.
    Changed {
        /// What was decided.
        was: DecisionSummary,
        /// What would be.
        would_be: DecisionSummary,
    },
    /// That cannot be said.
    Skipped(SkipReason),
}

/// Why a recorded decision cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The data was erased.
    Erased,
    /// The data was never kept, or cannot be read again.
    Withheld,
    /// The emission was given up before there was a decision.
    Cancelled,
    /// It was decided by a hook that the policy has, too, but that is not run here.
    NotRun,
    /// Hooks had changed the data before it was recorded, so it does not tell whether the policy would have changed it.
    Modified,
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

/// Compares what was recorded with what the policy makes of the same event.
pub fn compare(recorded: &EmissionReport, policy: &ReplayPolicy, would_be: DecisionSummary) -> Comparison {
    let Some(was) = DecisionSummary::new(recorded) else { return Comparison::Skipped(SkipReason::Withheld) };
    if was.decision == DecisionKind::Cancelled {
        return Comparison::Skipped(SkipReason::Cancelled);
    }
    if was.decision == would_be.decision
        && same_hooks(&was.decided_by, &would_be.decided_by)
        && would_be.decision != DecisionKind::Modify
    {
        return Comparison::Same;
    }
    // The record has the data as hooks left it. If they changed it, nothing is left for the policy to change.
    let only_changes =
        |summary: &DecisionSummary| matches!(summary.decision, DecisionKind::Continue | DecisionKind::Modify);
    let was_changed = recorded.answered(ActionKind::Modify).next().is_some() && counts(&recorded.event);
    if was_changed && only_changes(&was) && only_changes(&would_be) {
        return Comparison::Skipped(SkipReason::Modified);
    }
    if was.decided_by.iter().any(|hook| policy.skipped().iter().any(|skipped| skipped.name == *hook)) {
        return Comparison::Skipped(SkipReason::NotRun);
    }
    // Where changes do not count, the record has the data as it was, and a change is the same change.
    if was.decision == would_be.decision && same_hooks(&was.decided_by, &would_be.decided_by) {
        return Comparison::Same;
    }
    Comparison::Changed { was, would_be }
}

/// Whether changes of the data count at that event.
fn counts(event: &str) -> bool {
    event.parse::<EventName>().is_ok_and(|event| event.answers() != Answers::Observed)
}

/// Whether these are the same hooks. Their order is not what was decided.
fn same_hooks(some: &[String], others: &[String]) -> bool {
    let sorted = |hooks: &[String]| {
        let mut hooks = hooks.to_vec();
        hooks.sort_unstable();
        hooks
    };
    some == others || sorted(some) == sorted(others)
}

impl DecisionSummary {
    /// Whether another policy decided the same: the same answer, of the same hooks, with the same changes. In which words does not
    /// matter.
    pub fn agrees(&self, other: &Self) -> bool {
        self.decision == other.decision
            && same_hooks(&self.decided_by, &other.decided_by)
            && self.fields == other.fields
    }
}
