//! Reads the log in a folder.

use std::path::{Path, PathBuf};

use amplifier_audit::{AuditError, Folder, Record};
use anyhow::{Context, anyhow, bail};

/// Reads the records of the log in a folder, in order, each once.
pub(crate) struct LogReader {
    folder: Folder,
    reader: amplifier_audit::Reader,
}

impl LogReader {
    /// A reader of the log in that folder.
    pub(crate) fn open(folder: PathBuf) -> anyhow::Result<Self> {
        Self::with(folder, amplifier_audit::Reader::new())
    }

    /// A reader of the log in that folder, or of one segment of it.
    pub(crate) fn open_path(path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() || !path.exists() {
            return Self::open(path.to_owned());
        }
        let number = path.file_name().and_then(|name| amplifier_audit::segment_number(name.to_str()?));
        let number = number.with_context(|| format!("`{}` is no segment of a log: `seg-….jsonl`", path.display()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::with(folder.to_owned(), amplifier_audit::Reader::segment(number))
    }

    fn with(folder: PathBuf, reader: amplifier_audit::Reader) -> anyhow::Result<Self> {
        // As it was given.
        let shown = folder.display().to_string();
        let folder = Folder::new(folder);
        if reader.segments(&folder).with_context(|| format!("`{shown}` cannot be read"))?.is_empty() {
            bail!("there is no audit log in `{shown}`: no file `seg-….jsonl`");
        }
        Ok(Self { folder, reader })
    }

    /// Where the log is kept.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How many bytes there are to be read.
    pub(crate) fn bytes(&self) -> anyhow::Result<u64> {
        Ok(self.reader.bytes(&self.folder)?)
    }

    /// Shows every record to `visit`. Nothing is skipped: half a record at the end is an error, too.
    pub(crate) fn read(self, visit: impl FnMut(&Record<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.reader.read(&self.folder, visit).map_err(add_verify_hint)
    }

    /// Shows every whole record to `visit` that was added since the last call.
    pub(crate) fn advance(&mut self, visit: impl FnMut(&Record<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.reader.advance(&self.folder, visit).map(|_| ()).map_err(add_verify_hint)
    }

    /// Goes to the end, and gives the last so many values that `take` makes of records, in order. Reads no more segments than needed.
    pub(crate) fn last<T>(
        &mut self,
        count: usize,
        take: impl FnMut(&Record<'_>) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Vec<T>> {
        self.reader.last(&self.folder, count, take).map_err(add_verify_hint)
    }
}

/// Names the command that says more about a log that is not as it was recorded.
fn add_verify_hint(error: anyhow::Error) -> anyhow::Error {
    const VERIFY: &str = "`amplifier audit verify` says what that means";
    match error.downcast::<AuditError>() {
        Ok(AuditError::Line { file, line, error }) => {
            anyhow!(error).context(format!("line {line} of `{file}`; {VERIFY}"))
        }
        Ok(AuditError::HalfRecord { file }) => anyhow!("`{file}` ends in half a record; {VERIFY}"),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}
