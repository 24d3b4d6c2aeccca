//! `amplifier hooks replay`: recorded events, decided by a candidate policy.

mod read;
mod show;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use amplifier_agent::tool::Workspace;
use amplifier_audit::Verifier;
use amplifier_core::{Approval, DataStatus, EventData, EventPattern, RecordedEmission, SESSION_END, SESSION_START};
use amplifier_host::{Config, Confirm, Home, Overrides, guards};
use amplifier_modules::Scope;
use amplifier_modules::replay::{Comparison, ReplayPolicy, SkipReason, compare};
use anyhow::{Context, Result, bail};
use clap::Args;

use self::read::EventReader;
use self::show::{Form, Listing};
use super::session::RecordedSessions;
use crate::commands::arguments::whole_number;
use crate::commands::audit::filter::Moment;
use crate::commands::audit::reader::LogReader;
use crate::commands::audit::verify::verify_log;

/// List the recorded decisions that another bundle would change
///
/// Runs the events of audit logs through the hooks of a bundle, each at its recorded time, and compares the decisions with the log.
/// Nothing is asked: an approval request counts as a decision of its own, and the recorded answer is shown below it. Hooks that run
/// programs or call servers are skipped and listed, unless `--run-programs` is given.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 no decision would change, 1 a decision would change, 2 wrong usage, 4 not compared: a log is unreadable or changed, or another failure."
)]
pub(super) struct Replay {
    /// Log folders, or single segments [default: the log of this installation]
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Candidate bundle
    #[arg(long, value_name = "FILE")]
    bundle: PathBuf,
    /// Bundle to compare with, instead of the recorded decisions
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Folder for relative paths [default: the current one]
    #[arg(long, value_name = "FOLDER", default_value = ".", hide_default_value = true)]
    workspace: PathBuf,
    /// Operations that need approval, as in a session [possible values: all, writes, commands, off] [default: that of the candidate bundle,
    /// or of the configuration file]
    #[arg(long, env = "AMPLIFIER_CONFIRM", value_name = "WHAT")]
    confirm: Option<Confirm>,
    /// Also run programs and call servers, for every event
    #[arg(long)]
    run_programs: bool,
    /// Only events from this time on: an age such as `7d`, a date, or a time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only this session: its id, the beginning or the end of its id, or `last`
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only this event; `*` matches any text, as in `tool:*`
    #[arg(long, value_name = "PATTERN", value_parser = EventPattern::filter)]
    event: Option<EventPattern>,
    /// Maximum number of listed changes; all are counted
    #[arg(long, value_name = "COUNT", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    limit: Option<u64>,
    /// Do not verify the logs first
    #[arg(long)]
    no_verify: bool,
    /// Print JSON: one change per line, then the summary
    #[arg(long)]
    json: bool,
}

impl Replay {
    pub(super) async fn run(self, home: Result<Home>) -> Result<ExitCode> {
        let configured = match &home {
            Ok(home) => Config::load(&Overrides::default(), home)?.confirm,
            Err(_) => Confirm::All,
        };
        let candidate = self.policy(&self.bundle, configured)?;
        let baseline = self.against.as_deref().map(|file| self.policy(file, configured)).transpose()?;
        let home = if self.logs.is_empty() { Some(home?) } else { None };
        let logs = home.as_ref().map_or_else(|| self.logs.clone(), |home| vec![home.audit_folder()]);
        if !self.no_verify {
            check_logs(&logs)?;
        }
        let store = home.map(|home| home.sessions());
        let session = self.session.as_deref().map(|id| RecordedSessions::read_all(&logs)?.find(id, store.as_ref()));
        let policies = || [&candidate].into_iter().chain(&baseline);
        let mut counted: BTreeSet<String> = policies().flat_map(ReplayPolicy::counted).collect();
        if !counted.is_empty() {
            counted.extend([SESSION_START.as_str(), SESSION_END.as_str()].map(str::to_owned));
        }
        let (since, event) = (self.since.clone(), self.event.clone());
        let selection = Arc::new(EventReader { logs, since, session: session.transpose()?, event, counted });
        let form = if self.json { Form::Json } else { Form::Text };
        let mut listing = Listing::new(form, self.limit);
        let (mut batches, reader) = selection.clone().start();
        while let Some(batch) = batches.recv().await {
            for recorded in batch {
                // Earlier events are counted even if their decisions are not compared.
                let event = &recorded.report.event;
                if !selection.is_selected(event, &recorded.time) || recorded.report.data.is_none() {
                    let (data, at) = (event_data(&recorded), event_time(&recorded));
                    policies().for_each(|policy| policy.count(event, &data, at));
                }
                if !selection.is_selected(event, &recorded.time) {
                    continue;
                }
                let comparison = compare_emission(&recorded, &candidate, baseline.as_ref()).await;
                listing.add(&recorded, comparison)?;
            }
        }
        // An incomplete list is not a valid result.
        reader.await.context("the reader of the log has failed")??;
        listing.finish(candidate.skipped(), !self.no_verify)
    }

