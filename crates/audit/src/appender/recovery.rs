//! Recovery after a crash, after a failure, and after changes by other writers.

use serde::Serialize;

use super::disk::write_all;
use super::open::load;
use super::{Appender, CHECKPOINTS, add, damaged};
use crate::Hash;
use crate::error::{AuditError, StorageContext};
use crate::note::{Checkpoint, Note, split_notes};
use crate::reader::segments;
use crate::record::Kind;
use crate::tail::{TailRemainder, segment_file};

/// Room for more than a hundred checkpoints.
const END_OF_CHECKPOINTS: u64 = 64 << 10;

impl Appender {
    /// Goes back to the beginning of the failed lines, and removes them from the file while no other process can follow them.
    pub(super) fn take_back(&mut self) {
        self.conversations.clear();
        // With `async` durability, a failed sync also loses earlier writes, unless other writers have continued after them.
        if std::mem::take(&mut self.sync_failed) && !self.others_since_safe {
            add(&mut self.lost, std::mem::take(&mut self.since_safe));
            self.begins = self.safe.clone();
        }
        for (session, counts) in std::mem::take(&mut self.sealing) {
            add(self.sessions.entry(session).or_default(), counts);
        }
        self.lines.clear();
        self.newest = None;
        self.has_failed = true;
        self.tail = self.begins.clone();
        if self.cut().is_err() {
            self.uncut = Some(self.tail.clone());
        }
    }

    /// Moves the bytes after the tail aside; without room for that, deletes them.
    fn cut(&self) -> Result<(), AuditError> {
        let file = segment_file(self.tail.segment);
        let rest = self.storage.read(&file, self.tail.offset).doing("read")?;
        if rest.is_empty() || self.set_aside(&file, &rest).is_ok() {
            return Ok(());
        }
        self.storage.truncate(&file, self.tail.offset).doing("repaired")
    }

    /// Repeats a failed cut, unless another process has continued after the failed lines.
    pub(super) fn cut_failed(&mut self) -> Result<(), AuditError> {
        let Some(tail) = self.uncut.clone() else { return Ok(()) };
        let rest = self.storage.read(&segment_file(tail.segment), tail.offset).doing("read")?;
        let mut others = self.storage.size(&segment_file(tail.segment + 1)).doing("read")?.is_some();
        let mut past = tail.clone();
        past.read(&rest, |record| others |= record.writer != self.writer);
        // Another process may also have deleted the key that a failed rotation was to replace.
        others |= past.key != tail.key && self.is_settled(&past.key);
        if !others {
            self.tail = tail;
            self.cut()?;
        }
        self.uncut = None;
        Ok(())
    }

    /// Reads the records of other processes. After a failure, the next call begins at the last sync: its writer may take back
    /// later records.
    pub(super) fn catch_up(&mut self) -> Result<(), AuditError> {
        self.try_catch_up().inspect_err(|_| {
            self.lines.clear();
            self.conversations.clear();
            self.tail = self.safe.clone();
            self.has_failed = true;
        })
    }

    fn try_catch_up(&mut self) -> Result<(), AuditError> {
        loop {
            let file = segment_file(self.tail.segment);
            let next = segment_file(self.tail.segment + 1);
            let Some(size) = self.storage.size(&file).doing("read")? else {
                self.skip_removed()?;
                continue;
            };
            let is_last = self.storage.size(&next).doing("read")?.is_none();
            if size == self.tail.offset && is_last {
                return self.check_key();
            }
            if size < self.tail.offset {
                self.conversations.clear();
                // A writer takes back its own unsafe lines, never more.
                if self.safe.segment == self.tail.segment && size >= self.safe.offset && self.tail.size > self.safe.size
                {
                    self.tail = self.safe.clone();
                    continue;
                }
                let (tail, _) = load(&*self.storage, self.tail.segment)?;
                self.tail = tail;
                if is_last {
                    return self.breach(&format!("`{file}` was cut to {size} bytes while it was open"));
                }
            }
            let rest = self.storage.read(&file, self.tail.offset).doing("read")?;
            let mut others = false;
            let rest = self.tail.read(&rest, |record| others |= record.writer != self.writer);
            self.others_since_safe |= others;
            self.is_synced = false;
            if is_last {
                self.settle(rest)?;
                continue;
            }
            let (tail, rest) = load(&*self.storage, self.tail.segment + 1)?;
            if tail.log != self.tail.log || tail.follows != (self.tail.size, self.tail.head) {
                return Err(damaged(&format!("`{next}` does not follow `{file}`")));
            }
            self.tail = tail;
            self.others_since_safe = true;
            self.settle(rest)?;
        }
    }

