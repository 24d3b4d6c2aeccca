//! Files of a workspace: opened and replaced without following a link.
//!
//! A path is resolved first, so that no link is left in it. Every folder on the way is then opened from the one above it, and refused if it is a
//! link: nobody can lead a tool out of the workspace by putting a link in the path after it was resolved.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, accessat, fchmod, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use uuid::Uuid;

use super::blocking::Stop;
use super::preview::changed;
use super::{ToolError, Workspace};

/// The largest file that is read as a whole.
pub(super) const LARGEST: u64 = 10 * 1024 * 1024;

/// How much of a file decides whether it is binary.
const SAMPLE: usize = 8 * 1024;

/// Whether what a file begins with is not text.
pub(super) fn is_binary(start: &[u8]) -> bool {
    start[..start.len().min(SAMPLE)].contains(&0)
}

/// Says what could not be done with a file, and what to do instead.
pub(super) fn failed(name: &str, cannot: &str, error: &io::Error) -> ToolError {
    ToolError::Failed(match error.kind() {
        ErrorKind::NotFound => format!("`{name}` does not exist: use `Glob` to see which files there are"),
        ErrorKind::IsADirectory => format!("`{name}` is a folder: use `Glob` to see which files are in it"),
        _ => format!("`{name}` cannot be {cannot}: {error}"),
    })
}

impl Workspace {
    /// Opens a file to read it.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let (folder, name) = self.folder_of(path, Missing::Fail)?;
        // Without `NONBLOCK`, opening a named pipe would wait for whoever writes to it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&folder, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if !kind.is_file() {
            return Err(irregular());
        }
        self.guarded().check_readable(&metadata)?;
        Ok(file)
    }

    /// Reads a file as a whole, if it is not larger than [`LARGEST`].
    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.open(path)?.take(LARGEST + 1).read_to_end(&mut content)?;
        if content.len() as u64 > LARGEST {
            return Err(io::Error::other(format!("it is larger than {} MB", LARGEST / 1024 / 1024)));
        }
        Ok(content)
    }

    /// Puts a file in place as a whole: whoever reads it sees what was there before or all of `content`, also after a loss of power.
    /// Permissions stay. Folders that are missing are made. With an `expected` version, only a file that has it is replaced.
    pub(super) fn replace(
        &self,
        path: &Path,
        content: &[u8],
        expected: Option<&str>,
        stop: &Stop,
    ) -> Result<(), NotReplaced> {
        // Before folders are made or anything is written, and once more when all that is left is to give the file its name.
        let is_expected = || expected.is_none_or(|expected| self.version(path) == expected);
        if !is_expected() {
            return Err(NotReplaced::Changed);
        }
        self.check_replaceable(path)?;
        let (folder, name) = self.folder_of(path, Missing::Make)?;
        let permissions = permissions(&folder, name)?;
        let temporary = Temporary { folder: &folder, name: format!(".amplifier-{}.tmp", Uuid::now_v7()) };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if permissions.is_some() { Mode::RUSR | Mode::WUSR } else { Mode::from_raw_mode(0o666) };
        let mut file = File::from(openat(&folder, temporary.name.as_str(), flags, mode)?);
        if let Some(permissions) = permissions {
            fchmod(&file, permissions)?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        if stop.requested() {
            return Err(io::Error::from(ErrorKind::Interrupted).into());
        }
        if !is_expected() {
            return Err(NotReplaced::Changed);
        }
        renameat(&folder, temporary.name.as_str(), &folder, name)?;
        Ok(rustix::fs::fsync(&folder)?)
    }

    /// Fails if a file cannot be replaced, as far as that can be said without trying. Previews and tools ask this.
    pub(super) fn check_replaceable(&self, path: &Path) -> io::Result<()> {
        self.guarded().check_writable(path)?;
        match self.folder_of(path, Missing::Fail) {
            Ok((folder, name)) => {
                permissions(&folder, name)?;
                Ok(accessat(&folder, ".", Access::WRITE_OK, AtFlags::empty())?)
            }
            // Folders that are missing are made.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens the folder that a resolved path is in.
    fn folder_of<'a>(&self, path: &'a Path, missing: Missing) -> io::Result<(OwnedFd, &'a OsStr)> {
        let relative = path.strip_prefix(self.root()).map_err(|_| ErrorKind::PermissionDenied)?;
        // The root itself has no name within the workspace.
        let name = relative.file_name().ok_or(ErrorKind::IsADirectory)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open(self.root(), flags, Mode::empty())?;
        for step in relative.parent().into_iter().flat_map(Path::iter) {
            folder = match openat(&folder, step, flags, Mode::empty()) {
                Err(Errno::NOENT) if missing == Missing::Make => {
                    match mkdirat(&folder, step, Mode::from_raw_mode(0o777)) {
                        // Another tool may have made it at the same moment.
                        Ok(()) | Err(Errno::EXIST) => openat(&folder, step, flags, Mode::empty())?,
                        Err(error) => return Err(error.into()),
                    }
                }
                opened => opened?,
            };
        }
        Ok((folder, name))
    }
}

/// Why a file was not replaced.
#[derive(Debug)]
pub(super) enum NotReplaced {
    /// It is not the version that was expected.
    Changed,
    Io(io::Error),
}

impl NotReplaced {
    /// The error as the model reads it.
    pub(super) fn tell(&self, name: &str) -> ToolError {
        match self {
            Self::Changed => changed(name),
            Self::Io(error) => failed(name, "written", error),
        }
    }
}

impl<E: Into<io::Error>> From<E> for NotReplaced {
    fn from(error: E) -> Self {
        Self::Io(error.into())
    }
}

/// What to do about folders that do not exist.
#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Fail,
    Make,
}

/// A file that is removed, unless it was given another name.
struct Temporary<'a> {
    folder: &'a OwnedFd,
    name: String,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // It fails if the file has been put in place; otherwise the error that led here is the one to tell.
        let _ = unlinkat(self.folder, self.name.as_str(), AtFlags::empty());
    }
}

/// The permissions of the file that is about to be replaced; `None` if there is none.
fn permissions(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<Mode>> {
    let status = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => status,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(ErrorKind::IsADirectory.into()),
        _ => return Err(irregular()),
    }
    // Replacing asks for the permission to write to the folder alone; a file that may not be written to is to stay as it is.
    accessat(folder, name, Access::WRITE_OK, AtFlags::empty())?;
    Ok(Some(Mode::from_raw_mode(status.st_mode)))
}

fn irregular() -> io::Error {
    io::Error::other("it is not a regular file")
}
