//! Index of the records: positions, sessions, hooks and decisions.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use amplifier_audit::{Body, DecisionCounts, Kind, Operations, Record, RecordSource, RecordedDecision};
use amplifier_core::{AuditEntry, DecisionKind};
use serde::Deserialize;

use super::activity::HourlyCounts;
use super::hooks::Hooks;
use super::summary::{SessionSummary, describes_session};
use super::views::SessionFacts;

/// Limits of a block in records and bytes.
const BLOCK_RECORDS: u32 = 256;
const BLOCK_BYTES: u64 = 256 << 10;

/// Limit of indexed sessions; the least recently active are dropped in batches.
const MOST_SESSIONS: usize = 2000;
const FORGOTTEN_AT_ONCE: usize = 200;

/// Limits of indexed decisions, and of requests without one.
const MOST_DECISIONS: usize = 200_000;
const MOST_ASKED: usize = 50_000;

/// Limit of operations without a result.
const MOST_UNRESOLVED: usize = 50_000;
/// Limit of nested sub-agents.
const DEEPEST: usize = 64;

/// Limit of events counted by name.
const MOST_EVENTS: usize = 128;

/// Limit in bytes of new records held in memory.
const RECENT_BYTES: usize = 8 << 20;

/// Consecutive records of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) seq: u64,
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) end: u64,
    /// Difference between index numbers and record numbers; zero in a sound log.
    behind: u64,
    records: u32,
    /// Minute of the first record, since 1970. A hint: clocks may be set.
    pub(super) minute: u64,
    /// Bit set of the kinds.
    kinds: u32,
    /// Bloom filter of the sessions: two bits for each, by hash.
    sessions: [u64; 4],
}

/// Position of a decision and of its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) seq: u64,
    pub(super) asked: Option<u64>,
    /// Number of the request in its session; `None` if no request was sent.
    pub(super) number: Option<u64>,
    pub(super) session: u64,
    /// Hash of the writer: the run of the session.
    pub(super) run: u64,
    pub(super) hook: u64,
}

/// A new record, with the JSON that is sent.
#[derive(Debug)]
pub(super) struct RecentRecord {
    pub(super) seq: u64,
    pub(super) line: Arc<str>,
    pub(super) json: Arc<str>,
}

#[derive(Default)]
pub(super) struct Index {
    /// Log id; empty without a log.
    pub(super) log: String,
    pub(super) cursor: u64,
    pub(super) blocks: VecDeque<Block>,
    pub(super) hooks: Hooks,
    pub(super) decisions: VecDeque<Position>,
    /// Number of records by event; the rest under `(others)`.
    pub(super) events: HashMap<Box<str>, u64>,
    pub(super) decided: DecisionCounts,
    pub(super) operations: Operations,
    pub(super) unreadable: u64,
    pub(super) activity: HourlyCounts,
    sessions: HashMap<Arc<str>, IndexedSession>,
    open_requests: HashMap<(Arc<str>, u64), u64>,
    recent: VecDeque<RecentRecord>,
    recent_bytes: usize,
    hasher: std::hash::RandomState,
}

struct IndexedSession {
    facts: SessionSummary,
    hooks: Hooks,
}

impl Block {
    /// Parses a record of the block, with its index number.
    pub(super) fn record<'a>(&self, line: &'a [u8]) -> Option<Record<'a>> {
        let mut record = Record::parse(line).ok()?;
        record.seq += self.behind;
        Some(record)
    }

    /// Returns `true` if the block may contain records of the session (by hash) and of one of the kinds.
    pub(super) fn may_have(&self, session: Option<u64>, kinds: u32) -> bool {
        self.kinds & kinds != 0
            && session.is_none_or(|hash| bloom_bits(hash).into_iter().all(|(word, bit)| self.sessions[word] & bit != 0))
    }
}

fn bloom_bits(hash: u64) -> [(usize, u64); 2] {
    [hash & 0xff, (hash >> 8) & 0xff].map(|place| ((place >> 6) as usize, 1 << (place & 63)))
}

pub(super) fn kind_bit(kind: Kind) -> u32 {
    1 << (kind as u32)
}

