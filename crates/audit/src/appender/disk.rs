//! Writing and syncing.

use std::io;
use std::time::Instant;

use super::{Appender, CHECKPOINTS};
use crate::error::{AuditError, StorageContext};
use crate::record::blob_file;
use crate::storage::Storage;
use crate::tail::segment_file;
use crate::{Durability, Hash};

impl Appender {
    pub(super) fn keep_blob(&self, hash: &Hash, body: &[u8]) -> io::Result<()> {
        let storage = &*self.storage;
        let file = blob_file(hash);
        if storage.size(&file)? == Some(body.len() as u64) {
            return Ok(());
        }
        let folder = &file[..file.len() - 65];
        let temporary = format!("{file}.tmp");
        storage.make_folder(folder)?;
        storage.remove(&temporary)?;
        let written = write_all(storage, &temporary, body)
            .and_then(|()| storage.sync(&temporary))
            .and_then(|()| storage.remove(&file))
            .and_then(|()| storage.rename(&temporary, &file));
        if let Err(error) = written {
            // A blob may have to be erased one day, so no part of it may remain elsewhere.
            storage.remove(&temporary)?;
            return Err(error);
        }
        // Without this, a loss of power can remove the blob, but not alter it.
        if self.settings.durability != Durability::Async {
            storage.sync_folder(folder)?;
            storage.sync_folder("blobs")?;
            storage.sync_folder("")?;
        }
        Ok(())
    }

    pub(super) fn write(&mut self) -> Result<(), AuditError> {
        if !self.lines.is_empty() {
            self.is_synced = false;
            write_all(&*self.storage, &segment_file(self.tail.segment), &self.lines).doing("written")?;
            self.lines.clear();
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), AuditError> {
        self.write()?;
        let begun = Instant::now();
        let synced = self.storage.sync(&segment_file(self.tail.segment));
        self.last_sync = begun.elapsed();
        self.sync_failed |= synced.is_err();
        synced.doing("synced")?;
        self.mark_safe();
        Ok(())
    }

    pub(super) fn mark_safe(&mut self) {
        self.is_synced = true;
        self.safe = self.tail.clone();
        self.begins = self.tail.clone();
        self.since_safe.clear();
        self.others_since_safe = false;
    }

    /// Stores the newest checkpoint beside the log, at intervals. Only a safe one: a checkpoint that covers lost records would look like an
    /// attack.
    pub(super) fn publish_checkpoint(&mut self) {
        let is_due = self.kept_beside.is_none_or(|at| at.elapsed() >= self.settings.checkpoint_after);
        let Some(signed) = self.newest.take_if(|_| self.is_synced && is_due) else { return };
        self.kept_beside = Some(Instant::now());
        let storage = &*self.storage;
        let kept = (|| {
            // Another writer may have been killed while writing a note.
            self.last_checkpoint().map_err(io::Error::other)?;
            let there = storage.size(CHECKPOINTS)?;
            let size = there.unwrap_or(0);
            let kept = write_all(storage, CHECKPOINTS, format!("{}\n", signed.note).as_bytes())
                .and_then(|()| storage.sync(CHECKPOINTS))
                .and_then(|()| if there.is_none() { storage.sync_folder("") } else { Ok(()) });
            if kept.is_err() {
                storage.truncate(CHECKPOINTS, size)?;
            }
            kept
        })();
        if let Err(error) = kept {
            // The checkpoint is also in its record; only the copy beside the log is missing.
            tracing::warn!(%error, "a checkpoint could not be stored beside the audit log");
        }
        self.outbox = Some(signed);
    }
}

/// Creates a file atomically and durably.
pub(super) fn place(storage: &dyn Storage, file: &str, text: &[u8]) -> Result<(), AuditError> {
    let temporary = format!("{file}.tmp");
    (|| {
        storage.remove(&temporary)?;
        write_all(storage, &temporary, text)?;
        storage.sync(&temporary)?;
        storage.rename(&temporary, file)?;
        storage.sync_folder("")
    })()
    .doing("written")
}

pub(super) fn write_all(storage: &dyn Storage, file: &str, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match storage.append(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
