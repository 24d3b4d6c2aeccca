//! Decisions on approval requests, read from the log.

use amplifier_audit::{Body, Kind, Record, RecordFilter, RecordSource};
use amplifier_core::{ApprovalDecisionEntry, ApprovalRequestEntry, AuditEntry, EventName};
use amplifier_link::{ApprovalId, DecidedApproval};
use std::ops::ControlFlow;

use super::index::{Block, Index, Position};
use super::query::{CompiledFilter, Files};
use super::{FeedError, FeedState};

/// A decision on an approval request, with the context of its record.
#[derive(Clone, Debug)]
pub(crate) struct PastDecision {
    pub(crate) decided: DecidedApproval,
    /// Number of the request in the session.
    pub(crate) number: u64,
    pub(crate) event: EventName,
    pub(crate) turn: u64,
    /// Labels of the options, if known.
    pub(crate) options: Option<Vec<String>>,
}

impl FeedState {
    /// Returns decisions, the newest first.
    pub(super) fn decisions(
        &self,
        session: Option<&str>,
        hook: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DecidedApproval>, FeedError> {
        let positions: Vec<(Position, Option<Block>, Option<Block>)> = {
            let index = self.index();
            let (session, hook) = (session.map(|name| index.hash(name)), hook.map(|name| index.hash(name)));
            let block = |seq: u64| block_of(&index, seq);
            let fits = |decision: &&Position| {
                before.is_none_or(|before| decision.seq < before)
                    && session.is_none_or(|session| decision.session == session)
                    && hook.is_none_or(|hook| decision.hook == hook)
            };
            let newest = index.decisions.iter().rev().filter(fits).take(limit);
            newest.map(|decision| (*decision, block(decision.seq), decision.asked.and_then(block))).collect()
        };
        let mut files = Files::new(&*self.source);
        let mut decided = Vec::new();
        for (position, block, asked) in positions {
            let Some(block) = block else { continue };
            let asked = self.read_request(&mut files, position, asked)?.map(|(request, at)| (request.prompt, at));
            decided.extend(files.record(&block, position.seq, |record| decision(record, asked, &*self.source))?);
        }
        // Hashes can collide, names cannot.
        decided.retain(|one| {
            session.is_none_or(|session| one.session == session) && hook.is_none_or(|hook| one.hook == hook)
        });
        Ok(decided)
    }

    /// Returns the decision on the request with this id, `SESSION.RUN.N`.
    pub(super) fn find_decision(&self, id: &str) -> Result<Option<PastDecision>, FeedError> {
        let Some((run_of, text)) = id.rsplit_once('.') else { return Ok(None) };
        let Some((session, run)) = run_of.rsplit_once('.') else { return Ok(None) };
        // Only the canonical form of a number is valid.
        let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
        let Some(number) = number else { return Ok(None) };
        let (known, has_all) = {
            let index = self.index();
            let found = index.decision_of(session, run, number).map(|position| {
                (position, block_of(&index, position.seq), position.asked.and_then(|seq| block_of(&index, seq)))
            });
            (found, index.has_all_decisions())
        };
        let found = match known {
            Some(found) => Some(found),
            None if has_all => None,
            None => self.search_log(session, run, number)?,
        };
        let Some((position, Some(block), asked)) = found else { return Ok(None) };
        let mut files = Files::new(&*self.source);
        let asked = self.read_request(&mut files, position, asked)?;
        let options =
            asked.as_ref().map(|(request, _)| request.options.iter().map(|option| option.label.clone()).collect());
        let asked = asked.map(|(request, at)| (request.prompt, at));
        let past = files.record(&block, position.seq, |record| {
            let event = record.event.as_deref()?.parse().ok()?;
            let decided = decision(record, asked, &*self.source)?;
            Some(PastDecision { decided, number, event, turn: record.turn.unwrap_or_default(), options })
        })?;
        Ok(past)
    }

    /// Searches the log for a decision that is older than the index.
    #[allow(clippy::type_complexity, reason = "it is what the index knows about one")]
    fn search_log(
        &self,
        session: &str,
        run: &str,
        number: u64,
    ) -> Result<Option<(Position, Option<Block>, Option<Block>)>, FeedError> {
        let filter = RecordFilter {
            session: Some(session.to_owned()),
            kinds: vec![Kind::ApprovalDecision],
            ..RecordFilter::default()
        };
        let (ready, mut at, end) = {
            let index = self.index();
            (CompiledFilter::new(&filter, &index), index.first(), index.cursor)
        };
        let mut last = None;
        while at < end {
            let read = self.scan(&ready, at, |record| {
                let body = read_decision(record, &*self.source).filter(|_| record.writer == run);
                if body.is_some_and(|body| body.id == Some(number)) {
                    last = Some(record.seq);
                }
                ControlFlow::Continue(())
            })?;
            match read {
                Some(to) if to > at => at = to,
                _ => break,
            }
        }
        let Some(seq) = last else { return Ok(None) };
        let index = self.index();
        let (session, run) = (index.hash(session), index.hash(run));
        let position = Position { seq, asked: None, number: Some(number), session, run, hook: 0 };
        Ok(Some((position, block_of(&index, seq), None)))
    }

    /// Returns the request before a decision, and its time.
    fn read_request(
        &self,
        files: &mut Files<'_>,
        position: Position,
        block: Option<Block>,
    ) -> Result<Option<(ApprovalRequestEntry, String)>, FeedError> {
        let (Some(seq), Some(block)) = (position.asked, block) else { return Ok(None) };
        files.record(&block, seq, |record| Some((read_request_entry(record, &*self.source)?, record.time.to_string())))
    }
}

fn block_of(index: &Index, seq: u64) -> Option<Block> {
    let after = index.blocks.partition_point(|block| block.seq <= seq);
    after.checked_sub(1).and_then(|at| index.blocks.get(at)).copied()
}

fn decision(
    record: &Record<'_>,
    asked: Option<(String, String)>,
    source: &dyn RecordSource,
) -> Option<DecidedApproval> {
    let ApprovalDecisionEntry { id, hook, prompt, decision } = read_decision(record, source)?;
    let session = record.session.as_deref().unwrap_or_default().to_owned();
    let (prompt, created_at) = asked.map_or((prompt.unwrap_or_default(), None), |(prompt, at)| (prompt, Some(at)));
    Some(DecidedApproval {
        id: id.map(|id| ApprovalId::new(session.as_str(), &*record.writer, id)),
        session,
        hook,
        event: record.event.as_deref().unwrap_or_default().to_owned(),
        prompt,
        decision,
        created_at,
        decided_at: record.time.to_string(),
        seq: record.seq,
    })
}

fn read_request_entry(record: &Record<'_>, source: &dyn RecordSource) -> Option<ApprovalRequestEntry> {
    match read_entry(record, source)? {
        AuditEntry::ApprovalRequest(request) => Some(request),
        _ => None,
    }
}

fn read_decision(record: &Record<'_>, source: &dyn RecordSource) -> Option<ApprovalDecisionEntry> {
    match read_entry(record, source)? {
        AuditEntry::ApprovalDecision(decided) => Some(decided),
        _ => None,
    }
}

fn read_entry(record: &Record<'_>, source: &dyn RecordSource) -> Option<AuditEntry> {
    match record.whole_body(source).ok()? {
        Body::Whole(text) => record.entry(&text).ok()?,
        Body::Erased { .. } | Body::Withheld { .. } => None,
    }
}
