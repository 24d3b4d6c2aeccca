//! Removal of whole segments, and of the blobs that only they refer to.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::Hash;
use crate::error::{AuditError, StorageContext};
use crate::reader::{read_records, segments};
use crate::record::{Blob, Kind, blob_file};
use crate::storage::Storage;
use crate::tail::segment_file;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogChange {
    /// Segments were removed.
    Retention {
        /// The first remaining segment.
        before: u64,
        segments: Vec<String>,
        /// A note signed with the active key: an unsigned record could be forged.
        note: String,
        #[serde(skip)]
        blobs: HashSet<String>,
    },
    /// A large body was erased.
    Erasure { blob: String },
}

/// Plans the removal of the oldest segments, so that `keep` are left: only those in which every session is sealed, and never the
/// current one.
pub(crate) fn plan(storage: &dyn Storage, keep: usize, current: u64) -> Result<Option<LogChange>, AuditError> {
    struct SessionSpan {
        first: u64,
        is_sealed: bool,
    }
    let mut sessions: HashMap<String, SessionSpan> = HashMap::new();
    let mut blobs: HashMap<String, u64> = HashMap::new();
    read_records(storage, |record| {
        if let Some(session) = &record.session {
            let entry = sessions
                .entry(session.to_string())
                .or_insert_with(|| SessionSpan { first: record.seg, is_sealed: false });
            entry.is_sealed = record.kind == Kind::Seal;
        }
        if let Some(hash) = record.body::<Blob<'_>>().ok().and_then(|blob| blob.hash()) {
            // The last reference counts.
            blobs.insert(blob_file(&hash), record.seg);
        }
        ControlFlow::Continue(())
    })?;
    let unsealed = sessions.values().filter(|session| !session.is_sealed).map(|session| session.first).min();
    let all = segments(storage)?;
    let most = all.len().saturating_sub(keep.max(1));
    let end = unsealed.unwrap_or(u64::MAX).min(current);
    let removed: Vec<u64> = all.into_iter().take(most).filter(|&segment| segment < end).collect();
    Ok(removed.last().map(|last| LogChange::Retention {
        before: last + 1,
        segments: removed.iter().map(|&segment| segment_file(segment)).collect(),
        note: String::new(),
        blobs: blobs.into_iter().filter(|(_, segment)| segment <= last).map(|(file, _)| file).collect(),
    }))
}

pub(crate) fn erasure(blob: &Hash) -> LogChange {
    LogChange::Erasure { blob: format!("sha256:{blob}") }
}

pub(crate) fn carry_out(storage: &dyn Storage, change: &LogChange) -> Result<(), AuditError> {
    match change {
        LogChange::Retention { segments, blobs, .. } => {
            // Blobs first: after an interruption, the segments still name the remaining ones.
            blobs.iter().try_for_each(|file| remove_blob(storage, file))?;
            for file in segments {
                storage.remove(file).doing("shortened")?;
            }
            storage.sync_folder("").doing("shortened")
        }
        LogChange::Erasure { blob } => match Blob::hash_in(blob) {
            Some(hash) => remove_blob(storage, &blob_file(&hash)),
            None => Ok(()),
        },
    }
}

/// Removes a blob permanently, with the leftovers of a killed writer.
fn remove_blob(storage: &dyn Storage, file: &str) -> Result<(), AuditError> {
    let temporary = format!("{file}.tmp");
    for file in [file, &temporary] {
        if storage.size(file).doing("shortened")?.is_some() {
            storage.remove(file).doing("shortened")?;
            if let Some((folder, _)) = file.rsplit_once('/') {
                storage.sync_folder(folder).doing("shortened")?;
            }
        }
    }
    Ok(())
}
