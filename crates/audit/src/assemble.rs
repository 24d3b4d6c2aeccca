//! Reassembling emissions from their records.

use std::collections::{HashMap, VecDeque};

use amplifier_core::{
    ActionKind, ApprovalAnswer, ApprovalDecisionEntry, ApprovalReport, ApprovalRequestEntry, AuditEntry, DataStatus,
    EmissionReport, EventEntry, IntentReport, RecordedData, RecordedEmission,
};
use serde::Serialize;
use serde_json::Value;

use crate::body::Body;
use crate::body_reader::BodyReader;
use crate::error::AuditError;
use crate::record::{Kind, Record};
use crate::redact::has_marker;
use crate::storage::RecordSource;

/// The most emissions of a session that are open at once. Tools run side by side, so their records can be interleaved.
const MOST_OPEN: usize = 8;

/// The same for emissions that wait for an approval, which takes longer.
const MOST_WAITING: usize = 64;

/// Reassembles the emissions of a log from its records. Holds a few emissions of each session, however long the log is.
///
/// Emissions come in the order of a session's events. The input can be a part of the records, such as those of one session or of some events.
#[derive(Debug, Default)]
pub struct EmissionAssembler {
    open: HashMap<Box<str>, VecDeque<RecordedEmission>>,
    bodies: BodyReader,
}

/// An emission with all its records, or a record on its own.
#[derive(Clone, Debug, PartialEq)]
pub enum AssembledEntry {
    /// An emission, with all its records.
    Emission(Box<RecordedEmission>),
    /// A record of no emission.
    Unassigned(UnassignedRecord),
}

/// A record that belongs to no emission, or to one that is complete.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnassignedRecord {
    /// The number of the record.
    pub seq: u64,
    /// The time of the record.
    pub time: String,
    /// The session.
    pub session: Option<String>,
    /// The turn of the session.
    pub turn: Option<u64>,
    /// The event.
    pub event: Option<String>,
    /// The kind of the record.
    pub kind: Kind,
    /// The body of the record.
    pub body: Value,
}

impl EmissionAssembler {
    /// Creates an assembler.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next record, and returns the entries that it completes.
    ///
    /// # Errors
    /// If a large body cannot be read or was altered.
    pub fn push(&mut self, record: &Record<'_>, storage: &dyn RecordSource) -> Result<Vec<AssembledEntry>, AuditError> {
        let session = record.session.as_deref().unwrap_or_default();
        let body = self.bodies.read(record, storage)?;
        if record.kind == Kind::Event {
            // A lookup first, because the entry nearly always exists.
            if !self.open.contains_key(session) {
                self.open.insert(session.into(), VecDeque::new());
            }
            let Some(open) = self.open.get_mut(session) else { return Ok(Vec::new()) };
            open.push_back(emission(record, &body));
            return Ok(overflowing(open).into_iter().map(AssembledEntry::from).collect());
        }
        let is_of_emission = !matches!(record.kind, Kind::Seal | Kind::PolicyChange | Kind::Gap | Kind::Breach);
        if is_of_emission
            && let Some(open) = self.open.get_mut(session)
            && join(open, record, &body)
        {
            return Ok(Vec::new());
        }
        // The seal is the last record of a session.
        let ended = if record.kind == Kind::Seal { self.open.remove(session) } else { None };
        let before = ended.into_iter().flatten().map(AssembledEntry::from);
        Ok(before.chain([AssembledEntry::Unassigned(unassigned(record, &body))]).collect())
    }

    /// Returns the remaining emissions after the last record.
    pub fn finish(self) -> Vec<RecordedEmission> {
        let mut left: Vec<_> = self.open.into_values().flatten().collect();
        left.sort_unstable_by_key(|emission| emission.seq);
        left
    }
}

impl From<RecordedEmission> for AssembledEntry {
    fn from(emission: RecordedEmission) -> Self {
        Self::Emission(Box::new(emission))
    }
}

/// Removes the oldest emissions if there are too many. One that waits for an approval delays those after it, so that the order stays.
fn overflowing(open: &mut VecDeque<RecordedEmission>) -> Vec<RecordedEmission> {
    let is_waiting = |emission: &RecordedEmission| emission.report.approvals.iter().any(|one| one.decision.is_none());
    let mut over = Vec::new();
    while let Some(first) = open.front() {
        let most = if is_waiting(first) { MOST_WAITING } else { MOST_OPEN };
        if open.len() <= most {
            break;
        }
        over.extend(open.pop_front());
    }
    over
}

fn emission(record: &Record<'_>, body: &Body<'_>) -> RecordedEmission {
    let mut report = EmissionReport {
        event: record.event.as_deref().unwrap_or_default().to_owned(),
        data_status: DataStatus::Withheld,
        ..EmissionReport::default()
    };
    let entry = |text: &str| match record.entry(text) {
        Ok(Some(AuditEntry::Event(event))) => Some(event),
        _ => None,
    };
    let event = match body {
        Body::Whole(text) => entry(text),
        // If the first messages of a model request were erased, the line still has the decision.
        Body::Erased { .. } => entry(record.body.get()),
        Body::Withheld { .. } => None,
    };
    if matches!(body, Body::Erased { .. }) {
        report.data_status = DataStatus::Erased;
    } else if let Some(EventEntry { data, .. }) = &event {
        report.data = data.to_map();
        report.data_status = match (&report.data, data) {
            (None, _) => DataStatus::Withheld,
            (Some(_), RecordedData::Text(text)) if has_marker(text.get()) => DataStatus::Redacted,
            (Some(_), _) => DataStatus::Whole,
        };
    }
    if let Some(EventEntry { decision, denied_by, reason, .. }) = event {
        (report.decision, report.denied_by, report.reason) = (Some(decision), denied_by, reason);
    }
    RecordedEmission {
        seq: record.seq,
        time: record.time.to_string(),
        session: record.session.as_deref().map(str::to_owned),
        run: record.writer.to_string(),
        turn: record.turn,
        report,
    }
}