impl Index {
    /// Returns the hash of a name, as used in blocks and positions.
    pub(super) fn hash(&self, name: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    pub(super) fn first(&self) -> u64 {
        self.blocks.front().map_or(self.cursor, |block| block.seq)
    }

    /// Adds a record; returns `false` if its number is out of order. Large bodies are read from `storage` where they
    /// matter.
    pub(super) fn add(
        &mut self,
        record: &Record<'_>,
        offset: u64,
        end: u64,
        behind: u64,
        storage: &dyn RecordSource,
    ) -> bool {
        // Records out of order are skipped; the verification reports them.
        if record.seq < self.cursor {
            self.unreadable += 1;
            return false;
        }
        self.cursor = record.seq + 1;
        if self.log.is_empty() {
            self.log = record.log.to_string();
        }
        let hash = record.session.as_deref().map(|session| self.hash(session));
        let block = match self.blocks.back_mut() {
            Some(block)
                if block.segment == record.seg
                    && block.records < BLOCK_RECORDS
                    && offset - block.offset < BLOCK_BYTES =>
            {
                block
            }
            _ => {
                let (seq, segment) = (record.seq, record.seg);
                self.blocks.push_back(Block {
                    seq,
                    segment,
                    offset,
                    end,
                    behind,
                    records: 0,
                    kinds: 0,
                    minute: minute(&record.time),
                    sessions: [0; 4],
                });
                let last = self.blocks.len() - 1;
                &mut self.blocks[last]
            }
        };
        block.end = end;
        block.records += 1;
        block.kinds |= kind_bit(record.kind);
        if let Some(hash) = hash {
            bloom_bits(hash).into_iter().for_each(|(word, bit)| block.sessions[word] |= bit);
        }
        self.operations.observe(record);
        self.operations.limit(MOST_UNRESOLVED);
        if let Some(id) = record.session.as_deref() {
            let id = self.session_of(id, record);
            self.count(&id, record, storage);
        }
        true
    }

    pub(super) fn add_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Holds a new record in memory for clients.
    pub(super) fn add_recent(&mut self, seq: u64, line: &str, json: String) {
        if self.recent.back().is_some_and(|last| last.seq + 1 != seq) {
            self.clear_recent();
        }
        self.recent_bytes += line.len() + json.len();
        self.recent.push_back(RecentRecord { seq, line: line.into(), json: json.into() });
        while self.recent_bytes > RECENT_BYTES
            && let Some(oldest) = self.recent.pop_front()
        {
            self.recent_bytes -= oldest.line.len() + oldest.json.len();
        }
    }

    /// Drops the records in memory, after many arrived at once: clients read them from the log.
    pub(super) fn clear_recent(&mut self) {
        self.recent.clear();
        self.recent_bytes = 0;
    }

    /// Returns the records from this number on, if all are in memory.
    pub(super) fn recent_from(&self, seq: u64) -> Option<impl Iterator<Item = &RecentRecord>> {
        let first = self.recent.front().filter(|first| first.seq <= seq)?.seq;
        Some(self.recent.iter().skip((seq - first) as usize))
    }

    pub(super) fn remove_before(&mut self, segment: u64) {
        while self.blocks.front().is_some_and(|block| block.segment < segment) {
            self.blocks.pop_front();
        }
        let first = self.first();
        while self.decisions.front().is_some_and(|decision| decision.seq < first) {
            self.decisions.pop_front();
        }
    }

    pub(super) fn sessions(&self) -> Vec<SessionFacts> {
        let listed = self.sessions.iter().filter(|(_, session)| !session.facts.is_canary);
        let mut sessions: Vec<SessionFacts> =
            listed.map(|(id, session)| self.session_facts(id, &session.facts)).collect();
        sessions.sort_unstable_by_key(|session| std::cmp::Reverse(session.last_seq));
        sessions
    }

    pub(super) fn session(&self, id: &str) -> Option<SessionFacts> {
        self.sessions.get(id).map(|session| self.session_facts(id, &session.facts))
    }

    fn session_facts(&self, id: &str, facts: &SessionSummary) -> SessionFacts {
        let within = self.delegator(facts);
        let outer = within.and_then(|id| self.sessions.get(id)).map(|one| &one.facts);
        let is_served = outer.map_or(facts.is_served, |outer| outer.is_served);
        let client = facts.client.as_ref().or_else(|| outer?.client.as_ref()).cloned();
        SessionFacts { within: within.map(str::to_owned), is_served, client, ..facts.to_facts(id) }
    }

    /// Returns the outermost session of a chain of delegations.
    fn delegator<'a>(&'a self, facts: &'a SessionSummary) -> Option<&'a str> {
        let mut outermost = facts.delegated_by.as_deref()?;
        // Limited, because an invalid log could contain a cycle.
        for _ in 0..DEEPEST {
            let Some(next) = self.sessions.get(outermost).and_then(|one| one.facts.delegated_by.as_deref()) else {
                break;
            };
            outermost = next;
        }
        Some(outermost)
    }

    /// Returns the ids of the indexed sessions.
    pub(super) fn session_ids(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().map(|id| &**id)
    }

    /// Returns sessions with records from this number on, the least recently active first.
    pub(super) fn sessions_from(&self, seq: u64, most: usize) -> Vec<SessionFacts> {
        let mut active: Vec<(u64, &Arc<str>)> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.facts.last_seq >= seq && !session.facts.is_canary)
            .map(|(id, session)| (session.facts.last_seq, id))
            .collect();
        active.sort_unstable();
        active.truncate(most);
        active.into_iter().filter_map(|(_, id)| self.session(id)).collect()
    }

