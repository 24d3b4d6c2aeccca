//! Reads the records of a log one after another.

use std::ops::ControlFlow;

use crate::Hash;
use crate::error::{AuditError, Doing};
use crate::merkle::{Frontier, Tree};
use crate::record::{Kind, Record};
use crate::storage::Storage;
use crate::tail::{Segment, segment_file, segment_number};

/// The segments that are there, in order.
pub(crate) fn segments(storage: &dyn Storage) -> Result<Vec<u64>, AuditError> {
    let files = storage.list("").doing("read")?;
    let mut segments: Vec<u64> = files.iter().filter_map(|file| segment_number(file)).collect();
    segments.sort_unstable();
    Ok(segments)
}

/// Shows every record to `visit`, in order, until that breaks off. Hashes are checked, the chain is not: see
/// [`Verifier`](crate::Verifier).
///
/// # Errors
/// If a line is no record, or the log cannot be read.
pub fn read_records(
    storage: &dyn Storage,
    mut visit: impl FnMut(&Record<'_>) -> ControlFlow<()>,
) -> Result<(), AuditError> {
    for segment in segments(storage)? {
        let file = segment_file(segment);
        let text = storage.read(&file, 0).doing("read")?;
        for (number, line) in lines(&text).enumerate() {
            let record = Record::parse(line)
                .map_err(|error| AuditError::Damaged { what: format!("line {} of `{file}`: {error}", number + 1) })?;
            if visit(&record).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The Merkle tree of a log, for proofs.
///
/// # Errors
/// If a line is no record, or the log cannot be read.
pub fn read_tree(storage: &dyn Storage) -> Result<Tree, AuditError> {
    let mut base = None;
    let mut leaves: Vec<Hash> = Vec::new();
    read_records(storage, |record| {
        let base = base.get_or_insert_with(|| match (record.kind, record.body::<Segment>()) {
            (Kind::Segment, Ok(body)) => Frontier::from_nodes(record.seq, body.frontier),
            _ => Some(Frontier::new()),
        });
        leaves.push(record.h);
        if base.is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match base {
        Some(None) => {
            Err(AuditError::Damaged { what: "its first segment has a frontier that does not fit".to_owned() })
        }
        base => Ok(Tree::new(base.flatten().unwrap_or_default(), leaves)),
    }
}

/// The lines of a text; the last one may lack its line feed.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}
