//! Putting a log in order: after a crash, after a failure, and after whatever other writers did.

use serde::Serialize;

use super::{Appender, CHECKPOINTS, damaged, load, write_all};
use crate::Hash;
use crate::error::{AuditError, Doing};
use crate::note::{Checkpoint, Note, split_notes};
use crate::record::Kind;
use crate::tail::{Rest, segment_file};

/// So many bytes hold a hundred checkpoints and more.
const END_OF_CHECKPOINTS: u64 = 64 << 10;

impl Appender {
    /// Moves aside what a failed batch left in the file, unless another process went on after it.
    pub(super) fn drop_failed(&mut self) -> Result<(), AuditError> {
        let file = segment_file(self.tail.segment);
        let rest = self.storage.read(&file, self.tail.offset).doing("read")?;
        let mut ahead = self.tail.clone();
        let mut others = false;
        ahead.read(&rest, |record| others |= record.writer != self.writer);
        others |= self.storage.size(&segment_file(self.tail.segment + 1)).doing("read")?.is_some();
        if !rest.is_empty() && !others {
            self.set_aside(&file, &rest)?;
        }
        Ok(())
    }

    /// Reads what other processes appended. If that fails, it begins again at the last sync the next time: what was
    /// appended after that may be taken back by whoever appended it.
    pub(super) fn catch_up(&mut self) -> Result<(), AuditError> {
        self.try_catch_up().inspect_err(|_| {
            self.lines.clear();
            self.tail = self.safe.clone();
            self.has_failed = true;
        })
    }

    fn try_catch_up(&mut self) -> Result<(), AuditError> {
        loop {
            let file = segment_file(self.tail.segment);
            let next = segment_file(self.tail.segment + 1);
            let size = self.storage.size(&file).doing("read")?.ok_or_else(|| damaged(&format!("`{file}` is gone")))?;
            let is_last = self.storage.size(&next).doing("read")?.is_none();
            if size == self.tail.offset && is_last {
                return self.check_key();
            }
            if size < self.tail.offset {
                let (tail, _) = load(&*self.storage, self.tail.segment)?;
                self.tail = tail;
                return self.breach(&format!("`{file}` was cut to {size} bytes while it was open"));
            }
            let rest = self.storage.read(&file, self.tail.offset).doing("read")?;
            let rest = self.tail.read(&rest, |_| ());
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
            self.settle(rest)?;
        }
    }

    /// Deals with what follows the last whole record.
    pub(super) fn settle(&mut self, rest: Rest) -> Result<(), AuditError> {
        match rest {
            Rest::Clean => Ok(()),
            Rest::Torn => self.recover(),
            Rest::Breach(what) => self.breach(&what),
        }
    }

    fn recover(&mut self) -> Result<(), AuditError> {
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
        let sha256 = Hash::of(&rest);
        self.put_own(Kind::Recovery, None, &Recovery { segment, offset, bytes: rest.len(), torn, sha256 });
        self.sync()
    }

    /// Leaves everything as it was found, and goes on in a new segment.
    pub(super) fn breach(&mut self, what: &str) -> Result<(), AuditError> {
        #[derive(Serialize)]
        struct Breach<'a> {
            what: &'a str,
            segment: String,
            offset: u64,
        }
        tracing::error!(what, "the audit log was tampered with, or its disk is broken");
        let breach = Breach { what, segment: segment_file(self.tail.segment), offset: self.tail.offset };
        self.begin_segment()?;
        self.put_own(Kind::Breach, None, &breach);
        self.put_checkpoint();
        self.kept_beside = None;
        self.sync()?;
        self.hand_out();
        Ok(())
    }

    /// Moves the end of a segment to a file of its own; gives the file's name.
    fn set_aside(&self, segment: &str, rest: &[u8]) -> Result<String, AuditError> {
        let storage = &*self.storage;
        let from = storage.size(segment).doing("read")?.unwrap_or(0).saturating_sub(rest.len() as u64);
        let name = format!("torn/{segment}.{from}.{}", &Hash::of(rest).to_string()[..16]);
        storage.make_folder("torn").doing("repaired")?;
        storage.remove(&name).doing("repaired")?;
        write_all(storage, &name, rest).doing("repaired")?;
        storage.sync(&name).doing("repaired")?;
        storage.sync_folder("torn").doing("repaired")?;
        storage.truncate(segment, from).doing("repaired")?;
        storage.sync(segment).doing("repaired")?;
        Ok(name)
    }

    /// How many records the last checkpoint beside the log covers. What a crash left half written there is cut off.
    pub(super) fn last_checkpoint(&self) -> Result<Option<u64>, AuditError> {
        let storage = &*self.storage;
        let Some(size) = storage.size(CHECKPOINTS).doing("read")? else { return Ok(None) };
        // The end is enough: the file grows for years.
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
