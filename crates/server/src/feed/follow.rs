//! Reads the audit log as it grows.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use amplifier_audit::{AuditError, Bodies, LogLine, LogLines, LogPart, LogReader};

use super::query::record_json;
use super::{FeedState, index::Index};

/// How often is looked while something changes, and when nothing has for a while.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
const MAX_INTERVAL: Duration = Duration::from_millis(250);

/// More new bytes than this at once are not held for those who watch: they read them from the log.
const RECENT_LIMIT: u64 = 4 << 20;

/// Follows the log until it is told to stop.
pub(super) fn follow(shared: &Arc<FeedState>) {
    let mut follower =
        Follower { shared, reader: LogReader::new(), behind: 0, is_caught_up: false, bodies: Bodies::new() };
    let mut wait = MIN_INTERVAL;
    while !shared.is_stopped() {
        match follower.poll() {
            Ok(true) => wait = MIN_INTERVAL,
            Ok(false) => wait = (wait * 2).min(MAX_INTERVAL),
            Err(error) => {
                shared.set_problem(Some(&error));
                wait = MAX_INTERVAL;
            }
        }
        // Whoever waits is told, also if nothing more can be expected.
        shared.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
        shared.sleep(wait);
    }
}

struct Follower<'a> {
    shared: &'a Arc<FeedState>,
    reader: LogReader,
    /// How far records stand behind the numbers that they have.
    behind: u64,
    /// `true` if the end of the log was reached once.
    is_caught_up: bool,
    bodies: Bodies,
}

impl Follower<'_> {
    /// Takes in what was added; says whether anything was.
    fn poll(&mut self) -> Result<bool, AuditError> {
        let shared = self.shared;
        let before = shared.index().cursor;
        while !shared.is_stopped() {
            let part = self.reader.next_part(&*shared.source)?;
            shared.set_problem(None);
            match part {
                LogPart::Lines(lines) => self.add_lines(&lines),
                LogPart::Restarted => self.restart(),
                LogPart::End { first_segment, .. } => {
                    self.is_caught_up = true;
                    let is_gone = |first: &u64| shared.index().blocks.front().is_some_and(|one| one.segment < *first);
                    if let Some(first) = first_segment.filter(is_gone) {
                        shared.index_mut().remove_before(first);
                    }
                    break;
                }
            }
        }
        let after = shared.index().cursor;
        if after != before {
            shared.changed.send_replace(after);
        }
        Ok(after != before)
    }

    fn add_lines(&mut self, lines: &LogLines) {
        let shared = self.shared;
        let is_recent = self.is_caught_up && lines.bytes() + lines.bytes_left <= RECENT_LIMIT;
        if !is_recent {
            shared.index_mut().clear_recent();
        }
        // Parsed before the lock is taken, and each line once.
        let mut parsed = Vec::with_capacity(usize::try_from(lines.bytes() / 512).unwrap_or(0));
        for LogLine { offset, end, record, .. } in lines.iter() {
            let mut record = record.ok();
            if let Some(record) = &mut record {
                // The writer of a broken log goes on in a new segment from the last record that fits, with numbers that were given already.
                // Here each record has the number of its place, so that nobody misses what happens from then on.
                if offset == 0 {
                    let cursor = shared.index().cursor;
                    self.behind = self.behind.max(cursor.saturating_sub(record.seq));
                }
                record.seq += self.behind;
            }
            let sent = record
                .as_ref()
                .filter(|_| is_recent)
                .map(|record| record_json(record, &*shared.source, &mut self.bodies));
            parsed.push((record, offset, end, sent));
        }
        let mut index = shared.index_mut();
        for (record, offset, end, sent) in parsed {
            let Some(record) = record else {
                index.add_unreadable();
                continue;
            };
            let belongs = index.add(&record, offset, end, self.behind, &*shared.source);
            if let Some(sent) = sent.filter(|_| belongs) {
                index.add_recent(record.seq, record.line(), sent);
            }
        }
        // The first look takes a while, and what is known already can be asked for.
        if !is_recent {
            shared.changed.send_replace(index.cursor);
        }
    }

    fn restart(&mut self) {
        (self.behind, self.is_caught_up) = (0, false);
        self.shared.ready.send_replace(false);
        *self.shared.index_mut() = Index::default();
        // Those of another log are not those of this one.
        self.shared.frames.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
