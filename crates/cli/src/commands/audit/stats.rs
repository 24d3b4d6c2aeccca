//! `amplifier audit stats`: counts of records and decisions.

use amplifier_core::text::counted;
use amplifier_host::Home;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use amplifier_audit::{ApprovalDecisionCounts, DecisionCounts, EventDecisionCounts, Folder};
use anyhow::Context;
use clap::Args;
use indicatif::HumanBytes;
use serde::Serialize;

use super::LogLocation;
use super::filter::Filter;
use super::reader::LogReader;
use super::text::{pad, sanitize};
use crate::commands::output::{print, print_json};

/// Count decisions, and records by kind, event, session and hook
#[derive(Args, Debug)]
pub(crate) struct Statistics {
    #[command(flatten)]
    place: LogLocation,
    #[command(flatten)]
    filter: Filter,
    /// Print the counts as JSON
    #[arg(long)]
    json: bool,
}

impl Statistics {
    pub(crate) fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        let folder = self.place.or_home(home)?;
        let bytes = size_on_disk(&folder).with_context(|| format!("`{}` cannot be read", folder.display()))?;
        let reader = LogReader::open(folder)?;
        let (folder, matches) = (Folder::new(reader.folder().path()), self.filter.compile(&reader)?);
        let mut statistics = amplifier_audit::Statistics::default();
        reader.read(|record| {
            if matches(record, &folder)? {
                statistics.count(record, &folder)?;
            }
            Ok(())
        })?;
        let report = StatisticsReport { statistics, bytes };
        if self.json { print_json(&report) } else { print(report.to_string()) }
    }
}

#[derive(Debug, Serialize)]
struct StatisticsReport {
    #[serde(flatten)]
    statistics: amplifier_audit::Statistics,
    /// The size of the whole folder, independent of the filter.
    bytes: u64,
}

impl fmt::Display for StatisticsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &Option<String>| sanitize(time.as_deref().unwrap_or("-"));
        let Self { statistics, bytes } = self;
        let DecisionCounts { decisions, approvals, denials } = statistics.decided;
        let EventDecisionCounts { allow, deny, asked, cancelled } = decisions;
        let ApprovalDecisionCounts { granted, refused } = approvals;
        for (title, text) in [
            ("records", format!("{} in {}", statistics.records, counted(statistics.segments, "segment"))),
            ("on disk", HumanBytes(*bytes).to_string()),
            ("first", time(&statistics.first_time)),
            ("last", time(&statistics.last_time)),
            ("decisions", format!("{allow} allow, {deny} deny, {asked} asked, {cancelled} cancelled")),
            ("approvals", format!("{granted} granted, {refused} denied")),
            ("denials", denials.to_string()),
            ("unsealed", statistics.unsealed.len().to_string()),
        ] {
            writeln!(f, "{title:<10} {text}")?;
        }
        for session in &statistics.unsealed {
            writeln!(f, "           {}", sanitize(session))?;
        }
        table(f, "kind", &statistics.kinds)?;
        table(f, "event", &statistics.events)?;
        table(f, "session", &statistics.sessions)?;
        table(f, "hook", &statistics.hooks)
    }
}

fn table(f: &mut fmt::Formatter<'_>, title: &str, counts: &BTreeMap<String, u64>) -> fmt::Result {
    if counts.is_empty() {
        return Ok(());
    }
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    f.write_char('\n')?;
    writeln!(f, "{} {:>8}", pad(title, 40), "records")?;
    counts.into_iter().try_for_each(|(name, count)| writeln!(f, "{} {count:>8}", pad(&sanitize(name), 40)))
}

/// Returns the size of all files of the log. Links are not followed.
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
