//! Verification of the log as it grows.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use amplifier_audit::{
    Advance, FileState, Finding, Integrity, Problem, PublicKey, Report, Verification, Verifier, segment_file,
    segment_number,
};
use amplifier_process::files::read_regular;
use tokio::sync::oneshot;

use super::FeedState;
use crate::api_types::{self, AuditStatus, CheckpointStatus};

/// Interval of the checks for new records.
const EVERY: Duration = Duration::from_millis(250);

/// Interval at which a growing log is verified from its beginning, to detect changes of verified records; and the size
/// limit for that.
const WHOLE_EVERY: Duration = Duration::from_secs(60);
const WHOLE_UP_TO: u64 = 200 << 20;

/// Limit of an anchor file, in bytes.
const LARGEST_ANCHOR: u64 = 1 << 30;

const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Key and anchors from external sources.
#[derive(Clone, Debug, Default)]
pub(super) struct TrustAnchors {
    pub(super) key: Option<PublicKey>,
    pub(super) anchors: Vec<PathBuf>,
}

/// Verifies the log until the feed is dropped.
pub(super) fn run(shared: &Arc<FeedState>, anchors: TrustAnchors) {
    let mut thread = VerifierThread {
        shared,
        anchors,
        ongoing: None,
        verified: VerifiedFiles::default(),
        whole_at: None,
        was_there: false,
    };
    while !shared.is_stopped() {
        let asked = std::mem::take(&mut *shared.verify_requests.lock().unwrap_or_else(PoisonError::into_inner));
        thread.check(!asked.is_empty());
        asked.into_iter().for_each(|done| _ = done.send(()));
        shared.sleep_until_requested(EVERY);
    }
}

pub(super) type VerifyRequest = oneshot::Sender<()>;

/// State of each segment file at the last verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct VerifiedFiles(BTreeMap<u64, FileState>);

struct VerifierThread<'a> {
    shared: &'a Arc<FeedState>,
    anchors: TrustAnchors,
    ongoing: Option<Verification>,
    verified: VerifiedFiles,
    whole_at: Option<Instant>,
    /// `true` once a log was seen, so that a removed log is not taken for a new one.
    was_there: bool,
}

