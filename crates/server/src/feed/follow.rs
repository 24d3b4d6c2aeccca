//! Follows the audit log as it grows.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use amplifier_audit::{AuditError, BodyReader, LogLine, LogLines, LogPart, LogReader};

use super::query::record_json;
use super::{FeedState, index::Index};

/// Interval of the checks while the log changes, and when idle.
const MIN_INTERVAL: Duration = Duration::from_millis(20);
const MAX_INTERVAL: Duration = Duration::from_millis(250);

/// Limit in bytes of new records that are held in memory; larger additions are read from the log.
const RECENT_LIMIT: u64 = 4 << 20;

/// Follows the log until the feed is dropped.
pub(super) fn follow(shared: &Arc<FeedState>) {
    let mut follower =
        Follower { shared, reader: LogReader::new(), behind: 0, is_caught_up: false, bodies: BodyReader::new() };
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
        // Waiters continue, also if the log cannot be read.
        shared.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
        shared.sleep(wait);
    }
}

struct Follower<'a> {
    shared: &'a Arc<FeedState>,
    reader: LogReader,
    /// Difference between index numbers and record numbers.
    behind: u64,
    /// `true` once the end of the log was reached.
    is_caught_up: bool,
    bodies: BodyReader,
}

impl Follower<'_> {
    /// Reads new records; returns `true` if there were any.
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
                // The writer of a broken log continues in a new segment after the last valid record, and reuses
                // numbers. The index counts on, so that clients do not miss new records.
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
        // The first pass takes a while; the part read so far can be queried.
        if !is_recent {
            shared.changed.send_replace(index.cursor);
        }
    }

    fn restart(&mut self) {
        (self.behind, self.is_caught_up) = (0, false);
        self.shared.ready.send_replace(false);
        *self.shared.index_mut() = Index::default();
        // Cached messages belong to the old log.
        self.shared.frames.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
