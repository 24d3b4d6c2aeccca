//! Puts the records of each emission together, while they go by.

use std::collections::{HashMap, VecDeque};

use amplifier_core::Answerer;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::bodies::Bodies;
use crate::body::Body;
use crate::emission::{Kept, RecordedApproval, RecordedEmission, RecordedIntent, StrayRecord};
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

#[derive(Deserialize)]
struct EventBody<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    decision: String,
    denied_by: Option<String>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Request {
    id: u64,
    hook: String,
    prompt: String,
}

#[derive(Deserialize)]
struct Decided {
    id: Option<u64>,
    hook: String,
    granted: bool,
    basis: String,
    reason: String,
    by: Option<Answerer>,
}

#[derive(Deserialize)]
struct Late {
    id: u64,
    answer: String,
}

#[derive(Deserialize)]
struct Call {
    tool_call_id: Option<String>,
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
    match body {
        Body::Whole(text) => {
            if let Ok(EventBody { data, decision, denied_by, reason }) = serde_json::from_str(text) {
                emission.data = serde_json::from_str::<Map<String, Value>>(data.get()).ok();
                emission.decision = Some(decision);
                emission.denied_by = denied_by;
                emission.reason = reason;
                emission.kept = match emission.data {
                    None => Kept::Withheld,
                    Some(_) if has_marker(data.get()) => Kept::Redacted,
                    Some(_) => Kept::Whole,
                };
            }
        }
        Body::Erased { .. } => {
            emission.kept = Kept::Erased;
            // Of a request whose first messages were erased, the line still has what was decided.
            if let Ok(EventBody { decision, denied_by, reason, .. }) = serde_json::from_str(record.body.get()) {
                (emission.decision, emission.denied_by, emission.reason) = (Some(decision), denied_by, reason);
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
    match record.kind {
        Kind::HookReport => add(of_event.next_back(), text, |emission, report| emission.hooks.push(report)),
        Kind::Injection => add(of_event.next_back(), text, |emission, told| emission.injections.push(told)),
        Kind::Message => add(of_event.next_back(), text, |emission, told| emission.messages.push(told)),
        Kind::Failure => add(of_event.next_back(), text, |emission, failure| emission.failures.push(failure)),
        Kind::Outcome => add(of_event.next_back(), text, |emission, outcome| emission.outcome = Some(outcome)),
        Kind::Intent => {
            let Some(Call { tool_call_id }) = read(text) else { return false };
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
        Kind::ApprovalRequest => {
            let Some(Request { id, hook, prompt }) = read(text) else { return false };
            let Some(emission) = of_event.find(|emission| asks(emission, &hook)) else { return false };
            let asked = Some(record.time.to_string());
            let asked = RecordedApproval { hook, id: Some(id), prompt: Some(prompt), asked, ..Default::default() };
            emission.approvals.push(asked);
            true
        }
        Kind::ApprovalDecision => read(text).is_some_and(|decided| decide(open, decided, record)),
        Kind::LateAnswer => {
            let Some(Late { id, answer }) = read(text) else { return false };
            let mut approvals = of_event.flat_map(|emission| &mut emission.approvals);
            let approval = approvals.find(|approval| approval.id == Some(id));
            approval.map(|approval| approval.late_answer = Some(answer)).is_some()
        }
        _ => false,
    }
}

/// Whether the hook wants to have something allowed there that nobody was asked about so far.
fn asks(emission: &RecordedEmission, hook: &str) -> bool {
    let wanted = emission.answered("ask_user").filter(|asking| *asking == hook).count();
    wanted > emission.approvals.iter().filter(|approval| approval.hook == hook).count()
}

fn decide(open: &mut VecDeque<RecordedEmission>, decided: Decided, record: &Record<'_>) -> bool {
    let event = record.event.as_deref().unwrap_or_default();
    let Decided { id, hook, granted, basis, reason, by } = decided;
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

fn add<T: DeserializeOwned>(
    emission: Option<&mut RecordedEmission>,
    text: &str,
    add: impl FnOnce(&mut RecordedEmission, T),
) -> bool {
    let Some((emission, said)) = emission.zip(read(text)) else { return false };
    add(emission, said);
    true
}

fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
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
        body: read(text).unwrap_or_default(),
    }
}
