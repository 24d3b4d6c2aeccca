//! `amplifier hooks trace`: the events of a recorded session.

use amplifier_core::text::counted;
use amplifier_host::Home;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use amplifier_audit::{AssembledEntry, EmissionAssembler, Folder, Kind, UnassignedRecord};
use amplifier_core::{
    ActionKind, ApprovalReport, DataStatus, DecisionBasis, DecisionKind, EmissionReport, EventPattern, Level,
    RecordedEmission,
};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::Args;
use unicode_width::UnicodeWidthStr;

use super::event_summary::summarize_event;
use super::session::RecordedSessions;
use crate::commands::audit::reader::LogReader;
use crate::commands::audit::text::{pad, sanitize, truncate};
use crate::commands::output::{columns, stdout};
use crate::session::excerpt;
use crate::terminal::decision::describe_basis;

const QUIET: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTABLE: Style = AnsiColor::Yellow.on_default();

/// Print the events of a recorded session
///
/// For each event: its time, decision and subject; below, the answer of each hook with duration and reason, approval requests, added
/// context and messages. Hashes are checked; signatures are checked only by `amplifier audit verify`.
#[derive(Args, Debug)]
pub(super) struct Trace {
    /// Session id, its beginning or end, or `last`
    session: String,
    /// Only this event; `*` matches any text, as in `tool:*`
    #[arg(long, value_name = "PATTERN", value_parser = EventPattern::filter)]
    event: Option<EventPattern>,
    /// Only events that this hook took part in
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only denied operations: by a hook, or because approval was not granted
    #[arg(long)]
    denied: bool,
    /// Print JSON, one event per line
    #[arg(long)]
    json: bool,
    /// Folder of the log [default: the log of this installation]
    #[arg(long, value_name = "FOLDER")]
    log: Option<PathBuf>,
}

impl Trace {
    pub(super) fn run(self, home: Result<Home>) -> Result<ExitCode> {
        let (log, store) = match &self.log {
            Some(log) => (log.clone(), None),
            None => {
                let home = home?;
                (home.audit_folder(), Some(home.sessions()))
            }
        };
        let sessions = RecordedSessions::read(&log)?;
        let session = sessions.find(&self.session, store.as_ref())?;
        let folder = Folder::new(log.clone());
        let mut printer = Printer { out: stdout(), columns: columns(), trace: &self, sessions: &sessions };
        if !self.json {
            writeln!(printer.out, "{QUIET}session {}{QUIET:#}", sanitize(&session))?;
        }
        let mut assembler = EmissionAssembler::new();
        LogReader::open(log)?.read(|record| {
            let is_selected = |event: &str| self.event.as_ref().is_none_or(|pattern| pattern.matches(event));
            if record.session.as_deref() != Some(&*session) || !record.event.as_deref().is_none_or(is_selected) {
                return Ok(());
            }
            assembler.push(record, &folder)?.into_iter().try_for_each(|entry| printer.print(entry))
        })?;
        assembler.finish().into_iter().try_for_each(|emission| printer.emission(emission))?;
        printer.out.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    fn shows(&self, report: &EmissionReport) -> bool {
        (!self.denied || report.is_denied())
            && self.hook.as_deref().is_none_or(|hook| {
                report.denied_by.as_deref() == Some(hook) || report.hooks.iter().any(|one| one.hook == hook)
            })
    }
}

struct Printer<'a, W> {
    out: W,
    columns: Option<usize>,
    trace: &'a Trace,
    sessions: &'a RecordedSessions,
}