    /// Continues after segments that another process has removed.
    fn skip_removed(&mut self) -> Result<(), AuditError> {
        let first = segments(&*self.storage)?.into_iter().find(|&segment| segment > self.tail.segment);
        let first = first.ok_or_else(|| damaged("all segments are missing"))?;
        let (tail, rest) = load(&*self.storage, first)?;
        if tail.log != self.tail.log || tail.follows.0 < self.tail.size {
            return Err(damaged(&format!("`{}` does not follow the earlier records", segment_file(first))));
        }
        self.tail = tail;
        self.others_since_safe = true;
        self.settle(rest)
    }

    pub(super) fn settle(&mut self, rest: TailRemainder) -> Result<(), AuditError> {
        match rest {
            TailRemainder::Clean => Ok(()),
            TailRemainder::Torn => self.recover(),
            TailRemainder::Breach(what) => self.breach(&what),
        }
    }

    fn recover(&mut self) -> Result<(), AuditError> {
        // The killed writer may have rotated keys before.
        self.check_key()?;
        #[derive(Serialize)]
        struct Recovery {
            segment: String,
            offset: u64,
            bytes: usize,
            torn: String,
            sha256: Hash,
        }
        let segment = segment_file(self.tail.segment);
        let offset = self.tail.offset;
        let rest = self.storage.read(&segment, offset).doing("read")?;
        let torn = self.set_aside(&segment, &rest)?;
        let sha256 = Hash::sha256(&rest);
        self.put_own(Kind::Recovery, None, &Recovery { segment, offset, bytes: rest.len(), torn, sha256 });
        self.sync()
    }

    /// Records a breach in a new segment, and leaves the existing files unchanged.
    pub(super) fn breach(&mut self, what: &str) -> Result<(), AuditError> {
        #[derive(Serialize)]
        struct Breach<'a> {
            what: &'a str,
            segment: String,
            offset: u64,
        }
        self.check_key()?;
        tracing::error!(what, "the audit log was tampered with, or its disk is broken");
        let breach = Breach { what, segment: segment_file(self.tail.segment), offset: self.tail.offset };
        self.breach = Some(what.to_owned());
        self.begin_segment()?;
        self.put_own(Kind::Breach, None, &breach);
        self.put_checkpoint();
        self.kept_beside = None;
        self.sync()?;
        self.publish_checkpoint();
        Ok(())
    }

    /// Moves the end of a segment to a separate file; returns the file's name.
    fn set_aside(&self, segment: &str, rest: &[u8]) -> Result<String, AuditError> {
        let storage = &*self.storage;
        let from = storage.size(segment).doing("read")?.unwrap_or(0).saturating_sub(rest.len() as u64);
        let name = format!("torn/{segment}.{from}.{}", &Hash::sha256(rest).to_string()[..16]);
        storage.make_folder("torn").doing("repaired")?;
        storage.sync_folder("").doing("repaired")?;
        storage.remove(&name).doing("repaired")?;
        write_all(storage, &name, rest).doing("repaired")?;
        storage.sync(&name).doing("repaired")?;
        storage.sync_folder("torn").doing("repaired")?;
        storage.truncate(segment, from).doing("repaired")?;
        storage.sync(segment).doing("repaired")?;
        Ok(name)
    }

    /// Returns the size of the last checkpoint beside the log, and cuts off a torn note.
    pub(super) fn last_checkpoint(&self) -> Result<Option<u64>, AuditError> {
        let storage = &*self.storage;
        let Some(size) = storage.size(CHECKPOINTS).doing("read")? else { return Ok(None) };
        // Only the end is read, because the file grows for years.
        let from = size.saturating_sub(END_OF_CHECKPOINTS);
        let bytes = storage.read(CHECKPOINTS, from).doing("read")?;
        let mut end = from;
        let mut last = None;
        for text in split_notes(&bytes).0 {
            end += text.len() as u64 + 1;
            if let Ok(note) = Note::parse(text)
                && let Ok(checkpoint) = Checkpoint::read(&note)
            {
                last = Some((end, checkpoint.size, note));
            }
        }
        let whole = last.as_ref().map_or(0, |(end, ..)| *end);
        if whole < size && (from == 0 || last.is_some()) {
            storage.truncate(CHECKPOINTS, whole).doing("repaired")?;
        }
        let name = Checkpoint::origin(&self.tail.log);
        Ok(last.filter(|(.., note)| note.is_signed_by(&name, &self.tail.key)).map(|(_, size, _)| size))
    }
}