/// Adds a record to its emission; returns `false` if that is not open.
fn join(open: &mut VecDeque<RecordedEmission>, record: &Record<'_>, body: &Body<'_>) -> bool {
    let event = record.event.as_deref().unwrap_or_default();
    let mut of_event = open.iter_mut().filter(|emission| emission.report.event == event);
    let Body::Whole(text) = body else {
        return add(of_event.next_back(), |report| report.unreadable += 1);
    };
    let Ok(Some(entry)) = record.entry(text) else { return false };
    match entry {
        AuditEntry::HookReport(one) => add(of_event.next_back(), |report| report.hooks.push(one.into())),
        AuditEntry::Injection(one) => add(of_event.next_back(), |report| report.injections.push(one.into())),
        AuditEntry::Message(one) => add(of_event.next_back(), |report| report.messages.push(one.into())),
        AuditEntry::Failure(one) => add(of_event.next_back(), |report| report.failures.push(one)),
        AuditEntry::Outcome(result) => add(of_event.next_back(), |report| report.result = Some(result)),
        AuditEntry::Intent(intent) => {
            let call = intent.tool_call_id;
            let is_call = |report: &EmissionReport| {
                let id = report.data.as_ref().and_then(|data| data.get("tool_call_id")?.as_str());
                report.intent.is_none() && id == call.as_deref()
            };
            let Some(emission) = of_event.rfind(|emission| is_call(&emission.report)) else { return false };
            let digest = record.digest.as_deref().and_then(|digest| digest.parse().ok());
            let intent = IntentReport { seq: record.seq, digest, tool_call_id: call, unresolved: false };
            emission.report.intent = Some(intent);
            true
        }
        AuditEntry::ApprovalRequest(request) => {
            let Some(emission) = of_event.find(|emission| requests(&emission.report, &request.hook)) else {
                return false;
            };
            let request = requested(request, record);
            emission.report.approvals.push(request);
            true
        }
        AuditEntry::ApprovalDecision(decided) => decide(open, decided, record),
        AuditEntry::LateAnswer(late) => {
            let mut approvals = of_event.flat_map(|emission| &mut emission.report.approvals);
            let Some(approval) = approvals.find(|approval| number(approval) == Some(late.id)) else { return false };
            approval.late_answers.push(ApprovalAnswer { by: late.by, ..late.answer.into() });
            true
        }
        AuditEntry::Event(_) => false,
    }
}

fn add(emission: Option<&mut RecordedEmission>, add: impl FnOnce(&mut EmissionReport)) -> bool {
    emission.map(|emission| add(&mut emission.report)).is_some()
}

/// Returns `true` if the hook requested more approvals than the records so far contain.
fn requests(report: &EmissionReport, hook: &str) -> bool {
    let wanted = report.answered(ActionKind::AskUser).filter(|asking| *asking == hook).count();
    wanted > report.approvals.iter().filter(|approval| approval.hook == hook).count()
}

fn requested(request: ApprovalRequestEntry, record: &Record<'_>) -> ApprovalReport {
    let session = record.session.as_deref().unwrap_or_default();
    ApprovalReport {
        hook: request.hook,
        id: Some(format!("{session}.{}.{}", record.writer, request.id)),
        prompt: Some(request.prompt),
        options: request.options,
        timeout_s: Some(request.timeout.as_secs_f64()),
        default: Some(request.default),
        digest: Some(request.digest),
        changed_after_asking: request.changed_after_asking,
        compared_with: request.compared_with,
        created_at: Some(record.time.to_string()),
        ..ApprovalReport::default()
    }
}

fn number(approval: &ApprovalReport) -> Option<u64> {
    approval.id.as_deref()?.rsplit('.').next()?.parse().ok()
}

fn decide(open: &mut VecDeque<RecordedEmission>, decided: ApprovalDecisionEntry, record: &Record<'_>) -> bool {
    let event = record.event.as_deref().unwrap_or_default();
    let ApprovalDecisionEntry { id, hook, prompt, decision } = decided;
    let mut reports = open.iter_mut().map(|emission| &mut emission.report).filter(|report| report.event == event);
    let approval = match id {
        Some(id) => {
            let mut approvals = reports.flat_map(|report| &mut report.approvals);
            approvals.find(|approval| number(approval) == Some(id) && approval.hook == hook)
        }
        None => reports.find(|report| requests(report, &hook)).and_then(|report| {
            report.approvals.push(ApprovalReport { hook, prompt, ..ApprovalReport::default() });
            report.approvals.last_mut()
        }),
    };
    let Some(approval) = approval else { return false };
    approval.waited_ms = approval.created_at.as_deref().and_then(|created| milliseconds(created, &record.time));
    approval.decided_at = Some(record.time.to_string());
    approval.decided_seq = Some(record.seq);
    approval.decision = Some(decision);
    true
}

fn milliseconds(from: &str, to: &str) -> Option<u64> {
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    u64::try_from(time(to)?.duration_since(time(from)?).as_millis()).ok()
}

fn unassigned(record: &Record<'_>, body: &Body<'_>) -> UnassignedRecord {
    let text = match body {
        Body::Whole(text) => text,
        Body::Erased { .. } | Body::Withheld { .. } => record.body.get(),
    };
    UnassignedRecord {
        seq: record.seq,
        time: record.time.to_string(),
        session: record.session.as_deref().map(str::to_owned),
        turn: record.turn,
        event: record.event.as_deref().map(str::to_owned),
        kind: record.kind,
        body: serde_json::from_str(text).unwrap_or_default(),
    }
}
