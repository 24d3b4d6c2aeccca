//! Checks a log: every byte, every link, every signature.

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

/// How far a verification has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// How many bytes of records were checked.
    pub bytes: u64,
    /// How many there are.
    pub of: u64,
    /// How many records were checked.
    pub records: u64,
}

/// Checks logs. Knows what the verifier knows from elsewhere: keys and checkpoints that were kept in a second place.
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
    /// Whether it comes from the file beside the log.
    is_beside: bool,
}

/// Why a log that has no segments cannot be verified.
fn without_segments(storage: &dyn RecordSource, known: &[KnownCheckpoint]) -> AuditError {
    let has_none = known.is_empty() && matches!(storage.size("checkpoints"), Ok(None));
    AuditError::no_segments(!has_none)
}

/// Notes that were kept elsewhere, as a log has them: with one empty line after each. Whoever kept them may have added more, or left out the last.
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
    /// A verifier that knows nothing but what the log says.
    pub fn new() -> Self {
        Self::default()
    }

    /// The log must be signed with this key.
    #[must_use]
    pub fn key(mut self, key: PublicKey) -> Self {
        self.key = Some(key);
        self
    }

    /// The log must contain what these checkpoints cover: the content of an anchor, one note after another. Nothing says nothing.
    ///
    /// # Errors
    /// If there is something else in it, and no checkpoint.
    pub fn checkpoints(mut self, text: &[u8]) -> Result<Self, NoteError> {
        // A note that a crash tore does not take away what the others prove.
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

    /// Is told how far the verification has come.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Checks the log in a folder.
    ///
    /// # Errors
    /// If there is no log, or it cannot be read. What is wrong *in* it stands in the report.
    pub fn folder(self, path: impl AsRef<Path>) -> Result<Report, AuditError> {
        self.storage(&Folder::new(path.as_ref()))
    }

    /// Checks a log that is kept elsewhere.
    ///
    /// # Errors
    /// As [`folder`](Verifier::folder).
    pub fn storage(mut self, storage: &dyn RecordSource) -> Result<Report, AuditError> {
        let mut check = Check::new(self.key);
        // First what covers the records, then the records: a log that is being written to may only have more of them.
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
                check.add_finding(Problem::Unreadable, 0, 0, format!("the file `{file}` is no segment"));
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