    /// Loads the hooks of a session with this bundle. The bundle decides about `confirm` before the configuration, and the flag before both.
    fn policy(&self, file: &Path, configured: Confirm) -> Result<ReplayPolicy> {
        let place = || format!("the workspace `{}`", self.workspace.display());
        let policy = ReplayPolicy::load(file, Scope::new(&self.workspace).with_context(place)?, self.run_programs)?;
        guards::register(
            policy.hooks(),
            self.confirm.or(policy.confirm()).unwrap_or(configured),
            Approval::TIMEOUT,
            Workspace::new(&self.workspace).with_context(place)?,
            None,
        );
        Ok(policy)
    }
}

/// Verifies the logs, because a changed log proves nothing. For a segment, the whole log is verified.
fn check_logs(logs: &[PathBuf]) -> Result<()> {
    let folders = logs.iter().map(|log| Ok(LogReader::open_path(log)?.folder().path().to_owned()));
    for folder in folders.collect::<Result<BTreeSet<PathBuf>>>()? {
        let report = verify_log(Verifier::new(), &folder)?;
        if !report.is_sound() {
            let first = report.findings.first().map(|finding| finding.text.as_str()).unwrap_or_default();
            bail!("the log `{}` was changed: {first}; see `amplifier audit verify`", folder.display());
        }
    }
    Ok(())
}

async fn compare_emission(
    recorded: &RecordedEmission,
    candidate: &ReplayPolicy,
    baseline: Option<&ReplayPolicy>,
) -> Comparison {
    let report = &recorded.report;
    if let Some(reason) = SkipReason::from_status(report.data_status) {
        return Comparison::Skipped(reason);
    }
    let (data, at) = (event_data(recorded), event_time(recorded));
    let Ok(would_be) = candidate.judge(&report.event, data.clone(), at).await else {
        return Comparison::Skipped(SkipReason::Unnamed);
    };
    if is_redacted(recorded) && would_be.is_about_marker() {
        return Comparison::Skipped(SkipReason::Redacted);
    }
    let Some(baseline) = baseline else { return compare(report, candidate, would_be) };
    match baseline.judge(&report.event, data, at).await {
        Err(_) => Comparison::Skipped(SkipReason::Unnamed),
        Ok(was) if was.agrees(&would_be) => Comparison::Same,
        Ok(was) => Comparison::Changed { was, would_be },
    }
}

/// Returns the recorded data, with the session id even if the data was not recorded.
fn event_data(recorded: &RecordedEmission) -> EventData {
    let mut data = recorded.report.data.clone().unwrap_or_default();
    if let (Some(session), None) = (&recorded.session, data.get("session_id")) {
        data.insert("session_id".to_owned(), session.as_str().into());
    }
    EventData::from(data)
}

/// Returns the time when the hooks ran. The record is slightly later, because it is written after the hooks have answered.
fn event_time(recorded: &RecordedEmission) -> SystemTime {
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let asked = recorded.report.data.as_ref().and_then(|data| data.get("timestamp")?.as_str());
    let at = asked.and_then(time).or_else(|| time(&recorded.time));
    at.map_or(SystemTime::UNIX_EPOCH, SystemTime::from)
}

/// Returns `true` if the recorded data differs from the data that hooks received.
fn is_redacted(recorded: &RecordedEmission) -> bool {
    recorded.report.data_status == DataStatus::Redacted
}
