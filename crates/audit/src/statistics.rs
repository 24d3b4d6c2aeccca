//! Statistics of a log.

use std::collections::{BTreeMap, BTreeSet};

use amplifier_core::{AuditEntry, DecisionKind};
use serde::Serialize;

use crate::body::{Body, stored_body};
use crate::error::AuditError;
use crate::record::{Kind, Record};
use crate::storage::RecordSource;

/// Statistics of the records of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// The number of records.
    pub records: u64,
    /// The number of segments.
    pub segments: u64,
    /// The time of the first record.
    pub first_time: Option<String>,
    /// The time of the last record.
    pub last_time: Option<String>,
    /// Records by kind.
    pub kinds: BTreeMap<String, u64>,
    /// Records by event.
    pub events: BTreeMap<String, u64>,
    /// Records by session.
    pub sessions: BTreeMap<String, u64>,
    /// Reports by hook.
    pub hooks: BTreeMap<String, u64>,
    /// The decisions.
    #[serde(flatten)]
    pub decided: DecisionCounts,
    /// Sessions whose last record is not a seal: they are running, or were cut off.
    pub unsealed: BTreeSet<String>,
    #[serde(skip)]
    last_segment: Option<u64>,
}

/// The number of decisions of each kind. Decisions that were erased are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionCounts {
    /// Decisions of hooks on events.
    pub decisions: EventDecisionCounts,
    /// Decisions on approval requests.
    pub approvals: ApprovalDecisionCounts,
    /// Operations that did not run: denied by a hook, or by the decision on an approval request.
    pub denials: u64,
}

/// The number of decisions of hooks on events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventDecisionCounts {
    /// The operation went on. A denial counts here at events that only observe.
    pub allow: u64,
    /// A hook denied the operation.
    pub deny: u64,
    /// A hook requested an approval.
    pub asked: u64,
    /// The emission was cancelled.
    pub cancelled: u64,
}

/// The number of decisions on approval requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ApprovalDecisionCounts {
    /// The operation was allowed.
    pub granted: u64,
    /// The operation was denied.
    pub refused: u64,
}

/// The decision that a record of an event or of an approval decision holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedDecision {
    /// The hooks allowed the operation; at events that only observe, any decision.
    Allowed,
    /// A hook denied the event.
    Denied,
    /// A hook requested an approval.
    Asked,
    /// The emission was cancelled.
    Cancelled,
    /// An approval request was granted.
    Granted,
    /// An approval request was denied.
    Refused,
}

impl RecordedDecision {
    /// Reads the decision from the whole body of a record; `None` if the record holds no decision.
    pub fn from_body(record: &Record<'_>, body: &str) -> Option<Self> {
        Some(match record.entry(body).ok()?? {
            AuditEntry::Event(event) => match event.decision {
                decision if decision.denies_at(record.event.as_deref().unwrap_or_default()) => Self::Denied,
                DecisionKind::AskUser => Self::Asked,
                DecisionKind::Cancelled => Self::Cancelled,
                _ => Self::Allowed,
            },
            AuditEntry::ApprovalDecision(approval) if approval.decision.granted => Self::Granted,
            AuditEntry::ApprovalDecision(_) => Self::Refused,
            _ => return None,
        })
    }

    /// Reads the decision of a record, also from a body in a separate file; `None` if the record has none, or it was erased.
    ///
    /// # Errors
    /// If a body in a separate file cannot be read or was altered.
    pub fn read(record: &Record<'_>, storage: &dyn RecordSource) -> Result<Option<Self>, AuditError> {
        let is_decision = matches!(record.kind, Kind::Event | Kind::ApprovalDecision);
        Ok(match is_decision.then(|| stored_body(record, storage)).transpose()? {
            Some(Body::Whole(body)) => Self::from_body(record, &body),
            Some(Body::Erased { .. } | Body::Withheld { .. }) | None => None,
        })
    }

    /// Returns `true` if the operation does not run because of this decision.
    pub fn is_denial(self) -> bool {
        matches!(self, Self::Denied | Self::Refused)
    }
}

impl DecisionCounts {
    /// Counts one decision.
    pub fn count(&mut self, decision: RecordedDecision) {
        let count = match decision {
            RecordedDecision::Allowed => &mut self.decisions.allow,
            RecordedDecision::Denied => &mut self.decisions.deny,
            RecordedDecision::Asked => &mut self.decisions.asked,
            RecordedDecision::Cancelled => &mut self.decisions.cancelled,
            RecordedDecision::Granted => &mut self.approvals.granted,
            RecordedDecision::Refused => &mut self.approvals.refused,
        };
        *count += 1;
        self.denials += u64::from(decision.is_denial());
    }
}

impl Statistics {
    /// Counts one record. A large body is read from its file.
    ///
    /// # Errors
    /// If a large body cannot be read or was altered.
    pub fn count(&mut self, record: &Record<'_>, storage: &dyn RecordSource) -> Result<(), AuditError> {
        self.records += 1;
        if self.last_segment.replace(record.seg) != Some(record.seg) {
            self.segments += 1;
        }
        self.first_time.get_or_insert_with(|| record.time.to_string());
        self.last_time = Some(record.time.to_string());
        add(&mut self.kinds, record.kind.as_str());
        if let Some(event) = &record.event {
            add(&mut self.events, event);
        }
        if let Some(session) = &record.session {
            add(&mut self.sessions, session);
            if record.kind == Kind::Seal {
                self.unsealed.remove(&**session);
            } else if !self.unsealed.contains(&**session) {
                self.unsealed.insert(session.to_string());
            }
        }
        if record.kind == Kind::HookReport
            && let Body::Whole(body) = stored_body(record, storage)?
        {
            let report = match record.entry(&body) {
                Ok(Some(AuditEntry::HookReport(report))) => Some(report),
                _ => None,
            };
            add(&mut self.hooks, report.as_ref().map_or("-", |report| &report.hook));
        }
        if let Some(decision) = RecordedDecision::read(record, storage)? {
            self.decided.count(decision);
        }
        Ok(())
    }
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => _ = counts.insert(name.to_owned(), 1),
    }
}
