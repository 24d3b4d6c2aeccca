//! Reads the audit log as it grows.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use amplifier_audit::{Bodies, Hash, Record, Storage};

use super::query::as_sent;
use super::{Shared, index::Index};

/// How often is looked while something changes, and when nothing has for a while.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(250);

/// So much is taken in before others may look.
const AT_ONCE: usize = 512 << 10;

/// More new bytes than this at once are not held for those who watch: they read them from the log.
const TOO_MANY: u64 = 4 << 20;

/// How far the log was read.
#[derive(Default)]
struct Place {
    segment: u64,
    /// Where the last whole line ends.
    offset: u64,
    /// The file that was read: a file of the same name can be another one.
    inode: u64,
    /// The hash of the last record.
    head: Option<Hash>,
    /// How far records stand behind the numbers that they have.
    behind: u64,
}

/// Follows the log until it is told to stop.
pub(super) fn follow(shared: &Arc<Shared>) {
    let mut follower = Follower { shared, place: Place::default(), again: None, is_anew: false, bodies: Bodies::new() };
    let mut wait = SOON;
    while !shared.is_stopped() {
        follower.is_anew = false;
        let looked = follower.look();
        // One that has begun anew has not read to the end yet.
        shared.ready.send_if_modified(|ready| std::mem::replace(ready, !follower.is_anew) == follower.is_anew);
        if follower.is_anew {
            continue;
        }
        match looked {
            Ok(true) => wait = SOON,
            Ok(false) => wait = (wait * 2).min(LATER),
            Err(error) => {
                shared.cannot_read(Some(&error));
                wait = LATER;
            }
        }
        shared.sleep(wait);
    }
}

struct Follower<'a> {
    shared: &'a Arc<Shared>,
    place: Place,
    /// Where the log was begun anew because what follows does not fit: once is enough.
    again: Option<(u64, u64)>,
    /// Whether the last look has found that everything has to be read again.
    is_anew: bool,
    bodies: Bodies,
}

impl Follower<'_> {
    /// Takes in what was added; says whether anything was.
    fn look(&mut self) -> io::Result<bool> {
        let folder = &self.shared.folder;
        // Listed before anything is read: if there is a later segment by now, nothing is added to the earlier ones.
        let mut segments: Vec<u64> = folder.list("")?.iter().filter_map(|file| segment_number(file)).collect();
        segments.sort_unstable();
        self.shared.cannot_read(None);
        let before = self.shared.index().cursor;
        // The segment that is read never goes by retention, unless there is a later one.
        if self.place.segment > 0 && segments.last().is_none_or(|last| *last < self.place.segment) {
            self.begin_anew();
        }
        if let Some(&first) = segments.first()
            && self.shared.index().blocks.front().is_some_and(|block| block.segment < first)
        {
            self.shared.index_mut().remove_before(first);
        }
        for segment in segments {
            if segment < self.place.segment {
                continue;
            }
            if segment > self.place.segment {
                let Place { head, behind, .. } = self.place;
                self.place = Place { segment, head, behind, ..Place::default() };
            }
            if !self.read_segment()? {
                break;
            }
        }
        let after = self.shared.index().cursor;
        if after != before {
            self.shared.changed.send_replace(after);
        }
        Ok(after != before)
    }

    /// Takes in the whole lines that were added to the segment; says whether the next one can be read.
    fn read_segment(&mut self) -> io::Result<bool> {
        let path = self.shared.folder.path().join(segment_file(self.place.segment));
        let file = match File::open(path) {
            Ok(file) => file,
            // Retention has removed it meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other(format!("`{}` is not a file", segment_file(self.place.segment))));
        }
        if self.place.inode != about.ino() {
            if self.place.inode != 0 {
                self.begin_anew();
                return Ok(false);
            }
            self.place.inode = about.ino();
        }
        let size = about.len();
        if size < self.place.offset {
            self.begin_anew();
            return Ok(false);
        }
        let is_fresh = size - self.place.offset <= TOO_MANY && self.shared.index().cursor > 0;
        if !is_fresh && size > self.place.offset {
            self.shared.index_mut().forget_fresh();
        }
        let mut text = Vec::new();
        let mut at = self.place.offset;
        while at < size {
            let begin = text.len();
            text.resize(begin + usize::try_from(size - at).unwrap_or(AT_ONCE).min(AT_ONCE), 0);
            let read = file.read_at(&mut text[begin..], at)?;
            if read == 0 {
                break;
            }
            text.truncate(begin + read);
            at += read as u64;
            let Some(end) = memchr::memrchr(b'\n', &text) else { continue };
            if !self.take_in(&text[..=end], is_fresh) {
                return Ok(false);
            }
            text.drain(..=end);
            // The first look takes a while, and what is known already can be asked for.
            if !is_fresh {
                self.shared.changed.send_replace(self.shared.index().cursor);
            }
            if self.shared.is_stopped() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes in whole lines; false if the log has to be read from its beginning.
    fn take_in(&mut self, text: &[u8], is_fresh: bool) -> bool {
        let shared = self.shared;
        // Parsed before the lock is taken, and each line once.
        let mut lines = Vec::with_capacity(text.len() / 512);
        let mut offset = self.place.offset;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let end = offset + line.len() as u64;
            let mut record = Record::parse(line.strip_suffix(b"\n").unwrap_or(line)).ok();
            if let Some(record) = &mut record {
                // The writer of a broken log goes on in a new segment from the last record that fits, with numbers that were given already.
                // Here each record has the number of its place, so that nobody misses what happens from then on.
                if offset == 0 {
                    let cursor = shared.index().cursor;
                    self.place.behind = self.place.behind.max(cursor.saturating_sub(record.seq));
                }
                record.seq += self.place.behind;
            }
            let sent =
                record.as_ref().filter(|_| is_fresh).map(|record| as_sent(record, &shared.folder, &mut self.bodies));
            lines.push((record, offset, end, sent));
            offset = end;
        }
        // A writer whose disk failed goes back to what is safe, and what was read may have been written anew.
        let follows = lines.first().is_none_or(|(record, ..)| match (record, self.place.head) {
            (_, None) => true,
            (Some(record), Some(head)) => record.prev == head,
            (None, Some(_)) => false,
        });
        let here = (self.place.segment, self.place.offset);
        if !follows && self.again != Some(here) {
            self.begin_anew();
            self.again = Some(here);
            return false;
        }
        let mut index = shared.index_mut();
        for (record, offset, end, sent) in lines {
            let Some(record) = record else {
                index.see_broken();
                continue;
            };
            let belongs = index.see(&record, offset, end, self.place.behind, &shared.folder);
            self.place.head = Some(record.h);
            if let Some(sent) = sent.filter(|_| belongs) {
                index.keep_fresh(record.seq, record.line(), sent);
            }
        }
        self.place.offset = offset;
        true
    }

    fn begin_anew(&mut self) {
        self.place = Place::default();
        self.is_anew = true;
        self.shared.ready.send_replace(false);
        *self.shared.index_mut() = Index::default();
        // Those of another log are not those of this one.
        self.shared.frames.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The file of a segment.
pub(super) fn segment_file(number: u64) -> String {
    format!("seg-{number:06}.jsonl")
}

/// The number of the segment in a file of that name.
pub(super) fn segment_number(file: &str) -> Option<u64> {
    let number = file.strip_prefix("seg-")?.strip_suffix(".jsonl")?.parse::<u32>().ok()?.into();
    (segment_file(number) == file).then_some(number)
}
