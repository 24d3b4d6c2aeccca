//! Files on every system: private files, links that are not followed, file identity.
//!
//! Each function states its limits on a system.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::NamedTempFile;

use crate::system::files as system;
pub use crate::system::files::Directory;

/// Options for opening files that differ between systems.
pub trait OpenOptionsExt {
    /// Creates new files for their owner alone. On Windows they inherit the rights of the folder.
    fn owner_only(&mut self) -> &mut Self {
        self.new_mode(0o600)
    }

    /// Sets the mode of new files. No effect on Windows.
    fn new_mode(&mut self, mode: u32) -> &mut Self;

    /// Rejects a link at the end of the path; on Windows, opens the link itself, which is not a regular file.
    fn no_follow(&mut self) -> &mut Self;

    /// Opens a pipe without waiting for its other end, and a terminal without making it the controlling terminal.
    fn no_wait(&mut self) -> &mut Self;
}

/// Creates a folder for its owner alone, with missing parents. On Windows they inherit the rights of the folder above.
///
/// # Errors
/// If the folder cannot be created.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    system::set_new_folder_mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Removes all permissions of group and others from a file or folder. No effect on Windows.
///
/// # Errors
/// If the permissions cannot be changed.
pub fn make_private(path: &Path) -> io::Result<()> {
    system::make_private(path)
}

/// Returns the mode of a file. On Windows, 444 for a read-only file and 666 for any other.
pub fn mode(metadata: &Metadata) -> u32 {
    system::mode(metadata)
}

/// Returns the mode if group or others have permissions; none on Windows, where this is unknown.
pub fn exposed_mode(metadata: &Metadata) -> Option<u32> {
    Some(mode(metadata)).filter(|mode| cfg!(unix) && mode & 0o077 != 0)
}

/// Returns `true` if the file has an execute permission. On Windows, which decides by name, always `true` for a regular file.
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file() && (cfg!(windows) || mode(metadata) & 0o111 != 0)
}

/// Converts a mode to permissions, where the system has modes.
pub fn permissions(mode: u32) -> Option<std::fs::Permissions> {
    system::permissions(mode)
}

/// Syncs the names in a folder to disk. Windows has no such call; its file systems log changes of names.
///
/// # Errors
/// If the folder cannot be synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    system::sync_folder(folder)
}

/// The durability of a newly written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives a loss of power. The caller waits for the disk.
    Synced,
    /// Survives the end of the program. After a loss of power, the file may be old or empty.
    Cached,
}

