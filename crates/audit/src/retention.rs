//! Removal of whole segments, and of the blobs that only they refer to.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

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

/// Returns the number of records, from the first one on, that retention may remove.
pub(crate) type RetentionLimit = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The plan of a retention.
pub(crate) struct RetentionPlan {
    pub(crate) change: Option<LogChange>,
    /// The number of segments that stay only because of the limit.
    pub(crate) limited: usize,
}

/// Plans the removal of the oldest segments, so that `keep` are left: only those in which every session is sealed, and all records are
/// removable; and never the current one.
pub(crate) fn plan(
    storage: &dyn Storage,
    keep: usize,
    current: u64,
    removable: u64,
) -> Result<RetentionPlan, AuditError> {
    struct SessionSpan {
        first: u64,
        is_sealed: bool,
    }
    let mut sessions: HashMap<String, SessionSpan> = HashMap::new();
    let mut blobs: HashMap<String, u64> = HashMap::new();
    // The first segment with a record that must stay.
    let mut limit = u64::MAX;
    read_records(storage, |record| {
        if record.seq >= removable {
            limit = limit.min(record.seg);
        }
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
    let unlimited: Vec<u64> = all.into_iter().take(most).filter(|&segment| segment < end).collect();
    let (removed, limited) = unlimited.split_at(unlimited.partition_point(|&segment| segment < limit));
    let change = removed.last().map(|last| LogChange::Retention {
        before: last + 1,
        segments: removed.iter().map(|&segment| segment_file(segment)).collect(),
        note: String::new(),
        blobs: blobs.into_iter().filter(|(_, segment)| segment <= last).map(|(file, _)| file).collect(),
    });
    Ok(RetentionPlan { change, limited: limited.len() })
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
