//! `amplifier hooks trace`: what happened in a session, event by event.

use amplifier_core::text::counted;
use amplifier_host::Home;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use amplifier_audit::{Emissions, Folder, Kept, Kind, RecordedApproval, RecordedEmission, StrayRecord, Traced};
use amplifier_core::{DecisionBasis, EventPattern};
use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::Args;
use unicode_width::UnicodeWidthStr;

use super::session::Sessions;
use super::subject::subject;
use crate::agent::excerpt;
use crate::commands::audit::reader::Reader;
use crate::commands::audit::text::{cut, harmless, padded};
use crate::commands::output::{columns, stdout};

const QUIET: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTABLE: Style = AnsiColor::Yellow.on_default();

/// Show what happened in a recorded session, event by event
///
/// For each event: when, what was decided, what it is about; below it what every hook answered, how long it took and why, what a
/// person was asked, and what the agent and the person were told. Hashes are checked, signatures are not: `amplifier audit verify`
/// does that.
#[derive(Args, Debug)]
pub(super) struct Trace {
    /// The session: its id, the beginning of it, or `last`
    session: String,
    /// Only this event; `*` stands for any text, as in `tool:*`
    #[arg(long, value_name = "PATTERN", value_parser = EventPattern::filter)]
    event: Option<EventPattern>,
    /// Only events that this hook had a part in
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only where something was stopped: a hook denied it, or a question was not answered with yes
    #[arg(long)]
    denied: bool,
    /// Print JSON, one event a line
    #[arg(long)]
    json: bool,
    /// The folder of the log, if not that of this installation
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
        let sessions = Sessions::of(&log)?;
        let session = sessions.find(&self.session, store.as_ref())?;
        let folder = Folder::new(log.clone());
        let mut printer = Printer { out: stdout(), columns: columns(), trace: &self, sessions: &sessions };
        if !self.json {
            writeln!(printer.out, "{QUIET}session {}{QUIET:#}", harmless(&session))?;
        }
        let mut emissions = Emissions::new();
        Reader::open(log)?.read(|record| {
            let is_meant = |event: &str| self.event.as_ref().is_none_or(|pattern| pattern.matches(event));
            if record.session.as_deref() != Some(&*session) || !record.event.as_deref().is_none_or(is_meant) {
                return Ok(());
            }
            emissions.see(record, &folder)?.into_iter().try_for_each(|traced| printer.print(traced))
        })?;
        emissions.finish().into_iter().try_for_each(|emission| printer.emission(emission))?;
        printer.out.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    fn shows(&self, emission: &RecordedEmission) -> bool {
        (!self.denied || emission.is_stopped())
            && self.hook.as_deref().is_none_or(|hook| {
                emission.denied_by.as_deref() == Some(hook) || emission.hooks.iter().any(|report| report.hook == hook)
            })
    }
}

struct Printer<'a, W> {
    out: W,
    columns: Option<usize>,
    trace: &'a Trace,
    sessions: &'a Sessions,
}

