//! Removing what need not be kept: whole segments, and blobs that only they refer to.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::error::{AuditError, Doing};
use crate::read::{read_records, segments};
use crate::record::{Blob, Kind, blob_file};
use crate::storage::Storage;
use crate::tail::segment_file;

/// What is to be removed.
pub(crate) struct Plan {
    pub(crate) files: Vec<String>,
    blobs: HashSet<String>,
}

/// The oldest segments, so that `keep` are left: only those in which every session is sealed, and never the current one.
pub(crate) fn plan(storage: &dyn Storage, keep: usize, current: u64) -> Result<Plan, AuditError> {
    #[derive(Default)]
    struct Session {
        first: u64,
        is_sealed: bool,
    }
    let mut sessions: HashMap<String, Session> = HashMap::new();
    let mut blobs: HashMap<String, u64> = HashMap::new();
    read_records(storage, |record| {
        if let Some(session) = &record.session {
            let entry =
                sessions.entry(session.clone()).or_insert_with(|| Session { first: record.seg, is_sealed: false });
            entry.is_sealed = record.kind == Kind::Seal;
        }
        if let Some(hash) = record.body::<Blob<'_>>().ok().and_then(|blob| blob.hash()) {
            // The last segment that refers to it counts.
            blobs.insert(blob_file(&hash), record.seg);
        }
        ControlFlow::Continue(())
    })?;
    let unsealed = sessions.values().filter(|session| !session.is_sealed).map(|session| session.first).min();
    let all = segments(storage)?;
    let most = all.len().saturating_sub(keep.max(1));
    let before = unsealed.unwrap_or(u64::MAX).min(current);
    let removed: Vec<u64> = all.into_iter().take(most).filter(|&segment| segment < before).collect();
    let last = removed.last().copied().unwrap_or(0);
    Ok(Plan {
        files: removed.iter().map(|&segment| segment_file(segment)).collect(),
        blobs: blobs.into_iter().filter(|(_, segment)| *segment <= last).map(|(file, _)| file).collect(),
    })
}

pub(crate) fn carry_out(storage: &dyn Storage, plan: &Plan) -> Result<(), AuditError> {
    for file in &plan.files {
        storage.remove(file).doing("shortened")?;
    }
    storage.sync_folder("").doing("shortened")?;
    remove(storage, &plan.blobs)
}

/// Removes blobs for good.
pub(crate) fn remove(storage: &dyn Storage, blobs: &HashSet<String>) -> Result<(), AuditError> {
    for file in blobs {
        let existed = storage.size(file).doing("shortened")?.is_some();
        storage.remove(file).doing("shortened")?;
        if existed && let Some((folder, _)) = file.rsplit_once('/') {
            storage.sync_folder(folder).doing("shortened")?;
        }
    }
    Ok(())
}
