//! Verification of logs: every byte, every link, every signature.

mod check;
mod verification;

use std::path::Path;

use self::check::Check;
pub use self::verification::{Advance, Verification};
use crate::error::{AuditError, StorageContext};
use crate::keys::PublicKey;
use crate::note::{Checkpoint, Note, NoteError, split_notes};
use crate::reader::segments;
use crate::report::{Problem, Report};
use crate::storage::{Folder, RecordSource};
use crate::tail::{is_odd_segment, segment_file};

/// The progress of a verification.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The number of checked bytes.
    pub bytes: u64,
    /// The number of all bytes.
    pub of: u64,
    /// The number of checked records.
    pub records: u64,
}

/// Checks logs, with keys and checkpoints from external sources.
///
/// ```
/// use amplifier_audit::{Log, Verifier};
///
/// # let folder = tempfile::tempdir()?;
/// # let (path, key) = (folder.path().join("audit"), folder.path().join("audit.key"));
/// # Log::at(&path, &key).open()?.close()?;
/// let report = Verifier::new().folder(&path)?;
/// assert!(report.is_sound());
/// println!("{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Verifier<'a> {
    key: Option<PublicKey>,
    known: Vec<KnownCheckpoint>,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
}

#[derive(Clone)]
pub(crate) struct KnownCheckpoint {
    note: Note,
    checkpoint: Checkpoint,
    is_beside: bool,
}

fn without_segments(storage: &dyn RecordSource, known: &[KnownCheckpoint]) -> AuditError {
    let has_none = known.is_empty() && matches!(storage.size("checkpoints"), Ok(None));
    AuditError::no_segments(!has_none)
}

/// Normalizes external notes: exactly one empty line after each, without additional ones.
fn as_written(kept: &[u8]) -> Vec<u8> {
    let mut notes = Vec::with_capacity(kept.len() + 1);
    for &byte in kept {
        if byte != b'\n' || !(notes.is_empty() || notes.ends_with(b"\n\n")) {
            notes.push(byte);
        }
    }
    if notes.ends_with(b"\n") && !notes.ends_with(b"\n\n") {
        notes.push(b'\n');
    }
    notes
}

impl<'a> Verifier<'a> {
    /// Creates a verifier without external keys and checkpoints.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires that the log is signed with this key.
    #[must_use]
    pub fn key(mut self, key: PublicKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Requires that the log has the records of these checkpoints: the content of an anchor, one note after another. Empty text has no effect.
    ///
    /// # Errors
    /// If the text is not empty and has no valid checkpoint.
    pub fn checkpoints(mut self, text: &[u8]) -> Result<Self, NoteError> {
        // A torn note does not invalidate the others.
        let mut torn = NoteError::Nothing;
        let before = self.known.len();
        for text in split_notes(&as_written(text)).0 {
            match Note::parse(text).and_then(|note| Ok((Checkpoint::read(&note)?, note))) {
                Ok((checkpoint, note)) => self.known.push(KnownCheckpoint { note, checkpoint, is_beside: false }),
                Err(error) => torn = error,
            }
        }
        if self.known.len() > before || text.is_empty() { Ok(self) } else { Err(torn) }
    }

    /// Sets a callback for the progress.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Checks the log in a folder.
    ///
    /// # Errors
    /// If the log is missing or cannot be read. Problems *in* the log are in the report.
    pub fn folder(self, path: impl AsRef<Path>) -> Result<Report, AuditError> {
        self.storage(&Folder::new(path.as_ref()))
    }

    /// Checks a log in another storage.
    ///
    /// # Errors
    /// As [`folder`](Verifier::folder).
    pub fn storage(mut self, storage: &dyn RecordSource) -> Result<Report, AuditError> {
        let mut check = Check::new(self.key);
        // First the checkpoints, then the records: a growing log may only have more records.
        check.read_beside(storage, &mut self.known)?;
        let segments = segments(storage)?;
        if segments.is_empty() {
            return Err(without_segments(storage, &self.known));
        }
        let mut sizes = Vec::with_capacity(segments.len());
        for segment in &segments {
            sizes.push(storage.size(&segment_file(*segment)).doing("read")?.unwrap_or(0));
        }
        for file in storage.list("").doing("read")? {
            if is_odd_segment(&file) {
                check.add_finding(Problem::Unreadable, 0, 0, format!("the file `{file}` is not a segment"));
            }
        }
        check.first_segment = segments[0];
        self.known.sort_by_key(|known| known.checkpoint.size);
        check.known = self.known;
        let mut progress = Progress { bytes: 0, of: sizes.iter().sum(), records: 0 };
        for (index, (&segment, size)) in segments.iter().zip(&sizes).enumerate() {
            if index > 0 && segment != segments[index - 1] + 1 {
                check.add_finding(
                    Problem::Deleted,
                    segment,
                    0,
                    format!("segment {} is missing", segments[index - 1] + 1),
                );
            }
            check.segment(storage, segment, index + 1 == segments.len(), |records, bytes| {
                if let Some(tell) = &mut self.progress {
                    tell(Progress { records, bytes: progress.bytes + bytes, ..progress });
                }
            })?;
            progress.bytes += size;
        }
        Ok(check.finish())
    }
}
