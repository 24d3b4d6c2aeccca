//! Log readers with messages for the user.

use std::path::{Path, PathBuf};

use amplifier_audit::{AuditError, Folder, Record};
use anyhow::{Context, anyhow, bail};

/// A reader of the log in a folder: all records, in order, each once.
pub(crate) struct LogReader {
    folder: Folder,
    reader: amplifier_audit::LogReader,
}

impl LogReader {
    pub(crate) fn open(folder: PathBuf) -> anyhow::Result<Self> {
        Self::with(folder, amplifier_audit::LogReader::new())
    }

    /// Opens the log in a folder, or a single segment.
    pub(crate) fn open_path(path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() || !path.exists() {
            return Self::open(path.to_owned());
        }
        let number = path.file_name().and_then(|name| amplifier_audit::segment_number(name.to_str()?));
        let number =
            number.with_context(|| format!("`{}` is not a log segment; expected `seg-….jsonl`", path.display()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::with(folder.to_owned(), amplifier_audit::LogReader::segment(number))
    }

    fn with(folder: PathBuf, reader: amplifier_audit::LogReader) -> anyhow::Result<Self> {
        // The path as given by the user.
        let shown = folder.display().to_string();
        let folder = Folder::new(folder);
        if reader.segments(&folder).with_context(|| format!("`{shown}` cannot be read"))?.is_empty() {
            bail!("no audit log in `{shown}`: no file `seg-….jsonl`");
        }
        Ok(Self { folder, reader })
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(crate) fn bytes(&self) -> anyhow::Result<u64> {
        Ok(self.reader.bytes(&self.folder)?)
    }

    /// Calls `visit` for every record. An incomplete record at the end is an error.
    pub(crate) fn read(self, visit: impl FnMut(&Record<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.reader.read(&self.folder, visit).map_err(add_verify_hint)
    }

    /// Calls `visit` for every complete record added since the last call.
    pub(crate) fn advance(&mut self, visit: impl FnMut(&Record<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.reader.advance(&self.folder, visit).map(|_| ()).map_err(add_verify_hint)
    }

    /// Goes to the end and returns the last `count` values that `take` returns, in order. Reads no more segments than needed.
    pub(crate) fn last<T>(
        &mut self,
        count: usize,
        take: impl FnMut(&Record<'_>) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Vec<T>> {
        self.reader.last(&self.folder, count, take).map_err(add_verify_hint)
    }
}

/// Adds a hint to run `audit verify` to errors of a damaged log.
fn add_verify_hint(error: anyhow::Error) -> anyhow::Error {
    const VERIFY: &str = "run `amplifier audit verify` for details";
    match error.downcast::<AuditError>() {
        Ok(AuditError::Line { file, line, error }) => {
            anyhow!(error).context(format!("line {line} of `{file}`; {VERIFY}"))
        }
        Ok(AuditError::HalfRecord { file }) => anyhow!("`{file}` ends with an incomplete record; {VERIFY}"),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}