impl<W: Write> Printer<'_, W> {
    fn print(&mut self, entry: AssembledEntry) -> Result<()> {
        match entry {
            AssembledEntry::Emission(emission) => self.emission(*emission),
            AssembledEntry::Unassigned(record) => self.unassigned(&record),
        }
    }

    fn emission(&mut self, mut emission: RecordedEmission) -> Result<()> {
        if let Some(intent) = &mut emission.report.intent {
            intent.unresolved = self.sessions.unresolved.contains(&intent.seq);
        }
        if !self.trace.shows(&emission.report) {
            return Ok(());
        }
        if self.trace.json {
            return Ok(writeln!(self.out, "{}", serde_json::to_string(&emission)?)?);
        }
        let report = &emission.report;
        let (style, word) = decision_label(report);
        let about = report.data.as_ref().map(summarize_event).unwrap_or_default();
        let event = pad(&sanitize(&report.event), 20);
        let about = sanitize(&about);
        // No trailing spaces, also without styles.
        let about =
            if about.is_empty() { about } else { format!("{:1$} {about}", "", 15_usize.saturating_sub(word.len())) };
        writeln!(self.out, "{QUIET}{}{QUIET:#}  {event} {style}{word}{style:#}{about}", format_time(&emission.time))?;
        self.details(report)
    }

    fn details(&mut self, emission: &EmissionReport) -> Result<()> {
        let widest = emission.hooks.iter().map(|report| sanitize(&report.hook).width()).fold(24, usize::max);
        for report in &emission.hooks {
            let style = match (report.answer, &report.error) {
                (ActionKind::Deny, _) | (_, Some(_)) => BAD,
                (ActionKind::Continue, None) => QUIET,
                _ => Style::new(),
            };
            let took = format!("{:.1?}", Duration::from_nanos(report.duration_ns));
            let why = report.error.as_ref().or(report.reason.as_ref()).map(|why| sanitize(why)).unwrap_or_default();
            let hook = pad(&sanitize(&report.hook), widest);
            self.line(style, &format!("{hook} {} {took:>9}  {why}", pad(report.answer.as_str(), 15)))?;
        }
        for approval in &emission.approvals {
            let style = if approval.granted() == Some(true) { GOOD } else { BAD };
            self.line(NOTABLE, &describe_request(approval))?;
            self.line(style, &format!("  {}", describe_answer(approval)))?;
        }
        for entry in &emission.injections {
            let mut size = counted(entry.bytes, "byte");
            size.extend(entry.tokens.map(|tokens| format!(", {}", counted(tokens, "token"))));
            size.extend(entry.status.map(|status| format!(", {status}")));
            let text = sanitize(&excerpt(&entry.text));
            self.line(Style::new(), &format!("{} added context ({size}): {text}", sanitize(&entry.hook)))?;
        }
        for entry in &emission.messages {
            let style = if entry.level == Level::Error { BAD } else { Style::new() };
            let hidden = if entry.shown == Some(false) { ", not shown" } else { "" };
            let (source, level) = (sanitize(&entry.source), entry.level.as_str());
            self.line(style, &format!("{source} sent a message ({level}{hidden}): {}", sanitize(&entry.text)))?;
        }
        for failure in &emission.failures {
            self.line(BAD, &format!("{} failed: {}", sanitize(&failure.part), sanitize(&failure.error)))?;
        }
        if let Some(result) = &emission.result {
            match result.success {
                Some(true) => self.line(GOOD, "succeeded")?,
                Some(false) => self.line(BAD, "failed")?,
                None => self.line(QUIET, "finished")?,
            }
        }
        if emission.intent.as_ref().is_some_and(|intent| intent.unresolved) {
            self.line(BAD, "UNRESOLVED: may have run; no result is recorded")?;
        }
        match emission.data_status {
            DataStatus::Whole | DataStatus::Redacted => {}
            DataStatus::Erased => self.line(NOTABLE, "data was erased")?,
            DataStatus::Withheld => self.line(NOTABLE, "data was not recorded")?,
        }
        if emission.unreadable > 0 {
            self.line(NOTABLE, &format!("erased: {}", counted(emission.unreadable, "record")))?;
        }
        if let Some(by) = &emission.denied_by {
            let reason = emission.reason.as_deref().map(|reason| format!(": {}", sanitize(reason))).unwrap_or_default();
            self.line(BAD, &format!("denied by {}{reason}", sanitize(by)))?;
        }
        Ok(())
    }

    fn unassigned(&mut self, record: &UnassignedRecord) -> Result<()> {
        let trace = self.trace;
        if trace.denied || trace.hook.is_some() || trace.event.is_some() {
            return Ok(());
        }
        if trace.json {
            return Ok(writeln!(self.out, "{}", serde_json::to_string(record)?)?);
        }
        let body = match (record.kind, record.body["reason"].as_str()) {
            (Kind::Seal, Some(reason)) => reason.to_owned(),
            _ => record.body.to_string(),
        };
        let event = pad(&sanitize(record.event.as_deref().unwrap_or("session")), 20);
        let row =
            format!("{}  {event} {} {}", format_time(&record.time), pad(record.kind.as_str(), 15), sanitize(&body));
        Ok(writeln!(self.out, "{QUIET}{}{QUIET:#}", self.fit(&row))?)
    }

    /// Writes an indented line below an event. The text must be sanitized.
    fn line(&mut self, style: Style, text: &str) -> Result<()> {
        let line = format!("    {}", text.trim_end());
        let line = self.fit(&line);
        Ok(writeln!(self.out, "{style}{line}{style:#}")?)
    }

    /// Shortens a line on a terminal.
    fn fit(&self, line: &str) -> String {
        self.columns.map_or_else(|| line.to_owned(), |columns| truncate(line, columns.max(60)).into_owned())
    }
}