    /// Returns the position of the decision on a request of a run.
    pub(super) fn decision_of(&self, session: &str, run: &str, number: u64) -> Option<Position> {
        let (session, run) = (self.hash(session), self.hash(run));
        let fits = |one: &&Position| one.number == Some(number) && one.run == run && one.session == session;
        self.decisions.iter().rev().find(fits).copied()
    }

    /// Returns `true` if the index contains all decisions.
    pub(super) fn has_all_decisions(&self) -> bool {
        self.decisions.len() < MOST_DECISIONS
    }

    /// Returns `true` if a late answer follows the session's seal, so that the session must be sealed again.
    pub(super) fn is_reopened(&self, session: &str) -> bool {
        self.sessions.get(session).is_some_and(|session| session.facts.is_reopened)
    }

    pub(super) fn hooks_of(&self, session: &str) -> Option<&Hooks> {
        self.sessions.get(session).map(|session| &session.hooks)
    }

    fn session_of(&mut self, id: &str, record: &Record<'_>) -> Arc<str> {
        let id = match self.sessions.get_key_value(id) {
            Some((id, _)) => id.clone(),
            None => {
                if self.sessions.len() >= MOST_SESSIONS + FORGOTTEN_AT_ONCE {
                    self.forget_sessions();
                }
                let id: Arc<str> = id.into();
                let facts = SessionSummary { started_at: record.time.to_string(), ..SessionSummary::default() };
                self.sessions.insert(id.clone(), IndexedSession { facts, hooks: Hooks::default() });
                id
            }
        };
        if let Some(IndexedSession { facts, .. }) = self.sessions.get_mut(&id) {
            facts.last_seq = record.seq;
            match record.kind {
                // A late answer does not mean that the session is active.
                Kind::LateAnswer => facts.is_reopened |= facts.is_sealed,
                kind => {
                    (facts.is_sealed, facts.is_reopened) = (kind == Kind::Seal, false);
                    facts.updated_at.clear();
                    facts.updated_at.push_str(&record.time);
                }
            }
            facts.turns = facts.turns.max(record.turn.unwrap_or(0));
        }
        id
    }

    fn forget_sessions(&mut self) {
        let mut last: Vec<u64> = self.sessions.values().map(|session| session.facts.last_seq).collect();
        let (_, bound, _) = last.select_nth_unstable(FORGOTTEN_AT_ONCE);
        let bound = *bound;
        self.sessions.retain(|_, session| session.facts.last_seq >= bound);
    }

