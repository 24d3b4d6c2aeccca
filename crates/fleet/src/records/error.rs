//! Errors of records.

use std::io;
use std::path::PathBuf;

use amplifier_audit::{AuditError, NoteError, RejectedLines};

use crate::FleetError;

/// A failure of shipping, collecting or verifying.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The centre failed or refused.
    #[error(transparent)]
    Centre(#[from] FleetError),
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] AuditError),
    /// A file cannot be read or written.
    #[error("`{}` cannot be read or written: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A mirror is damaged.
    #[error("the mirror `{}` is damaged: {rejected}; move it away: the collector then begins a new one", path.display())]
    Mirror {
        /// The mirror's folder.
        path: PathBuf,
        /// The damage.
        rejected: RejectedLines,
    },
    /// The receipt beside a mirror is invalid.
    #[error("`{}` is not a receipt: {error}", path.display())]
    ReceiptFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: NoteError,
    },
    /// Another process collects into the same folder.
    #[error("another process collects records into `{}`; give each collector a folder of its own", .0.display())]
    Locked(PathBuf),
    /// A background thread of the runtime has ended.
    #[error("the program is ending")]
    Ended,
}

impl RecordsError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::File { path: path.into(), source }
    }
}

impl RecordsError {
    /// Returns `true` for a failure of one mirror that stays until somebody repairs it.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Mirror { .. } | Self::ReceiptFile { .. } | Self::Log(_))
    }
}

/// Runs code that waits for disks or locks on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<T, RecordsError> {
    tokio::task::spawn_blocking(run).await.map_err(|_| RecordsError::Ended)
}
