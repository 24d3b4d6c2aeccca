//! The list and the summary of changed decisions.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use amplifier_core::text::counted;
use amplifier_core::{DecisionKind, RecordedEmission};
use amplifier_modules::replay::{Comparison, DecisionSummary, SkipReason, SkippedHook};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde_json::json;

use super::is_redacted;
use crate::commands::audit::text::{pad, sanitize};
use crate::commands::exit::Exit;
use crate::commands::hooks::event_summary::summarize_event;
use crate::commands::output::{Out, PipeWriter, pipe_stdout};
use crate::session::excerpt;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

/// A list of changes, printed as they are found, with counts of all events.
pub(super) struct Listing {
    // Output may fail; the exit code is the result.
    out: PipeWriter<Out>,
    form: Form,
    limit: Option<u64>,
    events: u64,
    changed: u64,
    redacted: u64,
    /// Counts by recorded and candidate decision.
    changes: BTreeMap<(&'static str, &'static str), u64>,
    uncompared: BTreeMap<SkipReason, u64>,
}

impl Listing {
    pub(super) fn new(form: Form, limit: Option<u64>) -> Self {
        Self {
            out: pipe_stdout(),
            form,
            limit,
            events: 0,
            changed: 0,
            redacted: 0,
            changes: BTreeMap::new(),
            uncompared: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, recorded: &RecordedEmission, comparison: Comparison) -> Result<()> {
        self.events += 1;
        self.redacted += u64::from(is_redacted(recorded));
        let (was, would_be) = match comparison {
            Comparison::Same => return Ok(()),
            Comparison::Skipped(reason) => {
                *self.uncompared.entry(reason).or_default() += 1;
                return Ok(());
            }
            Comparison::Changed { was, would_be } => (was, would_be),
        };
        self.changed += 1;
        *self.changes.entry((was.decision.as_str(), would_be.decision.as_str())).or_default() += 1;
        if self.limit.is_some_and(|limit| self.changed > limit) {
            return Ok(());
        }
        match self.form {
            Form::Text => self.text(recorded, &was, &would_be),
            Form::Json => self.json(recorded, &was, &would_be),
        }
    }

    fn text(&mut self, recorded: &RecordedEmission, was: &DecisionSummary, would_be: &DecisionSummary) -> Result<()> {
        let quiet = Style::new().dimmed();
        let session = sanitize(recorded.session.as_deref().unwrap_or("-"));
        let about = recorded.report.data.as_ref().map(summarize_event).unwrap_or_default();
        let place = format!("{}  {session}", sanitize(&recorded.time));
        let row = format!("{quiet}{place}{quiet:#}  {}  {}", sanitize(&recorded.report.event), sanitize(&about));
        writeln!(self.out, "{}", row.trim_end())?;
        let style = decision_style(would_be);
        writeln!(
            self.out,
            "    {} → {style}{}{style:#}",
            sanitize(&describe_decision(was)),
            sanitize(&describe_decision(would_be))
        )?;
        if let Some(reason) = &would_be.reason {
            writeln!(self.out, "    {}", sanitize(&excerpt(reason)))?;
        }
        for (pointer, value) in &would_be.fields {
            writeln!(self.out, "    {} becomes {}", sanitize(pointer), sanitize(&excerpt(&value.to_string())))?;
        }
        for (word, basis) in recorded_decisions(recorded) {
            writeln!(self.out, "    at the time: {word} ({basis})")?;
        }
        if is_redacted(recorded) {
            writeln!(self.out, "    its data is redacted: a rule may have seen other values")?;
        }
        Ok(())
    }

    fn json(&mut self, recorded: &RecordedEmission, was: &DecisionSummary, would_be: &DecisionSummary) -> Result<()> {
        let line = json!({
            "kind": "change",
            "seq": recorded.seq,
            "time": recorded.time,
            "session": recorded.session,
            "event": recorded.report.event,
            "subject": recorded.report.data.as_ref().map(summarize_event),
            "was": was,
            "would_be": would_be,
            "approvals": recorded.report.approvals,
            "redacted": is_redacted(recorded),
        });
        Ok(writeln!(self.out, "{line}")?)
    }

    pub(super) fn finish(mut self, skipped: &[SkippedHook], verified: bool) -> Result<ExitCode> {
        match self.form {
            Form::Text => self.summary(skipped, verified),
            Form::Json => self.json_summary(skipped, verified),
        }?;
        self.out.flush()?;
        Ok(if self.changed > 0 { Exit::Failed.into() } else { ExitCode::SUCCESS })
    }

    fn json_summary(&mut self, skipped: &[SkippedHook], verified: bool) -> Result<()> {
        let changes = self.changes.iter().map(|((was, would_be), count)| (format!("{was} -> {would_be}"), *count));
        let line = json!({
            "kind": "summary",
            "events": self.events,
            "changed": self.changed,
            "changes": changes.collect::<BTreeMap<_, _>>(),
            "uncompared": self.uncompared,
            "redacted": self.redacted,
            "skipped_hooks": skipped,
            "verified": verified,
        });
        Ok(writeln!(self.out, "{line}")?)
    }

    fn summary(&mut self, skipped: &[SkippedHook], verified: bool) -> Result<()> {
        let out = &mut self.out;
        if self.changed > 0 {
            writeln!(out)?;
        }
        if self.limit.is_some_and(|limit| self.changed > limit) {
            writeln!(out, "Only the first {} are listed.", self.limit.unwrap_or_default())?;
        }
        writeln!(out, "{}, {} would change", counted(self.events, "event"), counted(self.changed, "decision"))?;
        for ((was, would_be), count) in &self.changes {
            writeln!(out, "  {} {count:>6}", pad(&format!("{was} → {would_be}"), 34))?;
        }
        for (reason, count) in &self.uncompared {
            let why = match reason {
                SkipReason::Erased => "the data was erased",
                SkipReason::Withheld => "the data was not recorded",
                SkipReason::Cancelled => "the operation was cancelled before a decision",
                SkipReason::NotRun => "the deciding hook is not run here",
                SkipReason::Modified => "hooks had changed the data before it was recorded",
                SkipReason::Redacted => "the log has a marker in place of a secret",
                SkipReason::Unnamed => "the event has no valid name",
            };
            writeln!(out, "not compared: {count}, because {why}")?;
        }
        if self.redacted > 0 {
            writeln!(out, "redacted: {}; a rule may have seen other values there", counted(self.redacted, "event"))?;
        }
        if !skipped.is_empty() {
            let names: Vec<String> = skipped.iter().map(|hook| format!("{} ({})", hook.name, hook.kind)).collect();
            writeln!(out, "not run: {}; use `--run-programs` to run them", sanitize(&names.join(", ")))?;
        }
        if !verified {
            writeln!(out, "not verified: the integrity of the log")?;
        }
        Ok(())
    }
}

fn describe_decision(summary: &DecisionSummary) -> String {
    match summary.decided_by.as_slice() {
        [] => summary.decision.to_string(),
        by => format!("{} by {}", summary.decision, by.join(", ")),
    }
}

fn decision_style(would_be: &DecisionSummary) -> Style {
    match would_be.decision {
        DecisionKind::Deny => AnsiColor::Red.on_default(),
        DecisionKind::AskUser => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Green.on_default(),
    }
}

fn recorded_decisions(recorded: &RecordedEmission) -> impl Iterator<Item = (&'static str, &'static str)> {
    let decisions = recorded.report.approvals.iter().filter_map(|approval| approval.decision.as_ref());
    decisions.map(|one| (if one.granted { "allowed" } else { "denied" }, one.basis.as_str()))
}
