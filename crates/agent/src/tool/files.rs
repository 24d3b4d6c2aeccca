//! Access to files of a workspace without following links.
//!
//! A path is resolved first, so that it contains no links. Then every folder is opened from its parent, and rejected if it is a link: a link placed
//! in the path meanwhile cannot lead out of the workspace.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use amplifier_process::files::{Directory, check_regular};
use uuid::Uuid;

use super::blocking::StopFlag;
use super::preview::changed;
use super::{ToolError, Workspace};

/// The largest file that tools read completely.
pub(super) const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;

const SAMPLE_BYTES: usize = 8 * 1024;

/// Returns `true` if the beginning of a file is not text.
pub(super) fn is_binary(start: &[u8]) -> bool {
    start[..start.len().min(SAMPLE_BYTES)].contains(&0)
}

/// Returns the error for a failed operation, with advice.
pub(super) fn failed(name: &str, cannot: &str, error: &io::Error) -> ToolError {
    ToolError::Failed(match error.kind() {
        ErrorKind::NotFound => format!("`{name}` does not exist: use `Glob` to see which files there are"),
        ErrorKind::IsADirectory => format!("`{name}` is a folder: use `Glob` to see which files are in it"),
        _ => format!("`{name}` cannot be {cannot}: {error}"),
    })
}

impl Workspace {
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let (folder, name) = self.folder_of(path, MissingFolders::Fail)?;
        let file = folder.open_file(name)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        check_regular(&metadata)?;
        self.protected_paths().check_readable(&file)?;
        Ok(file)
    }

    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(io::Error::other(format!("larger than {} MB", MAX_FILE_BYTES / 1024 / 1024)));
        }
        Ok(content)
    }

    /// Replaces a file atomically and durably. Keeps permissions, and creates missing folders. With an `expected` version, only a file of that
    /// version is replaced.
    pub(super) fn replace(
        &self,
        path: &Path,
        content: &[u8],
        expected: Option<&str>,
        stop: &StopFlag,
    ) -> Result<(), ReplaceError> {
        // Checked before anything is written, and again right before the rename.
        let is_expected = || expected.is_none_or(|expected| self.version(path) == expected);
        if !is_expected() {
            return Err(ReplaceError::Changed);
        }
        self.check_replaceable(path)?;
        let (folder, name) = self.folder_of(path, MissingFolders::Create)?;
        let permissions = folder.replaceable(name)?;
        let temporary = TemporaryFile { folder: &folder, name: format!(".amplifier-{}.tmp", Uuid::now_v7()) };
        let mode = if permissions.is_some() { 0o600 } else { 0o666 };
        let mut file = folder.create_file(temporary.name.as_ref(), mode)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        if stop.requested() {
            return Err(io::Error::from(ErrorKind::Interrupted).into());
        }
        if !is_expected() {
            return Err(ReplaceError::Changed);
        }
        folder.rename(temporary.name.as_ref(), name)?;
        Ok(folder.sync()?)
    }

    /// Fails if a file cannot be replaced, as far as known without an attempt. Shared by previews and tools.
    pub(super) fn check_replaceable(&self, path: &Path) -> io::Result<()> {
        self.protected_paths().check_writable(path)?;
        match self.folder_of(path, MissingFolders::Fail) {
            Ok((folder, name)) => {
                folder.replaceable(name)?;
                folder.check_writable()
            }
            // Missing folders are created.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens the folder of a resolved path.
    fn folder_of<'a>(&self, path: &'a Path, missing: MissingFolders) -> io::Result<(Directory, &'a OsStr)> {
        let relative = path.strip_prefix(self.root()).map_err(|_| ErrorKind::PermissionDenied)?;
        // The root itself has no name in the workspace.
        let name = relative.file_name().ok_or(ErrorKind::IsADirectory)?;
        let mut folder = Directory::open(self.root())?;
        for step in relative.parent().into_iter().flat_map(Path::iter) {
            folder = match folder.open_folder(step) {
                Err(error) if error.kind() == ErrorKind::NotFound && missing == MissingFolders::Create => {
                    folder.make_folder(step)?;
                    folder.open_folder(step)?
                }
                opened => opened?,
            };
        }
        Ok((folder, name))
    }
}

#[derive(Debug)]
pub(super) enum ReplaceError {
    /// The file has another version than expected.
    Changed,
    Io(io::Error),
}

impl ReplaceError {
    pub(super) fn to_tool_error(&self, name: &str) -> ToolError {
        match self {
            Self::Changed => changed(name),
            Self::Io(error) => failed(name, "written", error),
        }
    }
}

impl<E: Into<io::Error>> From<E> for ReplaceError {
    fn from(error: E) -> Self {
        Self::Io(error.into())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum MissingFolders {
    Fail,
    Create,
}

/// A temporary file, removed on drop unless renamed.
struct TemporaryFile<'a> {
    folder: &'a Directory,
    name: String,
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        // Fails if the file was renamed; otherwise the original error matters more.
        let _ = self.folder.remove_file(self.name.as_ref());
    }
}
