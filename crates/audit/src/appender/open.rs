//! Opening or creating a log.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::disk::place;
use super::lines::own_record;
use super::{Appender, AppenderSettings, CHECKPOINTS, Counts, damaged};
use crate::Hash;
use crate::error::{AuditError, StorageContext};
use crate::keys::SigningKey;
use crate::model_request::Conversations;
use crate::phrases::too_few;
use crate::record::Kind;
use crate::storage::Storage;
use crate::tail::{Genesis, Tail, TailRemainder, is_odd_segment, segment_file, segment_number};

impl Appender {
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        settings: AppenderSettings,
        key: SigningKey,
        writer: String,
    ) -> Result<Self, AuditError> {
        let _lock = storage.lock().doing("locked")?;
        let files = storage.list("").doing("read")?;
        for left in files.iter().filter(|file| file.ends_with(".tmp")) {
            storage.remove(left).doing("read")?;
        }
        if let Some(file) = files.iter().find(|file| is_odd_segment(file)) {
            return Err(damaged(&format!("the file `{file}` is not a segment")));
        }
        let last = files.iter().filter_map(|file| segment_number(file)).max();
        let (tail, rest) = match last {
            Some(last) => load(&*storage, last)?,
            None if files.iter().any(|file| file == CHECKPOINTS) => return Err(AuditError::no_segments(true)),
            None => match &settings.log {
                Some(log) => return Err(AuditError::Gone { log: log.clone() }),
                None => (create(&*storage, &settings, &key, &writer)?, TailRemainder::Clean),
            },
        };
        if let Some(log) = settings.log.as_ref().filter(|log| **log != tail.log) {
            return Err(AuditError::Gone { log: log.clone() });
        }
        let mut appender = Self {
            safe: tail.clone(),
            begins: tail.clone(),
            tail,
            storage,
            settings,
            key,
            writer,
            lines: Vec::new(),
            last_line: 0,
            conversations: Conversations::default(),
            since_safe: Counts::new(),
            lost: Counts::new(),
            sessions: HashMap::new(),
            newest: None,
            kept_beside: None,
            outbox: None,
            is_synced: true,
            last_sync: Duration::ZERO,
            others_since_safe: false,
            breach: None,
            sync_failed: false,
            has_failed: false,
            uncut: None,
            sealing: Vec::new(),
            is_new_key: false,
        };
        appender.check_key()?;
        // Only the log itself claims to belong to the key, and anyone can write such a log.
        let is_claimed = appender.settings.key_file.is_some() && appender.settings.log.is_none() && last.is_some();
        // (A new log may lack its first checkpoint because its writer was killed.)
        if is_claimed && appender.tail.size > 1 && !appender.tail.is_signed {
            return Err(damaged("no part of the log is signed with the key"));
        }
        if let Err(error) = appender.begin(rest) {
            // The next writer must not take unsafe lines for safe ones.
            appender.take_back();
            for _ in 0..10 {
                if appender.cut_failed().is_ok() {
                    break;
                }
            }
            return Err(error);
        }
        Ok(appender)
    }

    /// Repairs the existing log, and signs a checkpoint if one is due.
    fn begin(&mut self, rest: TailRemainder) -> Result<(), AuditError> {
        // The last writer may have been killed before its sync.
        self.storage.sync(&segment_file(self.tail.segment)).doing("synced")?;
        self.storage.sync_folder("").doing("synced")?;
        self.settle_key();
        self.settle(rest)?;
        if self.tail.uncovered >= self.tail.every {
            self.put_checkpoint();
            self.sync()?;
            self.publish_checkpoint();
        }
        if let Some(size) = self.last_checkpoint()?
            && size > self.tail.size
        {
            self.breach(&too_few("beside the log", size, self.tail.size))?;
        }
        Ok(())
    }
}

pub(super) fn load(storage: &dyn Storage, segment: u64) -> Result<(Tail, TailRemainder), AuditError> {
    let file = segment_file(segment);
    let text = storage.read(&file, 0).doing("read")?;
    let mut tail = Tail::begin(segment, &text).map_err(|what| damaged(&format!("`{file}`: {what}")))?;
    let rest = tail.read(&text[tail.offset as usize..], |_| ());
    Ok((tail, rest))
}

fn create(
    storage: &dyn Storage,
    settings: &AppenderSettings,
    key: &SigningKey,
    writer: &str,
) -> Result<Tail, AuditError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(io::Error::other).doing("made")?;
    let log: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let body = Genesis { format: FORMAT.to_owned(), public_key: key.public(), every: settings.every };
    let draft = own_record(writer, Kind::Genesis, None, &body);
    let mut line = Vec::new();
    draft.append_hashed_line(&mut line, &log, 1, 0, &Hash::ZERO);
    place(storage, &segment_file(1), &line)?;
    Tail::begin(1, &line).map_err(|what| damaged(&what))
}

pub(crate) const FORMAT: &str = "amplifier-audit/1";