/// A file that becomes visible only when complete. Dropping it leaves nothing.
///
/// ```
/// use std::io::Write;
///
/// use amplifier_process::files::{AtomicFile, Durability};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("numbers");
/// let mut file = AtomicFile::create(&path)?;
/// for number in 1..=3 {
///     writeln!(file, "{number}")?;
/// }
/// file.replace(Durability::Synced)?;
/// assert_eq!(std::fs::read_to_string(&path)?, "1\n2\n3\n");
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    // In the same folder, because a rename is atomic only within a file system.
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Creates a file for its owner alone.
    ///
    /// # Errors
    /// If the folder is not writable.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_with_mode(path, 0o600)
    }

    /// Creates a file with a mode, as far as the process may set it. Windows has no modes.
    ///
    /// # Errors
    /// If the folder is not writable.
    pub fn create_with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        if let Some(permissions) = system::permissions(mode) {
            builder.permissions(permissions);
        }
        Ok(Self { file: BufWriter::new(builder.tempfile_in(folder_of(path))?), path: path.to_owned() })
    }

    /// Gives the file its name, and replaces an existing file or link.
    ///
    /// # Errors
    /// If the file cannot be written. If only the sync of the folder fails, the new content is in place.
    pub fn replace(self, durability: Durability) -> io::Result<()> {
        self.finish(durability, |file, path| file.persist(path))
    }

    /// Gives the file its name, unless the name exists.
    ///
    /// # Errors
    /// As [`replace`](Self::replace), and if the name exists, even as a dangling link.
    pub fn create_new(self, durability: Durability) -> io::Result<()> {
        self.finish(durability, |file, path| file.persist_noclobber(path))
    }

    fn finish(
        self,
        durability: Durability,
        name: impl FnOnce(NamedTempFile, &Path) -> Result<File, tempfile::PersistError>,
    ) -> io::Result<()> {
        let Self { file, path } = self;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if durability == Durability::Cached {
            return name(file, &path).map(drop).map_err(Into::into);
        }
        file.as_file().sync_all()?;
        name(file, &path)?;
        sync_folder(folder_of(&path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file for its owner alone, atomically: readers see the old content or the new.
///
/// # Errors
/// As [`AtomicFile::replace`].
pub fn write_atomic(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content)?;
    file.replace(durability)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Reads some bytes of a file from an offset, and returns their number.
///
/// # Errors
/// If the file cannot be read.
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    system::read_at(file, bytes, offset)
}

/// Fills the buffer from an offset of a file.
///
/// # Errors
/// If the file cannot be read, or is too short.
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match read_at(file, bytes, offset) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a regular file for reading, and never blocks. Other kinds of files are rejected.
///
/// # Errors
/// If the file cannot be opened, or is not regular.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Checked before opening, because opening some devices has an effect; and afterwards, because the file may have been replaced.
    check_regular(&std::fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).no_wait().open(path)?;
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    Ok((file, metadata))
}

/// Reads a regular file of at most `largest` bytes.
///
/// # Errors
/// If the file cannot be read, is not regular, or is larger.
pub fn read_regular(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.0.take(largest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        let text = format!("larger than {} MiB", largest >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Reads a regular file as text.
///
/// # Errors
/// As [`read_regular`], and if the content is not UTF-8.
pub fn read_regular_text(path: &Path, largest: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "not UTF-8 text");
    String::from_utf8(read_regular(path, largest)?).map_err(not_text)
}

/// Fails for anything but a regular file: reading folders, pipes and devices may never end.
///
/// # Errors
/// If the file is not regular.
pub fn check_regular(metadata: &Metadata) -> io::Result<()> {
    let is_file = metadata.is_file();
    is_file.then_some(()).ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}

/// Returns `true` if a program of this user can write to a file or folder, or could give itself the permission.
pub fn can_write(path: &Path) -> bool {
    system::can_write(path)
}

/// Returns `true` if the file belongs to this user or to the administrator, and is not writable for others. Always `true` on Windows, where this is
/// unknown.
pub fn is_writable_by_owner_only(metadata: &Metadata) -> bool {
    system::is_writable_by_owner_only(metadata)
}

/// Returns the file, the folder above it, or the link on its path that another user than the administrator can change, if there is one.
///
/// # Errors
/// If a part of the path cannot be read; always on Windows, where this is unknown.
pub fn changeable_part(path: &Path) -> io::Result<Option<PathBuf>> {
    for part in links_on(path).into_iter().chain([path.canonicalize()?]) {
        // The owner of a link has no rights to it; those of its folder count.
        let folder = part.parent().unwrap_or(&part).canonicalize()?;
        let file = Some(part.as_path()).filter(|part| !part.is_symlink());
        for path in file.into_iter().chain(folder.ancestors()) {
            if !system::is_of_administrator(&path.metadata()?)? {
                return Ok(Some(path.to_owned()));
            }
        }
    }
    Ok(None)
}

/// Returns the links on a path, in the order in which they are followed.
pub fn links_on(path: &Path) -> Vec<PathBuf> {
    // The same limit as the system.
    const MAX_LINKS: usize = 40;
    let mut links = Vec::new();
    let mut ahead: Vec<OsString> = path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let mut at = PathBuf::new();
    while let Some(part) = ahead.pop() {
        match part.to_str() {
            Some("..") => _ = at.pop(),
            _ => at.push(&part),
        }
        let Ok(target) = at.read_link() else { continue };
        if links.len() == MAX_LINKS {
            break;
        }
        links.push(at.clone());
        at.pop();
        ahead.extend(target.components().rev().map(|part| part.as_os_str().to_owned()));
    }
    links
}

/// Returns the id of this user; none on Windows.
pub fn user() -> Option<u32> {
    system::user()
}

/// The kinds of special files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialFile {
    /// A socket.
    Socket,
    /// A named pipe.
    Pipe,
    /// A device, or something else.
    Other,
}

/// Returns the kind of a special file; none for regular files, folders and links.
pub fn special_file(kind: std::fs::FileType) -> Option<SpecialFile> {
    let is_ordinary = kind.is_file() || kind.is_dir() || kind.is_symlink();
    (!is_ordinary).then(|| system::special_file(kind))
}

/// The identity of a file, independent of its path. Unique on the machine while the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    pub(crate) device: u64,
    pub(crate) file: u64,
}

/// The metadata of a file.
///
/// ```
/// use amplifier_process::files::FileStatus;
///
/// # let folder = tempfile::tempdir()?;
/// # let (path, other) = (folder.path().join("a"), folder.path().join("b"));
/// std::fs::write(&path, "text")?;
/// std::fs::hard_link(&path, &other)?;
/// let (status, same) = (FileStatus::from_path(&path)?, FileStatus::from_path(&other)?);
/// assert_eq!((status.id, status.links), (same.id, 2));
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStatus {
    /// The identity.
    pub id: FileId,
    /// `true` for a folder.
    pub is_folder: bool,
    /// The number of hard links.
    pub links: u64,
    /// The size in bytes.
    pub size: u64,
    /// The [mode].
    pub mode: u32,
    /// The time of the last write, in seconds and nanoseconds since 1970. A process that may write to the file can set it.
    pub modified: (i64, i64),
    /// The time of the last change of any kind, which no process can set; none where unknown. Two equal statuses with this time mean equal content.
    pub changed: Option<(i64, i64)>,
}

impl FileStatus {
    /// Returns the status of an open file.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn from_file(file: &File) -> io::Result<Self> {
        system::status_of(file)
    }

    /// Returns the status of the file at a path, following links.
    ///
    /// # Errors
    /// If the file is missing, or the system call fails.
    pub fn from_path(path: &Path) -> io::Result<Self> {
        system::status_at(path)
    }

    /// Returns the status of the file or link at a path.
    ///
    /// # Errors
    /// If the file is missing, or the system call fails.
    pub fn from_link(path: &Path) -> io::Result<Self> {
        system::status_at_link(path)
    }

    /// Returns `true` if a later change would alter the status: clocks of file systems tick slowly.
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.changed.is_some_and(|(changed, _)| i64::try_from(now).is_ok_and(|now| now - changed >= 2))
    }
}

/// Fails for anything but a plain name within a folder.
pub(crate) fn check_name(name: &OsStr) -> io::Result<&OsStr> {
    let is_name = Path::new(name).file_name() == Some(name);
    is_name.then_some(name).ok_or_else(|| ErrorKind::InvalidInput.into())
}