impl<W: Write> Printer<'_, W> {
    fn print(&mut self, traced: Traced) -> Result<()> {
        match traced {
            Traced::Emission(emission) => self.emission(*emission),
            Traced::Stray(stray) => self.stray(&stray),
        }
    }

    fn emission(&mut self, mut emission: RecordedEmission) -> Result<()> {
        if let Some(intent) = &mut emission.intent {
            intent.in_doubt = self.sessions.in_doubt.contains(&intent.seq);
        }
        if !self.trace.shows(&emission) {
            return Ok(());
        }
        if self.trace.json {
            return Ok(writeln!(self.out, "{}", serde_json::to_string(&emission)?)?);
        }
        let (style, word) = decided(&emission);
        let about = emission.data.as_ref().map(subject).unwrap_or_default();
        let event = padded(&harmless(&emission.event), 20);
        let about = harmless(&about);
        // Without spaces at the end of a line, also where no style ends after them.
        let about =
            if about.is_empty() { about } else { format!("{:1$} {about}", "", 15_usize.saturating_sub(word.len())) };
        writeln!(self.out, "{QUIET}{}{QUIET:#}  {event} {style}{word}{style:#}{about}", time(&emission.time))?;
        self.details(&emission)
    }

    fn details(&mut self, emission: &RecordedEmission) -> Result<()> {
        let widest = emission.hooks.iter().map(|report| harmless(&report.hook).width()).fold(24, usize::max);
        for report in &emission.hooks {
            let style = match (report.answer.as_str(), &report.error) {
                ("deny", _) | (_, Some(_)) => BAD,
                ("continue", None) => QUIET,
                _ => Style::new(),
            };
            let took = format!("{:.1?}", Duration::from_nanos(report.took_ns));
            let why = report.error.as_ref().or(report.reason.as_ref()).map(|why| harmless(why)).unwrap_or_default();
            let hook = padded(&harmless(&report.hook), widest);
            self.line(style, &format!("{hook} {} {took:>9}  {why}", padded(&harmless(&report.answer), 15)))?;
        }
        for approval in &emission.approvals {
            let style = if approval.granted == Some(true) { GOOD } else { BAD };
            self.line(NOTABLE, &asked(approval))?;
            self.line(style, &format!("  {}", answered(approval)))?;
        }
        for told in &emission.injections {
            let size =
                format!("{}, {}, {}", counted(told.bytes, "byte"), counted(told.tokens, "token"), harmless(&told.fate));
            let text = harmless(&excerpt(&told.text));
            self.line(Style::new(), &format!("{} tells the agent ({size}): {text}", harmless(&told.hook)))?;
        }
        for told in &emission.messages {
            let style = if told.level == "error" { BAD } else { Style::new() };
            let (source, level) = (harmless(&told.source), harmless(&told.level));
            self.line(style, &format!("{source} tells the person ({level}): {}", harmless(&told.text)))?;
        }
        for failure in &emission.failures {
            self.line(BAD, &format!("{} failed: {}", harmless(&failure.part), harmless(&failure.error)))?;
        }
        if let Some(outcome) = &emission.outcome {
            match outcome.success {
                Some(true) => self.line(GOOD, "it succeeded")?,
                Some(false) => self.line(BAD, "it failed")?,
                None => self.line(QUIET, "it ended")?,
            }
        }
        if emission.intent.as_ref().is_some_and(|intent| intent.in_doubt) {
            self.line(BAD, "IN DOUBT: it may have run, and nobody knows how it ended")?;
        }
        match emission.kept {
            Kept::Whole | Kept::Redacted => {}
            Kept::Erased => self.line(NOTABLE, "its data was erased")?,
            Kept::Withheld => self.line(NOTABLE, "its data was not kept")?,
        }
        if emission.unreadable > 0 {
            self.line(NOTABLE, &format!("erased of it: {}", counted(emission.unreadable, "record")))?;
        }
        if let Some(by) = &emission.denied_by {
            let reason = emission.reason.as_deref().map(|reason| format!(": {}", harmless(reason))).unwrap_or_default();
            self.line(BAD, &format!("denied by {}{reason}", harmless(by)))?;
        }
        Ok(())
    }

    fn stray(&mut self, stray: &StrayRecord) -> Result<()> {
        let trace = self.trace;
        if trace.denied || trace.hook.is_some() || trace.event.is_some() {
            return Ok(());
        }
        if trace.json {
            return Ok(writeln!(self.out, "{}", serde_json::to_string(stray)?)?);
        }
        let body = match (stray.kind, stray.body["reason"].as_str()) {
            (Kind::Seal, Some(reason)) => reason.to_owned(),
            _ => stray.body.to_string(),
        };
        let event = padded(&harmless(stray.event.as_deref().unwrap_or("session")), 20);
        let row = format!("{}  {event} {} {}", time(&stray.time), padded(stray.kind.as_str(), 15), harmless(&body));
        Ok(writeln!(self.out, "{QUIET}{}{QUIET:#}", self.fitting(&row))?)
    }

    /// A line below an event. Its text has to be harmless.
    fn line(&mut self, style: Style, text: &str) -> Result<()> {
        let line = format!("    {}", text.trim_end());
        let line = self.fitting(&line);
        Ok(writeln!(self.out, "{style}{line}{style:#}")?)
    }

    /// Cut on a terminal; whole where a program reads.
    fn fitting(&self, line: &str) -> String {
        self.columns.map_or_else(|| line.to_owned(), |columns| cut(line, columns.max(60)).into_owned())
    }
}

