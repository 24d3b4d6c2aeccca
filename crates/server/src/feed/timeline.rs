//! The course of a session: its events, each with what the hooks made of it.

use std::borrow::Cow;
use std::ops::ControlFlow;

use amplifier_audit::{Emissions, Kind, Record, RecordFilter, RecordedApproval, RecordedEmission, StrayRecord, Traced};
use amplifier_core::text::truncate_bytes;
use amplifier_core::{ApprovalDecision, DecisionBasis};
use amplifier_link::{ApprovalId, DecidedApproval};
use serde_json::Value;

use super::forms::{Ended, HookSaid, Injected, OpenQuestion, Timeline, TimelineItem, Told};
use super::query::Ready;
use super::{FeedError, Shared};

/// Longer texts are cut.
const LONGEST: usize = 4 << 10;

/// Of longer lists, the rest is left out.
const MOST: usize = 200;

impl Shared {
    /// Up to so many items from that record on.
    pub(super) fn timeline(&self, session: &str, after: u64, limit: usize) -> Result<Timeline, FeedError> {
        let filter = RecordFilter { session: Some(session.to_owned()), ..RecordFilter::default() };
        let (ready, end) = {
            let index = self.index();
            (Ready::new(&filter, &index), index.cursor)
        };
        let mut emissions = Emissions::new();
        let mut runs = Runs::default();
        let mut items = Vec::new();
        let mut problem = None;
        let mut from = after;
        // A scan stops after much was read; the emissions that are open then go on with the next.
        loop {
            let read_to = self.scan(&ready, from, |record| {
                runs.see(record);
                match emissions.see(record, &*self.source) {
                    Ok(traced) => {
                        items.extend(traced.into_iter().filter_map(|traced| item(traced, &runs)));
                        if items.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    }
                    Err(error) => {
                        problem = Some(error);
                        ControlFlow::Break(())
                    }
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
        items.sort_by_key(|item: &TimelineItem| item.seq);
        let mut cursor = end;
        if items.len() < limit {
            let open = emissions.finish();
            // What is not closed may change, so it comes again.
            cursor = open.first().map_or(end, |emission| emission.seq);
            items.extend(open.into_iter().map(|emission| event(emission, &runs)));
        }
        if items.len() >= limit {
            // There may be more after them: only who has come to the end sees what is open again.
            items.truncate(limit);
            cursor = items.last().map_or(end, |item| item.seq + 1);
        }
        Ok(Timeline { items, cursor })
    }
}

/// Which run of the session wrote its events, and from which record on.
#[derive(Default)]
struct Runs(Vec<(u64, String)>);

impl Runs {
    fn see(&mut self, record: &Record<'_>) {
        // Others write about a session, too; its events are its own.
        let is_known = self.0.last().is_some_and(|(_, run)| *run == record.writer);
        if record.kind == Kind::Event && !is_known {
            self.0.push((record.seq, record.writer.to_string()));
        }
    }

    fn of(&self, seq: u64) -> &str {
        let after = self.0.partition_point(|(from, _)| *from <= seq);
        after.checked_sub(1).and_then(|at| self.0.get(at)).map_or("", |(_, run)| run)
    }
}

fn item(traced: Traced, runs: &Runs) -> Option<TimelineItem> {
    match traced {
        Traced::Emission(emission) => Some(event(*emission, runs)),
        // What belongs to an emission before the one that was begun with says nothing alone.
        Traced::Stray(stray) if matches!(stray.kind, Kind::Seal | Kind::Gap) => Some(alone(stray)),
        Traced::Stray(_) => None,
    }
}

fn event(emission: RecordedEmission, runs: &Runs) -> TimelineItem {
    let run = runs.of(emission.seq);
    let mut cut = false;
    let took_ms = emission.data.as_ref().and_then(|data| data.get("duration_ms")).and_then(Value::as_u64);
    let data = emission.data.map_or(Value::Null, |data| shortened(Value::Object(data), &mut cut));
    let session = emission.session.unwrap_or_default();
    let (decided, open): (Vec<_>, Vec<_>) =
        emission.approvals.into_iter().partition(|approval| approval.granted.is_some());
    let kept = serde_json::to_value(emission.kept).ok().and_then(|kept| kept.as_str().map(str::to_owned));
    TimelineItem {
        seq: emission.seq,
        at: emission.time.clone(),
        turn: emission.turn,
        kind: "event".to_owned(),
        data,
        kept: kept.unwrap_or_default(),
        decision: emission.decision,
        denied_by: emission.denied_by,
        reason: emission.reason.map(|reason| text(reason, &mut cut)),
        hooks: emission
            .hooks
            .into_iter()
            .map(|hook| HookSaid {
                hook: hook.hook,
                answer: hook.answer,
                took_ns: hook.took_ns,
                reason: hook.reason.map(|reason| text(reason, &mut cut)),
                error: hook.error.map(|error| text(error, &mut cut)),
            })
            .collect(),
        injections: emission
            .injections
            .into_iter()
            .map(|told| Injected {
                hook: told.hook,
                role: told.role,
                placement: told.placement,
                tokens: told.tokens,
                fate: told.fate,
                text: text(told.text, &mut cut),
            })
            .collect(),
        messages: emission
            .messages
            .into_iter()
            .map(|told| Told { source: told.source, level: told.level, text: text(told.text, &mut cut) })
            .collect(),
        open: open
            .into_iter()
            .map(|asked| OpenQuestion {
                id: asked.id.map(|id| ApprovalId::new(session.as_str(), run, id).to_string()),
                hook: asked.hook,
                prompt: asked.prompt.map(|prompt| text(prompt, &mut cut)),
                created_at: asked.asked,
            })
            .collect(),
        approvals: decided
            .into_iter()
            .map(|approval| decision(approval, &session, run, &emission.event, &emission.time, &mut cut))
            .collect(),
        outcome: emission.outcome.map(|outcome| Ended { success: outcome.success, took_ms }),
        failures: emission.failures.into_iter().map(|one| format!("{}: {}", one.part, one.error)).collect(),
        event: emission.event,
        cut,
    }
}

fn decision(
    approval: RecordedApproval,
    session: &str,
    run: &str,
    event: &str,
    time: &str,
    cut: &mut bool,
) -> DecidedApproval {
    DecidedApproval {
        id: approval.id.map(|id| ApprovalId::new(session, run, id)),
        session: session.to_owned(),
        hook: approval.hook,
        event: event.to_owned(),
        prompt: approval.prompt.map(|prompt| text(prompt, cut)).unwrap_or_default(),
        decision: ApprovalDecision {
            by: approval.by,
            ..ApprovalDecision::new(
                approval.granted.unwrap_or(false),
                approval.basis.unwrap_or(DecisionBasis::Error),
                approval.reason.map(|reason| text(reason, cut)).unwrap_or_default(),
            )
        },
        created_at: approval.asked,
        decided_at: approval.decided_at.unwrap_or_else(|| time.to_owned()),
        seq: approval.decided_seq.unwrap_or(0),
    }
}

fn alone(stray: StrayRecord) -> TimelineItem {
    let mut cut = false;
    TimelineItem {
        seq: stray.seq,
        at: stray.time,
        turn: stray.turn,
        event: stray.kind.as_str().to_owned(),
        kind: stray.kind.as_str().to_owned(),
        data: shortened(stray.body, &mut cut),
        kept: "whole".to_owned(),
        cut,
        ..TimelineItem::default()
    }
}

/// A value with long texts and lists cut.
fn shortened(value: Value, cut: &mut bool) -> Value {
    match value {
        Value::String(long) => Value::String(text(long, cut)),
        Value::Array(mut list) => {
            if list.len() > MOST {
                *cut = true;
                list.truncate(MOST);
            }
            list.into_iter().map(|value| shortened(value, cut)).collect()
        }
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, shortened(value, cut))).collect(),
        value => value,
    }
}

fn text(text: String, cut: &mut bool) -> String {
    let short = truncate_bytes(&text, LONGEST);
    *cut |= matches!(short, Cow::Owned(_));
    short.into_owned()
}
