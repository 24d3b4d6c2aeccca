//! `amplifier audit stats`: a log in numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use amplifier_audit::{Folder, Kind, Record};
use anyhow::Context;
use clap::Args;
use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::Value;

use super::Place;
use super::filter::Filter;
use super::reader::Reader;
use super::text::{harmless, padded};
use crate::commands::output::{print, print_json};
use crate::home::Home;
use crate::words::counted;

/// Counts records by kind, event, session and hook, and what was decided.
#[derive(Args, Debug)]
pub(crate) struct Statistics {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    filter: Filter,
    /// Prints the numbers as JSON.
    #[arg(long)]
    json: bool,
}

impl Statistics {
    pub(crate) fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        let folder = self.place.or_home(home)?;
        let bytes = size_on_disk(&folder).with_context(|| format!("`{}` cannot be read", folder.display()))?;
        let mut numbers = Numbers { bytes, ..Numbers::default() };
        let reader = Reader::open(folder)?;
        let (folder, matches) = (Folder::new(reader.folder().path()), self.filter.compile());
        reader.read(|record| {
            if matches(record, &folder)? {
                numbers.count(record);
            }
            Ok(())
        })?;
        if self.json { print_json(&numbers) } else { print(numbers.to_string()) }
    }
}

/// What there is how often.
#[derive(Debug, Default, Serialize)]
struct Numbers {
    records: u64,
    segments: u64,
    /// Of the whole folder, whatever the filter says.
    bytes: u64,
    first_time: Option<String>,
    last_time: Option<String>,
    kinds: Counts,
    events: Counts,
    sessions: Counts,
    /// How often each hook answered or failed.
    hooks: Counts,
    decisions: Decisions,
    approvals: Approvals,
    /// Sessions whose last record is not a seal: they are running, or ended without a word.
    unsealed: BTreeSet<String>,
    #[serde(skip)]
    last_segment: Option<u64>,
}

type Counts = BTreeMap<String, u64>;

/// What hooks decided about events.
#[derive(Debug, Default, Serialize)]
struct Decisions {
    allow: u64,
    deny: u64,
    asked: u64,
    cancelled: u64,
}

/// What came of questions.
#[derive(Debug, Default, Serialize)]
struct Approvals {
    granted: u64,
    refused: u64,
}

impl Numbers {
    fn count(&mut self, record: &Record<'_>) {
        self.records += 1;
        if self.last_segment.replace(record.seg) != Some(record.seg) {
            self.segments += 1;
        }
        self.first_time.get_or_insert_with(|| record.time.to_string());
        self.last_time = Some(record.time.to_string());
        add(&mut self.kinds, record.kind.as_str());
        if let Some(event) = &record.event {
            add(&mut self.events, event);
        }
        if let Some(session) = &record.session {
            add(&mut self.sessions, session);
            if record.kind == Kind::Seal {
                self.unsealed.remove(&**session);
            } else if !self.unsealed.contains(&**session) {
                self.unsealed.insert(session.to_string());
            }
        }
        if matches!(record.kind, Kind::Event | Kind::HookReport | Kind::ApprovalDecision) {
            let body: Value = serde_json::from_str(record.body.get()).unwrap_or_default();
            self.count_body(record.kind, &body);
        }
    }

    fn count_body(&mut self, kind: Kind, body: &Value) {
        match (kind, &body["decision"], &body["granted"]) {
            (Kind::HookReport, ..) => add(&mut self.hooks, body["hook"].as_str().unwrap_or("-")),
            (Kind::ApprovalDecision, _, Value::Bool(true)) => self.approvals.granted += 1,
            (Kind::ApprovalDecision, ..) => self.approvals.refused += 1,
            // A body that is kept as a blob, or was erased, does not say it.
            (_, Value::String(decision), _) => match decision.as_str() {
                "deny" => self.decisions.deny += 1,
                "ask_user" => self.decisions.asked += 1,
                "cancelled" => self.decisions.cancelled += 1,
                _ => self.decisions.allow += 1,
            },
            _ => {}
        }
    }
}

fn add(counts: &mut Counts, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => _ = counts.insert(name.to_owned(), 1),
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &Option<String>| harmless(time.as_deref().unwrap_or("-"));
        let Decisions { allow, deny, asked, cancelled } = self.decisions;
        let Approvals { granted, refused } = self.approvals;
        for (title, text) in [
            ("records", format!("{} in {}", self.records, counted(self.segments, "segment"))),
            ("on disk", HumanBytes(self.bytes).to_string()),
            ("first", time(&self.first_time)),
            ("last", time(&self.last_time)),
            ("decisions", format!("{allow} allow, {deny} deny, {asked} asked, {cancelled} cancelled")),
            ("approvals", format!("{granted} granted, {refused} refused")),
            ("unsealed", self.unsealed.len().to_string()),
        ] {
            writeln!(f, "{title:<10} {text}")?;
        }
        for session in &self.unsealed {
            writeln!(f, "           {}", harmless(session))?;
        }
        table(f, "kind", &self.kinds)?;
        table(f, "event", &self.events)?;
        table(f, "session", &self.sessions)?;
        table(f, "hook", &self.hooks)
    }
}

/// The most frequent first.
fn table(f: &mut fmt::Formatter<'_>, title: &str, counts: &Counts) -> fmt::Result {
    if counts.is_empty() {
        return Ok(());
    }
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    f.write_char('\n')?;
    writeln!(f, "{} {:>8}", padded(title, 40), "records")?;
    counts.into_iter().try_for_each(|(name, count)| writeln!(f, "{} {count:>8}", padded(&harmless(name), 40)))
}

/// The size of all files of the log. Links are not followed.
fn size_on_disk(folder: &Path) -> io::Result<u64> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut bytes = 0;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            bytes += size_on_disk(&entry.path())?;
        } else if kind.is_file() {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}