impl VerifierThread<'_> {
    fn check(&mut self, is_asked: bool) {
        let there = VerifiedFiles::current(self.shared);
        if there.0.is_empty() {
            self.ongoing = None;
            return self.publish(self.missing_log());
        }
        self.was_there = true;
        let is_due = there != self.verified
            && self.whole_at.is_none_or(|at| at.elapsed() >= WHOLE_EVERY)
            && there.bytes() <= WHOLE_UP_TO;
        if is_asked || is_due || self.verified.was_changed(&there) {
            self.ongoing = None;
        }
        // The files were listed before they were read, so a change in between shows up at the next check.
        let is_same = there == self.verified && self.ongoing.is_some();
        if is_same
            && !self.is_torn()
            && let Some(status) = self.status().filter(|status| !status.checking)
        {
            // For a broken log, the follower may have read more meanwhile.
            let size = status.size.max(self.shared.index().cursor);
            return self.publish(AuditStatus { size, ..status });
        }
        let mut is_whole = self.ongoing.is_none();
        loop {
            match self.advance() {
                Ok(true) => {}
                // Tried again at the next check.
                Ok(false) => return,
                Err(error) => {
                    self.ongoing = None;
                    return self.publish(self.failed(error));
                }
            }
            let Some(report) = self.ongoing.as_mut().map(Verification::report) else { return };
            let status = self.status_of(&report);
            if is_whole || report.integrity() != Integrity::Unsound {
                self.verified = there;
                return self.publish(status);
            }
            // A problem at the end may begin earlier: only a whole verification finds its start.
            self.publish(AuditStatus { checking: true, ..status });
            self.ongoing = None;
            is_whole = true;
        }
    }

    /// Verifies up to the end; returns `false` if the log changed in a way that requires a new verification, or the
    /// feed stops.
    fn advance(&mut self) -> Result<bool, String> {
        let is_whole = self.ongoing.is_none();
        if is_whole {
            let status = AuditStatus { checking: true, ..self.status().unwrap_or_default() };
            self.publish(status);
            self.whole_at = Some(Instant::now());
        }
        let mut ongoing = match self.ongoing.take() {
            Some(ongoing) => ongoing,
            None => self.verifier()?.ongoing(),
        };
        // The previous status stays visible until more is known.
        let shown = self.status().unwrap_or_default();
        let mut published = Instant::now();
        loop {
            match ongoing.advance(&*self.shared.source).map_err(|error| error.to_string())? {
                Advance::Done => break,
                Advance::Again => return Ok(false),
                Advance::More => {}
            }
            if self.shared.is_stopped() {
                return Ok(false);
            }
            if published.elapsed() >= PROGRESS_EVERY {
                published = Instant::now();
                let problems = problems(ongoing.findings());
                let status = AuditStatus {
                    size: self.shared.index().cursor.max(ongoing.verified_to()),
                    verified_to: match problems.is_empty() {
                        true => shown.verified_to.max(ongoing.verified_to()),
                        false => verified_to(ongoing.findings(), ongoing.verified_to()),
                    },
                    // A broken log does not count as sound while it is verified again.
                    sound: problems.is_empty() && (shown.sound || shown.problems.is_empty()),
                    problems: if problems.is_empty() { shown.problems.clone() } else { problems },
                    checking: true,
                    ..shown.clone()
                };
                self.publish(status);
            }
        }
        self.ongoing = Some(ongoing);
        Ok(true)
    }

    /// Returns a verifier with the key and the anchors.
    fn verifier(&self) -> Result<Verifier<'static>, String> {
        let mut verifier = Verifier::new();
        if let Some(key) = self.anchors.key {
            verifier = verifier.key(key);
        }
        for file in &self.anchors.anchors {
            let notes = match read_regular(file, LARGEST_ANCHOR) {
                Ok(notes) if notes.is_empty() => continue,
                Ok(notes) => notes,
                // Without anchored checkpoints, the status lists what is not proven.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("cannot read the checkpoints in `{}`: {error}", file.display())),
            };
            verifier = verifier
                .checkpoints(&notes)
                .map_err(|error| format!("cannot read the checkpoints in `{}`: {error}", file.display()))?;
        }
        Ok(verifier)
    }

    fn is_torn(&self) -> bool {
        self.ongoing.as_ref().is_some_and(Verification::is_torn)
    }

    fn status(&self) -> Option<AuditStatus> {
        Some(AuditStatus::clone(&self.shared.status.borrow()))
            .filter(|status| !status.log.is_empty() || status.checking)
    }

    fn publish(&self, status: AuditStatus) {
        self.shared.status.send_if_modified(|published| {
            let is_new = **published != status;
            if is_new {
                *published = Arc::new(status);
            }
            is_new
        });
    }

    fn status_of(&self, report: &Report) -> AuditStatus {
        AuditStatus {
            log: report.log.clone(),
            size: report.size.max(self.shared.index().cursor),
            verified_to: verified_to(&report.findings, report.size),
            sound: report.is_sound(),
            problems: problems(&report.findings),
            checkpoint: report
                .covered_at
                .clone()
                .filter(|_| report.checkpoints > 0)
                .map(|at| CheckpointStatus { size: report.covered, at }),
            exposed: report.unanchored(),
            checking: false,
            proves: report.proved(),
            cannot_prove: report.not_proved(),
        }
    }

    fn failed(&self, text: String) -> AuditStatus {
        let shown = self.status().unwrap_or_default();
        let problems = vec![api_types::Problem { seq: None, text }];
        AuditStatus { sound: false, verified_to: 0, problems, checking: false, proves: Vec::new(), ..shown }
    }

    fn missing_log(&self) -> AuditStatus {
        let has_checkpoints = self.shared.source.size("checkpoints").is_ok_and(|size| size.is_some());
        if self.was_there || has_checkpoints {
            return self.failed("the audit log is missing: no file `seg-….jsonl` found".to_owned());
        }
        AuditStatus { sound: true, ..AuditStatus::default() }
    }
}

impl VerifiedFiles {
    fn current(shared: &FeedState) -> Self {
        let files = shared.source.list("").unwrap_or_default();
        let segments = files.iter().filter_map(|file| segment_number(file));
        let about =
            segments.filter_map(|segment| Some((segment, shared.source.state(&segment_file(segment)).ok().flatten()?)));
        Self(about.collect())
    }

    fn bytes(&self) -> u64 {
        self.0.values().map(|state| state.size).sum()
    }

    /// Returns `true` if a file changed other than by growing at the end.
    fn was_changed(&self, now: &Self) -> bool {
        let last = self.0.last_key_value().map(|(segment, _)| *segment);
        self.0.iter().any(|(segment, was)| match now.0.get(segment) {
            None => true,
            Some(is) if Some(*segment) == last => {
                is.identity != was.identity || is.size < was.size || (is.size == was.size && is.changed != was.changed)
            }
            Some(is) => is != was,
        })
    }
}

fn problems(findings: &[Finding]) -> Vec<api_types::Problem> {
    let problem = |finding: &Finding| {
        let place = match (&finding.file, finding.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            _ => String::new(),
        };
        api_types::Problem { seq: finding.line.map(|_| finding.seq), text: format!("{place}{}", finding.text) }
    };
    findings.iter().map(problem).collect()
}

/// Returns the number up to which all records are unchanged.
fn verified_to(findings: &[Finding], size: u64) -> u64 {
    let first = findings.iter().filter(|finding| finding.line.is_some()).map(|finding| finding.seq).min();
    let bound = |finding: &Finding| match (finding.problem, finding.line) {
        // Truncation: existing records are unchanged, later ones are missing.
        (Problem::Truncated, _) => size,
        (_, Some(_)) => finding.seq,
        // A changed record invalidates the checkpoints over it, and the writer records a breach: neither affects
        // earlier records.
        (Problem::Replaced | Problem::Breach, None) if first.is_some_and(|first| first < finding.seq) => size,
        // Affects the whole log.
        _ => 0,
    };
    findings.iter().map(bound).min().unwrap_or(size).min(size)
}