    fn count(&mut self, id: &Arc<str>, record: &Record<'_>, storage: &dyn RecordSource) {
        let event = record.event.as_deref().unwrap_or_default();
        let text = record.body.get();
        let Some(IndexedSession { facts, hooks }) = self.sessions.get_mut(id) else { return };
        if facts.is_canary && event != "session:start" {
            return;
        }
        let decision = decision(record, storage);
        decision.into_iter().for_each(|decision| self.decided.count(decision));
        let is_denied = decision.is_some_and(RecordedDecision::is_denial);
        facts.denials += u64::from(is_denied);
        let minute = minute(&record.time);
        let hour = self.activity.hour(minute);
        if is_denied {
            hour.deny(entry(record, storage).as_ref().and_then(denied_by));
        }
        match record.kind {
            Kind::Event => {
                let known = self.events.len() < MOST_EVENTS || self.events.contains_key(event);
                let name = if known { event } else { "(others)" };
                match self.events.get_mut(name) {
                    Some(count) => *count += 1,
                    None => _ = self.events.insert(name.into(), 1),
                }
                let is_call = event == "tool:pre";
                facts.tool_calls += u64::from(is_call);
                let data = match describes_session(event).then(|| entry(record, storage)).flatten() {
                    Some(AuditEntry::Event(event)) => event.data.read(),
                    _ => None,
                };
                let tokens = facts.tokens;
                facts.apply_event(event, data, is_denied);
                let counts = &mut hour.counts;
                counts.sessions += u64::from(event == "session:start" && !facts.is_canary);
                counts.prompts += u64::from(event == "prompt:submit");
                counts.tool_calls += u64::from(is_call);
                counts.failed_sessions += u64::from(event == "session:end" && facts.is_failed());
                let used = facts.tokens - tokens;
                counts.tokens = counts.tokens.saturating_add(used);
                if used > 0 {
                    hour.costs.count_call();
                }
            }
            Kind::HookReport => {
                let Some(AuditEntry::HookReport(report)) = entry(record, storage) else { return };
                facts.errors += u64::from(report.error.is_some());
                hour.counts.hook_errors += u64::from(report.error.is_some());
                let cost = (event == "provider:response").then(|| facts.cost.count(&report)).flatten();
                cost.iter().for_each(|cost| hour.costs.add(cost));
                hooks.count(&report, event, minute);
                self.hooks.count(&report, event, minute);
            }
            Kind::ApprovalRequest => {
                let Some(AuditEntry::ApprovalRequest(request)) = entry(record, storage) else { return };
                let number = request.id;
                if self.open_requests.len() >= MOST_ASKED {
                    // The oldest requests without a decision belong to sessions that are gone.
                    let mut seqs: Vec<u64> = self.open_requests.values().copied().collect();
                    let (_, bound, _) = seqs.select_nth_unstable(MOST_ASKED / 2);
                    let bound = *bound;
                    self.open_requests.retain(|_, seq| *seq >= bound);
                }
                self.open_requests.insert((id.clone(), number), record.seq);
            }
            Kind::ApprovalDecision => {
                let Some(AuditEntry::ApprovalDecision(decision)) = entry(record, storage) else { return };
                // A denied prompt has no turn.
                facts.is_running &= !is_denied || event != "prompt:submit";
                let asked = decision.id.and_then(|number| self.open_requests.remove(&(id.clone(), number)));
                let (session, run, hook) = (self.hash(id), self.hash(&record.writer), self.hash(&decision.hook));
                let (seq, number) = (record.seq, decision.id);
                self.decisions.push_back(Position { seq, asked, number, session, run, hook });
                if self.decisions.len() > MOST_DECISIONS {
                    self.decisions.pop_front();
                }
            }
            Kind::Seal => {
                #[derive(Deserialize)]
                struct SealBody {
                    reason: String,
                }
                facts.is_running = false;
                if facts.ended.is_none() {
                    facts.ended =
                        Some(serde_json::from_str(text).map_or_else(|_| String::new(), |seal: SealBody| seal.reason));
                }
            }
            _ => {}
        }
    }
}

/// Returns a record's decision if it may be a denial: large bodies of events that cannot deny are not read.
fn decision(record: &Record<'_>, storage: &dyn RecordSource) -> Option<RecordedDecision> {
    let is_large = record.body.get().starts_with("{\"blob\"");
    let event = record.event.as_deref().filter(|_| is_large && record.kind == Kind::Event);
    if event.is_some_and(|event| !DecisionKind::Deny.denies_at(event)) {
        return None;
    }
    RecordedDecision::read(record, storage).ok().flatten()
}

/// Returns the hook that denied.
fn denied_by(entry: &AuditEntry) -> Option<&str> {
    match entry {
        AuditEntry::Event(event) => event.denied_by.as_deref(),
        AuditEntry::ApprovalDecision(decision) => Some(&*decision.hook),
        _ => None,
    }
}

/// Reads an entry, also from a separate body file.
fn entry(record: &Record<'_>, storage: &dyn RecordSource) -> Option<AuditEntry> {
    match record.whole_body(storage).ok()? {
        Body::Whole(text) => record.entry(&text).ok()?,
        Body::Erased { .. } | Body::Withheld { .. } => None,
    }
}

/// Returns the minutes since 1970 of a record's time.
pub(super) fn minute(time: &str) -> u64 {
    let number = |from: usize, to: usize| time.get(from..to).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    // Years begin in March here, so that a leap day is the last day of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    // 719,469 days lie between the first of March of the year 0, counted as 1, and 1970.
    days.saturating_sub(719_469) * 1440 + number(11, 13) * 60 + number(14, 16)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn minutes_are_those_of_the_calendar() {
        for time in ["1970-01-01T00:00:00.000000Z", "2000-02-29T23:59:01.000000Z", "2026-11-15T21:44:12.999999Z"] {
            let expected = time.parse::<Timestamp>().map(|time| time.as_second() / 60);
            assert_eq!(Some(minute(time) as i64), expected.ok(), "{time}");
        }
    }
}
