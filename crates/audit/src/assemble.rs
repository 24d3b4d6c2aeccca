//! Puts the records of each emission together, while they go by.

use std::collections::{HashMap, VecDeque};

use amplifier_core::{
    ApprovalDecision, ApprovalDecisionEntry, ApprovalRequestEntry, AuditEntry, EventEntry, IntentEntry,
    LateAnswerEntry, OutcomeEntry, RecordedData,
};
use serde_json::Value;

use crate::bodies::Bodies;
use crate::body::Body;
use crate::emission::{Kept, RecordedApproval, RecordedEmission, RecordedIntent, RecordedOutcome, StrayRecord};
use crate::error::AuditError;
use crate::record::{Kind, Record};
use crate::redact::has_marker;
use crate::storage::RecordSource;

/// How many emissions of a session are held at once. Tools run side by side, so their records can stand among one another.
const MOST_OPEN: usize = 8;

/// The same for those that wait for a person: much can happen meanwhile.
const MOST_WAITING: usize = 64;

/// Puts the records of each emission together, while they go by. Holds a few emissions of each session, however long the log is.
///
/// What it gives comes in the order of a session's events. It can be told less than all records: those of one session, say, or of
/// some events.
#[derive(Debug, Default)]
pub struct Emissions {
    open: HashMap<Box<str>, VecDeque<RecordedEmission>>,
    bodies: Bodies,
}

/// What came together.
#[derive(Clone, Debug, PartialEq)]
pub enum Traced {
    /// An emission, with all that is recorded of it.
    Emission(Box<RecordedEmission>),
    /// A record that belongs to none.
    Stray(StrayRecord),
}

impl Emissions {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next record, and gives what is complete by it.
    ///
    /// # Errors
    /// If a large body cannot be read, or is not what was recorded.
    pub fn see(&mut self, record: &Record<'_>, storage: &dyn RecordSource) -> Result<Vec<Traced>, AuditError> {
        let session = record.session.as_deref().unwrap_or_default();
        let body = self.bodies.read(record, storage)?;
        if record.kind == Kind::Event {
            // Looked up before it is made, because it is nearly always there.
            if !self.open.contains_key(session) {
                self.open.insert(session.into(), VecDeque::new());
            }
            let Some(open) = self.open.get_mut(session) else { return Ok(Vec::new()) };
            open.push_back(emission(record, &body));
            return Ok(overflowing(open).into_iter().map(Traced::from).collect());
        }
        let is_of_emission = !matches!(record.kind, Kind::Seal | Kind::PolicyChange | Kind::Gap | Kind::Breach);
        if is_of_emission
            && let Some(open) = self.open.get_mut(session)
            && join(open, record, &body)
        {
            return Ok(Vec::new());
        }
        // What a session ends with comes after all that happened in it.
        let ended = if record.kind == Kind::Seal { self.open.remove(session) } else { None };
        let before = ended.into_iter().flatten().map(Traced::from);
        Ok(before.chain([Traced::Stray(stray(record, &body))]).collect())
    }

    /// What is left when there are no more records.
    pub fn finish(self) -> Vec<RecordedEmission> {
        let mut left: Vec<_> = self.open.into_values().flatten().collect();
        left.sort_unstable_by_key(|emission| emission.seq);
        left
    }
}

impl From<RecordedEmission> for Traced {
    fn from(emission: RecordedEmission) -> Self {
        Self::Emission(Box::new(emission))
    }
}

/// The oldest ones, if there are too many. One that waits for a person holds those after it back, so that their order stays.
fn overflowing(open: &mut VecDeque<RecordedEmission>) -> Vec<RecordedEmission> {
    let mut over = Vec::new();
    while let Some(first) = open.front() {
        let most = if first.is_waiting() { MOST_WAITING } else { MOST_OPEN };
        if open.len() <= most {
            break;
        }
        over.extend(open.pop_front());
    }
    over
}

fn emission(record: &Record<'_>, body: &Body<'_>) -> RecordedEmission {
    let mut emission = RecordedEmission {
        seq: record.seq,
        time: record.time.to_string(),
        session: record.session.as_deref().map(str::to_owned),
        turn: record.turn,
        event: record.event.as_deref().unwrap_or_default().to_owned(),
        kept: Kept::Withheld,
        data: None,
        decision: None,
        denied_by: None,
        reason: None,
        hooks: Vec::new(),
        approvals: Vec::new(),
        injections: Vec::new(),
        messages: Vec::new(),
        intent: None,
        outcome: None,
        failures: Vec::new(),
        unreadable: 0,
    };
    let entry = |text: &str| match record.entry(text) {
        Ok(Some(AuditEntry::Event(event))) => Some(event),
        _ => None,
    };
    match body {
        Body::Whole(text) => {
            if let Some(EventEntry { data, decision, denied_by, reason }) = entry(text) {
                emission.data = data.to_map();
                emission.decision = Some(decision.as_str().to_owned());
                emission.denied_by = denied_by;
                emission.reason = reason;
                emission.kept = match (&emission.data, data) {
                    (None, _) => Kept::Withheld,
                    (Some(_), RecordedData::Text(text)) if has_marker(text.get()) => Kept::Redacted,
                    (Some(_), _) => Kept::Whole,
                };
            }
        }
        Body::Erased { .. } => {
            emission.kept = Kept::Erased;
            // Of a request whose first messages were erased, the line still has what was decided.
            if let Some(EventEntry { decision, denied_by, reason, .. }) = entry(record.body.get()) {
                let decision = Some(decision.as_str().to_owned());
                (emission.decision, emission.denied_by, emission.reason) = (decision, denied_by, reason);
            }
        }
        Body::Withheld { .. } => {}
    }
    emission
}