fn decision_label(report: &EmissionReport) -> (Style, &'static str) {
    let Some(decision) = report.decision else { return (NOTABLE, "unknown") };
    let mut approvals = report.approvals.iter().map(ApprovalReport::granted);
    match decision {
        // The operation of this event has already happened.
        DecisionKind::Deny if !report.is_denied() => (NOTABLE, "deny (too late)"),
        DecisionKind::Deny => (BAD, "deny"),
        DecisionKind::AskUser if report.is_denied() => (BAD, "ask: denied"),
        DecisionKind::AskUser if report.approvals.is_empty() => (NOTABLE, "ask"),
        DecisionKind::AskUser if approvals.all(|granted| granted == Some(true)) => (GOOD, "ask: allowed"),
        DecisionKind::AskUser => (NOTABLE, "ask: open"),
        DecisionKind::Cancelled => (NOTABLE, "cancelled"),
        DecisionKind::Continue => (QUIET, decision.as_str()),
        DecisionKind::Modify | DecisionKind::InjectContext => (Style::new(), decision.as_str()),
    }
}

fn describe_request(approval: &ApprovalReport) -> String {
    let hook = sanitize(&approval.hook);
    match &approval.prompt {
        Some(prompt) if approval.id.is_some() => format!("{hook} asks: {}", sanitize(prompt)),
        // It was not asked, because the decision was known.
        Some(prompt) => format!("{hook} wants to ask: {}", sanitize(prompt)),
        // In older records, the reason for the decision ends with the prompt.
        None => {
            let prompt = approval.decision.as_ref().and_then(|decision| Some(decision.reason.split_once(": ")?.1));
            format!("{hook} wants to ask: {}", sanitize(prompt.unwrap_or_default()))
        }
    }
}

fn describe_answer(approval: &ApprovalReport) -> String {
    let Some(decision) = &approval.decision else { return "no answer is recorded".to_owned() };
    let word = if decision.granted { "allowed" } else { "denied" };
    let by = sanitize(&describe_basis(decision));
    // Otherwise nobody was waited for.
    let waited =
        approval.waited_ms.filter(|_| matches!(decision.basis, DecisionBasis::Answer | DecisionBasis::Timeout));
    let waited = waited.map(|waited| format!(", after {:.1?}", Duration::from_millis(waited)));
    let late = approval.late_answers.iter().map(|late| {
        let by = late.by.as_ref().map(|by| format!(" of {} by {}", sanitize(&by.name), sanitize(&by.via)));
        format!("; late answer `{}`{}", sanitize(&late.label), by.unwrap_or_default())
    });
    format!("{word} {by}{}{}", waited.unwrap_or_default(), late.collect::<String>())
}

/// Formats a time to the millisecond.
fn format_time(time: &str) -> String {
    sanitize(&time.get(..23).unwrap_or(time).replace('T', " "))
}
