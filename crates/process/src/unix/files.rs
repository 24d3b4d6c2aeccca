//! Files on Unix.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt as UnixOptionsExt, PermissionsExt,
};
use std::path::Path;

use rustix::fs::{Access, AtFlags, Mode, OFlags, access, accessat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::files::{FileId, FileStatus, OpenOptionsExt, SpecialFile, check_name};

/// INVARIANT: all flags are set in one call, because a second one would replace the first.
const NO_FOLLOW: OFlags = OFlags::NOFOLLOW.union(NO_WAIT);
const NO_WAIT: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

impl OpenOptionsExt for OpenOptions {
    fn new_mode(&mut self, mode: u32) -> &mut Self {
        self.mode(mode)
    }

    fn no_follow(&mut self) -> &mut Self {
        self.custom_flags(NO_FOLLOW.bits().cast_signed())
    }

    fn no_wait(&mut self) -> &mut Self {
        self.custom_flags(NO_WAIT.bits().cast_signed())
    }
}

pub(crate) fn set_new_folder_mode(builder: &mut DirBuilder, mode: u32) {
    builder.mode(mode);
}

pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let mode = mode(&fs::metadata(path)?) & 0o700;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

pub(crate) fn mode(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

pub(crate) fn permissions(mode: u32) -> Option<Permissions> {
    Some(Permissions::from_mode(mode))
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(crate) fn open_to_lock(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

pub(crate) fn can_write(path: &Path) -> bool {
    let is_mine = || fs::metadata(path).is_ok_and(|metadata| metadata.uid() == geteuid().as_raw());
    is_mine() || access(path, Access::WRITE_OK).is_ok()
}

pub(crate) fn is_writable_by_owner_only(metadata: &Metadata) -> bool {
    [0, geteuid().as_raw()].contains(&metadata.uid()) && metadata.mode() & 0o022 == 0
}

/// Returns `true` if a file belongs to the administrator, and nobody else can write to it.
pub(crate) fn is_of_administrator(metadata: &Metadata) -> io::Result<bool> {
    // In a namespace, the administrator of the machine can have another number.
    let administrators = [0, std::fs::metadata("/")?.uid()];
    Ok(administrators.contains(&metadata.uid()) && metadata.mode() & 0o022 == 0)
}

pub(crate) fn user() -> Option<u32> {
    Some(rustix::process::getuid().as_raw())
}

pub(crate) fn special_file(kind: FileType) -> SpecialFile {
    match (kind.is_socket(), kind.is_fifo()) {
        (true, _) => SpecialFile::Socket,
        (_, true) => SpecialFile::Pipe,
        _ => SpecialFile::Other,
    }
}

pub(crate) fn status_of(file: &File) -> io::Result<FileStatus> {
    file.metadata().map(|metadata| status(&metadata))
}

pub(crate) fn status_at(path: &Path) -> io::Result<FileStatus> {
    fs::metadata(path).map(|metadata| status(&metadata))
}

pub(crate) fn status_at_link(path: &Path) -> io::Result<FileStatus> {
    fs::symlink_metadata(path).map(|metadata| status(&metadata))
}

fn status(metadata: &Metadata) -> FileStatus {
    FileStatus {
        id: FileId { device: metadata.dev(), file: metadata.ino() },
        is_folder: metadata.is_dir(),
        links: metadata.nlink(),
        size: metadata.size(),
        mode: mode(metadata),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: Some((metadata.ctime(), metadata.ctime_nsec())),
    }
}

/// An open folder. Its entries are opened relative to it, and links are not followed, so that a link placed in the path meanwhile has no effect.
#[derive(Debug)]
pub struct Directory(File);

impl Directory {
    const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    /// Opens a folder by its path.
    ///
    /// # Errors
    /// If the folder or file cannot be opened, or is a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, Self::FLAGS, Mode::empty())?.into()))
    }

    /// Opens a subfolder.
    ///
    /// # Errors
    /// If the folder or file cannot be opened, or is a link.
    pub fn open_folder(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(openat(&self.0, check_name(name)?, Self::FLAGS, Mode::empty())?.into()))
    }

    /// Creates a subfolder, unless it exists.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        match mkdirat(&self.0, check_name(name)?, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file in the folder for reading. The file may be irregular; opening never blocks.
    ///
    /// # Errors
    /// If the folder or file cannot be opened, or is a link.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.0, check_name(name)?, flags, Mode::empty())?.into())
    }

    /// Creates a file in the folder with a mode.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        reason = "macOS has 16 bits for permissions"
    )]
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_bits_truncate(rustix::fs::RawMode::try_from(mode).unwrap_or(0o600));
        Ok(openat(&self.0, check_name(name)?, flags, mode)?.into())
    }

    /// Fails if this user cannot create files in the folder, as far as known without an attempt.
    ///
    /// # Errors
    /// If the folder is not writable.
    pub fn check_writable(&self) -> io::Result<()> {
        Ok(accessat(&self.0, ".", Access::WRITE_OK, AtFlags::empty())?)
    }

    /// Returns the permissions of a writable file in the folder; none if the file is missing.
    ///
    /// # Errors
    /// If the file is not regular, or not writable.
    #[allow(clippy::useless_conversion, reason = "macOS has 16 bits for permissions")]
    pub fn replaceable(&self, name: &OsStr) -> io::Result<Option<Permissions>> {
        let name = check_name(name)?;
        let status = match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => status,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match rustix::fs::FileType::from_raw_mode(status.st_mode) {
            rustix::fs::FileType::RegularFile => {}
            rustix::fs::FileType::Directory => return Err(ErrorKind::IsADirectory.into()),
            _ => return Err(io::Error::other("it is not a regular file")),
        }
        // Replacing requires write permission only for the folder; a read-only file must stay as it is.
        accessat(&self.0, name, Access::WRITE_OK, AtFlags::empty())?;
        Ok(Some(Permissions::from_mode(u32::from(status.st_mode) & 0o7777)))
    }

    /// Renames a file in the folder, and replaces an existing one.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, check_name(from)?, &self.0, check_name(to)?)?)
    }

    /// Removes a file in the folder.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, check_name(name)?, AtFlags::empty())?)
    }

    /// Syncs the names in the folder to disk.
    ///
    /// # Errors
    /// If the folder cannot be synced.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}
