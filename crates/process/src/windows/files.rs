//! Files on Windows.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::windows::fs::{FileExt, OpenOptionsExt as WindowsOptionsExt};
use std::path::{Path, PathBuf};

use winapi_util::file::information;

use crate::files::{FileId, FileStatus, OpenOptionsExt, SpecialFile, check_name};

/// `FILE_FLAG_OPEN_REPARSE_POINT`: opens a link itself.
const NO_FOLLOW: u32 = 0x0020_0000;
/// `FILE_FLAG_BACKUP_SEMANTICS`: opens folders, too.
const OPEN_FOLDERS: u32 = 0x0200_0000;
/// `FILE_SHARE_READ | FILE_SHARE_WRITE`: while the file is open, it cannot be removed or renamed.
const SHARE_WITHOUT_DELETE: u32 = 3;
/// The time between 1601, the epoch of Windows, and 1970, in units of 100 ns.
const EPOCH: i64 = 116_444_736_000_000_000;

impl OpenOptionsExt for OpenOptions {
    fn new_mode(&mut self, _mode: u32) -> &mut Self {
        self
    }

    fn no_follow(&mut self) -> &mut Self {
        self.custom_flags(NO_FOLLOW)
    }

    fn no_wait(&mut self) -> &mut Self {
        self
    }
}

pub(crate) fn set_new_folder_mode(_builder: &mut DirBuilder, _mode: u32) {}

pub(crate) fn make_private(_path: &Path) -> io::Result<()> {
    Ok(())
}

pub(crate) fn mode(metadata: &Metadata) -> u32 {
    if metadata.permissions().readonly() { 0o444 } else { 0o666 }
}

pub(crate) fn permissions(_mode: u32) -> Option<Permissions> {
    None
}

pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

pub(crate) fn open_to_lock(folder: &Path) -> io::Result<File> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .share_mode(SHARE_WITHOUT_DELETE)
        .open(folder.join(".lock"))
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

pub(crate) fn can_write(path: &Path) -> bool {
    // The rights are unknown without an attempt, so every existing file counts as writable.
    path.exists()
}

pub(crate) fn is_writable_by_owner_only(_metadata: &Metadata) -> bool {
    true
}

/// Returns an error: the administrator of a file is unknown.
pub(crate) fn is_of_administrator(_metadata: &Metadata) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn user() -> Option<u32> {
    None
}

pub(crate) fn special_file(_kind: FileType) -> SpecialFile {
    SpecialFile::Other
}

pub(crate) fn status_of(file: &File) -> io::Result<FileStatus> {
    let (information, metadata) = (information(file)?, file.metadata()?);
    let written = information.last_write_time().unwrap_or_default().cast_signed() - EPOCH;
    Ok(FileStatus {
        id: FileId { device: information.volume_serial_number(), file: information.file_index() },
        is_folder: metadata.is_dir(),
        links: information.number_of_links(),
        size: information.file_size(),
        mode: mode(&metadata),
        modified: (written.div_euclid(10_000_000), written.rem_euclid(10_000_000) * 100),
        changed: None,
    })
}

pub(crate) fn status_at(path: &Path) -> io::Result<FileStatus> {
    status_of(&OpenOptions::new().access_mode(0).custom_flags(OPEN_FOLDERS).open(path)?)
}

pub(crate) fn status_at_link(path: &Path) -> io::Result<FileStatus> {
    status_of(&OpenOptions::new().access_mode(0).custom_flags(OPEN_FOLDERS | NO_FOLLOW).open(path)?)
}

/// An open folder. While open, it cannot be removed or renamed, so its path stays valid; links are not followed.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    opened: Vec<File>,
}

impl Directory {
    /// Opens a folder by its path.
    ///
    /// # Errors
    /// If the folder or file cannot be opened, or is a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), opened: vec![open_unlinked(path, OPEN_FOLDERS)?] })
    }

    /// Opens a subfolder.
    ///
    /// # Errors
    /// If the folder or file cannot be opened, or is a link.
    pub fn open_folder(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.at(name)?;
        let mut opened = self.opened.iter().map(File::try_clone).collect::<io::Result<Vec<_>>>()?;
        opened.push(open_unlinked(&path, OPEN_FOLDERS)?);
        if !fs::symlink_metadata(&path)?.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(Self { path, opened })
    }

    /// Creates a subfolder, unless it exists.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        match fs::create_dir(self.at(name)?) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Opens a file in the folder for reading.
    ///
    /// # Errors
    /// If the folder or file cannot be opened, or is a link.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        open_unlinked(&self.at(name)?, OPEN_FOLDERS)
    }

    /// Creates a file in the folder, with the inherited permissions.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub fn create_file(&self, name: &OsStr, _mode: u32) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(self.at(name)?)
    }

    /// Does nothing: on Windows, only an attempt reveals if the folder is writable.
    ///
    /// # Errors
    /// None.
    pub fn check_writable(&self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the permissions of a writable file in the folder; none if the file is missing.
    ///
    /// # Errors
    /// If the file is not regular, or not writable.
    pub fn replaceable(&self, name: &OsStr) -> io::Result<Option<Permissions>> {
        let metadata = match fs::symlink_metadata(self.at(name)?) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if metadata.permissions().readonly() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        Ok(Some(metadata.permissions()))
    }

    /// Renames a file in the folder, and replaces an existing one.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.at(from)?, self.at(to)?)
    }

    /// Removes a file in the folder.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.at(name)?)
    }

    /// Does nothing: see [`sync_folder`](crate::files::sync_folder).
    ///
    /// # Errors
    /// None.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn at(&self, name: &OsStr) -> io::Result<PathBuf> {
        check_name(name).map(|name| self.path.join(name))
    }
}

/// Opens the file itself, so that it stays at its path, and rejects a link.
fn open_unlinked(path: &Path, flags: u32) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).share_mode(SHARE_WITHOUT_DELETE).custom_flags(flags | NO_FOLLOW).open(path)?;
    if file.metadata()?.is_symlink() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "links are not allowed"));
    }
    Ok(file)
}