/// What was decided in the end.
fn decided(emission: &RecordedEmission) -> (Style, &str) {
    match emission.decision.as_deref() {
        None => (NOTABLE, "unknown"),
        // What the event reports has happened already.
        Some("deny") if !emission.is_stopped() => (NOTABLE, "deny (too late)"),
        Some("deny") => (BAD, "deny"),
        Some("cancelled") => (NOTABLE, "cancelled"),
        Some("ask_user") if emission.approvals.iter().any(|approval| approval.granted == Some(false)) => {
            (BAD, "ask: refused")
        }
        Some("ask_user") if emission.approvals.is_empty() => (NOTABLE, "ask"),
        Some("ask_user") if emission.approvals.iter().all(|approval| approval.granted == Some(true)) => {
            (GOOD, "ask: allowed")
        }
        Some("ask_user") => (NOTABLE, "ask: open"),
        Some("continue") => (QUIET, "continue"),
        Some("modify") => (Style::new(), "modify"),
        Some("inject_context") => (Style::new(), "inject_context"),
        Some(_) => (NOTABLE, "other"),
    }
}

fn asked(approval: &RecordedApproval) -> String {
    let hook = harmless(&approval.hook);
    match &approval.prompt {
        Some(prompt) => format!("{hook} asks: {}", harmless(prompt)),
        // What a decision rests on ends with the question.
        None => {
            let prompt = approval.reason.as_deref().and_then(|reason| Some(reason.split_once(": ")?.1));
            format!("{hook} wants to ask: {}", harmless(prompt.unwrap_or_default()))
        }
    }
}

fn answered(approval: &RecordedApproval) -> String {
    let Some(granted) = approval.granted else { return "no answer is recorded".to_owned() };
    let word = if granted { "allowed" } else { "refused" };
    let by = match approval.basis {
        Some(DecisionBasis::Answer) => "by the person".to_owned(),
        Some(DecisionBasis::Remembered) => "by an earlier answer of the person".to_owned(),
        Some(DecisionBasis::Rule) => "by a standing answer of the person".to_owned(),
        Some(DecisionBasis::Timeout) => "because nobody answered in time".to_owned(),
        Some(DecisionBasis::NoApprovalSystem) => "because nobody can be asked".to_owned(),
        Some(DecisionBasis::Cancelled) => "because it was given up".to_owned(),
        _ => harmless(approval.reason.as_deref().unwrap_or("for an unknown reason")),
    };
    let waited = approval.waited_ms.map(|waited| format!(", after {:.1?}", Duration::from_millis(waited)));
    let late = approval.late_answer.as_deref().map(|late| {
        let by =
            approval.late_answer_by.as_ref().map(|by| format!(" of {} by {}", harmless(&by.name), harmless(&by.via)));
        format!("; too late came `{}`{}", harmless(late), by.unwrap_or_default())
    });
    format!("{word} {by}{}{}", waited.unwrap_or_default(), late.unwrap_or_default())
}

/// The time as people read it, to the millisecond.
fn time(time: &str) -> String {
    harmless(&time.get(..23).unwrap_or(time).replace('T', " "))
}
