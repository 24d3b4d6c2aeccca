//! The timeline of a session: its events, each with the report of its emission.

use std::borrow::Cow;
use std::ops::ControlFlow;

use amplifier_audit::{AssembledEntry, EmissionAssembler, Kind, RecordFilter, UnassignedRecord};
use amplifier_core::text::truncate_bytes;
use amplifier_core::{EmissionReport, RecordedEmission};
use serde_json::Value;

use super::query::CompiledFilter;
use super::views::{Timeline, TimelineItem};
use super::{FeedError, FeedState};

/// Limit of a text, in bytes.
const LONGEST: usize = 4 << 10;

/// Limit of a list.
const MOST: usize = 200;

impl FeedState {
    /// Returns items from this record on.
    pub(super) fn timeline(&self, session: &str, after: u64, limit: usize) -> Result<Timeline, FeedError> {
        let filter = RecordFilter { session: Some(session.to_owned()), ..RecordFilter::default() };
        let (ready, end, unresolved) = {
            let index = self.index();
            (CompiledFilter::new(&filter, &index), index.cursor, index.operations.unresolved())
        };
        let mut assembler = EmissionAssembler::new();
        let mut items = Vec::new();
        let mut problem = None;
        let mut from = after;
        // A scan stops after much was read; open emissions continue with the next scan.
        loop {
            let read_to = self.scan(&ready, from, |record| match assembler.push(record, &*self.source) {
                Ok(entries) => {
                    items.extend(entries.into_iter().filter_map(item));
                    if items.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
                Err(error) => {
                    problem = Some(error);
                    ControlFlow::Break(())
                }
            })?;
            match read_to {
                Some(at) if at > from && at < end => from = at,
                _ => break,
            }
        }
        if let Some(error) = problem {
            return Err(error.into());
        }
        items.sort_by_key(|item: &TimelineItem| item.emission.seq);
        let mut cursor = end;
        if items.len() < limit {
            let open = assembler.finish();
            // An open emission may change, so it is returned again.
            cursor = open.first().map_or(end, |emission| emission.seq);
            items.extend(open.into_iter().map(event));
        }
        if items.len() >= limit {
            // There may be more items: open emissions are returned again only at the end.
            items.truncate(limit);
            cursor = items.last().map_or(end, |item| item.emission.seq + 1);
        }
        for intent in items.iter_mut().filter_map(|item| item.emission.report.intent.as_mut()) {
            intent.unresolved = unresolved.contains(&intent.seq);
        }
        Ok(Timeline { items, cursor })
    }
}

fn item(entry: AssembledEntry) -> Option<TimelineItem> {
    match entry {
        AssembledEntry::Emission(emission) => Some(event(*emission)),
        // A record whose emission began before the page is skipped.
        AssembledEntry::Unassigned(record) if matches!(record.kind, Kind::Seal | Kind::Gap) => Some(alone(record)),
        AssembledEntry::Unassigned(_) => None,
    }
}

fn event(mut emission: RecordedEmission) -> TimelineItem {
    let denied = emission.report.is_denied();
    let truncated = shorten(&mut emission.report);
    TimelineItem { kind: Kind::Event, denied, truncated, emission }
}

fn alone(UnassignedRecord { seq, time, session, turn, kind, body, .. }: UnassignedRecord) -> TimelineItem {
    let data = match body {
        Value::Object(fields) => Some(fields),
        _ => None,
    };
    let report = EmissionReport { event: kind.as_str().to_owned(), data, ..EmissionReport::default() };
    let emission = RecordedEmission { seq, time, session, turn, report, ..RecordedEmission::default() };
    TimelineItem { kind, ..event(emission) }
}

/// Shortens long texts and lists; returns `true` if there were some.
fn shorten(report: &mut EmissionReport) -> bool {
    let mut truncated = false;
    if let Some(data) = &mut report.data {
        data.values_mut().for_each(|value| shorten_value(value, &mut truncated));
    }
    let hooks = report.hooks.iter_mut().flat_map(|one| one.reason.iter_mut().chain(&mut one.error));
    let approvals = report.approvals.iter_mut().flat_map(|one| {
        let labels = one.options.iter_mut().map(|option| &mut option.label);
        let late = one.late_answers.iter_mut().map(|answer| &mut answer.label);
        let decision = one.decision.iter_mut();
        let decision = decision.flat_map(|decision| [&mut decision.reason].into_iter().chain(&mut decision.operations));
        one.prompt.iter_mut().chain(labels).chain(late).chain(decision)
    });
    let texts = report.reason.iter_mut().chain(hooks).chain(approvals);
    let texts = texts.chain(report.injections.iter_mut().map(|one| &mut one.text));
    let texts = texts.chain(report.messages.iter_mut().map(|one| &mut one.text));
    texts
        .chain(report.failures.iter_mut().map(|one| &mut one.error))
        .for_each(|text| shorten_text(text, &mut truncated));
    truncated
}

fn shorten_value(value: &mut Value, truncated: &mut bool) {
    match value {
        Value::String(text) => shorten_text(text, truncated),
        Value::Array(list) => {
            *truncated |= list.len() > MOST;
            list.truncate(MOST);
            list.iter_mut().for_each(|value| shorten_value(value, truncated));
        }
        Value::Object(map) => map.values_mut().for_each(|value| shorten_value(value, truncated)),
        _ => {}
    }
}

fn shorten_text(text: &mut String, truncated: &mut bool) {
    if let Cow::Owned(short) = truncate_bytes(text, LONGEST) {
        (*text, *truncated) = (short, true);
    }
}