/// Adds a record to the emission that it belongs to, if that is there.
fn join(open: &mut VecDeque<RecordedEmission>, record: &Record<'_>, body: &Body<'_>) -> bool {
    let event = record.event.as_deref().unwrap_or_default();
    let mut of_event = open.iter_mut().filter(|emission| emission.event == event);
    let Body::Whole(text) = body else {
        return of_event.next_back().map(|emission| emission.unreadable += 1).is_some();
    };
    let Ok(Some(entry)) = record.entry(text) else { return false };
    match entry {
        AuditEntry::HookReport(report) => add(of_event.next_back(), |emission| emission.hooks.push(report.into())),
        AuditEntry::Injection(told) => add(of_event.next_back(), |emission| emission.injections.push(told.into())),
        AuditEntry::Message(told) => add(of_event.next_back(), |emission| emission.messages.push(told.into())),
        AuditEntry::Failure(failure) => add(of_event.next_back(), |emission| emission.failures.push(failure.into())),
        AuditEntry::Outcome(OutcomeEntry { success, tool_call_id }) => add(of_event.next_back(), |emission| {
            emission.outcome = Some(RecordedOutcome { success, tool_call_id });
        }),
        AuditEntry::Intent(IntentEntry { tool_call_id, .. }) => {
            let is_call = |emission: &RecordedEmission| {
                let data = emission.data.as_ref();
                let id = data.and_then(|data| data.get("tool_call_id")).and_then(Value::as_str);
                emission.intent.is_none() && id == tool_call_id.as_deref()
            };
            let Some(emission) = of_event.rfind(|emission| is_call(emission)) else { return false };
            let digest = record.digest.as_deref().map(str::to_owned);
            emission.intent = Some(RecordedIntent { seq: record.seq, digest, tool_call_id, in_doubt: false });
            true
        }
        AuditEntry::ApprovalRequest(ApprovalRequestEntry { id, hook, prompt, .. }) => {
            let Some(emission) = of_event.find(|emission| asks(emission, &hook)) else { return false };
            let asked = Some(record.time.to_string());
            let asked = RecordedApproval { hook, id: Some(id), prompt: Some(prompt), asked, ..Default::default() };
            emission.approvals.push(asked);
            true
        }
        AuditEntry::ApprovalDecision(decided) => decide(open, decided, record),
        AuditEntry::LateAnswer(LateAnswerEntry { id, answer, by, .. }) => {
            let mut approvals = of_event.flat_map(|emission| &mut emission.approvals);
            let Some(approval) = approvals.find(|approval| approval.id == Some(id)) else { return false };
            (approval.late_answer, approval.late_answer_by) = (Some(answer), by);
            true
        }
        AuditEntry::Event(_) => false,
    }
}

/// Whether the hook wants to have something allowed there that nobody was asked about so far.
fn asks(emission: &RecordedEmission, hook: &str) -> bool {
    let wanted = emission.answered("ask_user").filter(|asking| *asking == hook).count();
    wanted > emission.approvals.iter().filter(|approval| approval.hook == hook).count()
}

fn decide(open: &mut VecDeque<RecordedEmission>, decided: ApprovalDecisionEntry, record: &Record<'_>) -> bool {
    let event = record.event.as_deref().unwrap_or_default();
    let ApprovalDecisionEntry { id, hook, decision } = decided;
    let ApprovalDecision { granted, basis, reason, by, .. } = decision;
    let mut of_event = open.iter_mut().filter(|emission| emission.event == event);
    let approval = match id {
        Some(id) => {
            let mut approvals = of_event.flat_map(|emission| &mut emission.approvals);
            approvals.find(|approval| approval.id == Some(id) && approval.hook == hook)
        }
        None => of_event.find(|emission| asks(emission, &hook)).and_then(|emission| {
            emission.approvals.push(RecordedApproval { hook, ..RecordedApproval::default() });
            emission.approvals.last_mut()
        }),
    };
    let Some(approval) = approval else { return false };
    approval.waited_ms = approval.asked.as_deref().and_then(|asked| milliseconds(asked, &record.time));
    approval.decided_at = Some(record.time.to_string());
    approval.decided_seq = Some(record.seq);
    approval.granted = Some(granted);
    approval.basis = Some(basis);
    approval.reason = Some(reason);
    approval.by = by;
    true
}

fn milliseconds(from: &str, to: &str) -> Option<u64> {
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    u64::try_from(time(to)?.duration_since(time(from)?).as_millis()).ok()
}

fn add(emission: Option<&mut RecordedEmission>, add: impl FnOnce(&mut RecordedEmission)) -> bool {
    emission.map(add).is_some()
}

fn stray(record: &Record<'_>, body: &Body<'_>) -> StrayRecord {
    let text = match body {
        Body::Whole(text) => text,
        Body::Erased { .. } | Body::Withheld { .. } => record.body.get(),
    };
    StrayRecord {
        seq: record.seq,
        time: record.time.to_string(),
        session: record.session.as_deref().map(str::to_owned),
        turn: record.turn,
        event: record.event.as_deref().map(str::to_owned),
        kind: record.kind,
        body: serde_json::from_str(text).unwrap_or_default(),
    }
}
