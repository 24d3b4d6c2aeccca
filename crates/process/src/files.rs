//! Files as every system has them: new ones for their owner alone, links that are not followed, the identity of a file.
//!
//! What a system cannot do is said here, at the function that needs it.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::NamedTempFile;

use crate::system::files as system;
pub use crate::system::files::Directory;

/// Ways to open a file that differ from system to system.
pub trait OpenOptionsExt {
    /// Makes a new file readable and writable by its owner alone. On Windows it gets the rights that its folder passes on.
    fn owner_only(&mut self) -> &mut Self {
        self.new_mode(0o600)
    }

    /// Sets the permissions of a new file, in the form of `chmod`. Windows has none of them.
    fn new_mode(&mut self, mode: u32) -> &mut Self;

    /// Refuses a path that ends with a link, or (on Windows) opens the link itself, which is no regular file.
    fn no_follow(&mut self) -> &mut Self;

    /// Opens a pipe without waiting for whoever has its other end, and a terminal without making it this process's own.
    fn no_wait(&mut self) -> &mut Self;
}

/// Makes a folder that only its owner can enter, and those above it that are missing. On Windows they get the rights that the folder above them passes on.
///
/// # Errors
/// If it cannot be made.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    system::set_new_folder_mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Takes all permissions from everybody but the owner of a file or folder. Does nothing on Windows.
///
/// # Errors
/// If the permissions cannot be changed.
pub fn make_private(path: &Path) -> io::Result<()> {
    system::make_private(path)
}

/// The permissions of a file in the form of `chmod`. On Windows, those that say as much: 444 for a file that is only for reading, 666 for any other.
pub fn mode(metadata: &Metadata) -> u32 {
    system::mode(metadata)
}

/// The permissions of a file that others than its owner have some of; none on Windows, where this cannot be told.
pub fn exposed_mode(metadata: &Metadata) -> Option<u32> {
    Some(mode(metadata)).filter(|mode| cfg!(unix) && mode & 0o077 != 0)
}

/// `true` if somebody may run the file. On Windows, the name of a file decides that, not its permissions.
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file() && (cfg!(windows) || mode(metadata) & 0o111 != 0)
}

/// Permissions in the form of `chmod`, for whoever makes a file with them.
pub fn permissions(mode: u32) -> Option<std::fs::Permissions> {
    system::permissions(mode)
}

/// Makes the names in a folder survive a loss of power. Windows has no such call; its file systems log changes of names.
///
/// # Errors
/// If that cannot be promised.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    system::sync_folder(folder)
}

/// What a file that was just written survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A loss of power, too. The caller waits for the disk.
    Synced,
    /// The end of the program. After a loss of power, the file may be the old one, or empty.
    Cached,
}

/// A new file that nobody sees before it is complete. Dropping it leaves nothing.
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
    // In the same folder: only within a file system can it get its name at once.
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Begins a file that only its owner can read.
    ///
    /// # Errors
    /// If its folder cannot be written to.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_with_mode(path, 0o600)
    }

    /// Begins a file with permissions in the form of `chmod`, as far as the process may give them. Windows has none of them.
    ///
    /// # Errors
    /// If its folder cannot be written to.
    pub fn create_with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        if let Some(permissions) = system::permissions(mode) {
            builder.permissions(permissions);
        }
        Ok(Self { file: BufWriter::new(builder.tempfile_in(folder_of(path))?), path: path.to_owned() })
    }

    /// Gives the file its name, and takes it from the file or link that has it.
    ///
    /// # Errors
    /// If it cannot be written. Only if the folder cannot be synced is the new content there all the same.
    pub fn replace(self, durability: Durability) -> io::Result<()> {
        self.finish(durability, |file, path| file.persist(path))
    }

    /// Gives the file its name if nothing has it.
    ///
    /// # Errors
    /// As [`replace`](Self::replace), and if there is something of that name, also a link that leads nowhere.
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

/// Writes a file that only its owner can read: whoever reads it sees the old content or the new, never a part.
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

/// Reads some bytes of a file from that place on, and says how many.
///
/// # Errors
/// If it cannot be read.
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    system::read_at(file, bytes, offset)
}

/// Reads so many bytes of a file from that place on.
///
/// # Errors
/// If it cannot be read, or ends before.
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

/// Opens a regular file to read it. Anything else is refused, and nobody waits for it.
///
/// # Errors
/// If it cannot be opened, or is no regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Before it is opened, because opening some devices has an effect; and afterwards, because it may be another file by then.
    check_regular(&std::fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).no_wait().open(path)?;
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    Ok((file, metadata))
}

/// Reads a regular file of at most that many bytes.
///
/// # Errors
/// If it cannot be read, is no regular file, or is larger.
pub fn read_regular(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.0.take(largest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        let text = format!("it has more than {} MiB", largest >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Reads a regular file as text.
///
/// # Errors
/// As [`read_regular`], and if it is no UTF-8 text.
pub fn read_regular_text(path: &Path, largest: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "it is no UTF-8 text");
    String::from_utf8(read_regular(path, largest)?).map_err(not_text)
}

/// Fails for a folder, a pipe, a device: what they give may have no end.
///
/// # Errors
/// If it is not a regular file.
pub fn check_regular(metadata: &Metadata) -> io::Result<()> {
    let is_file = metadata.is_file();
    is_file.then_some(()).ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}

/// `true` if a program of this user can write to a file or folder, or could give itself the permission.
pub fn can_write(path: &Path) -> bool {
    system::can_write(path)
}

/// `true` if a file belongs to this user or to the administrator, and nobody else may write to it. On Windows, where this cannot be told, always.
pub fn is_writable_by_owner_only(metadata: &Metadata) -> bool {
    system::is_writable_by_owner_only(metadata)
}

/// The number of this user; none on Windows.
pub fn user() -> Option<u32> {
    system::user()
}

/// Kinds of special files that programs talk over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialFile {
    /// A socket.
    Socket,
    /// A named pipe.
    Pipe,
    /// A device, or something else.
    Other,
}

/// The kind of a file that is neither regular, nor a folder, nor a link.
pub fn special_file(kind: std::fs::FileType) -> Option<SpecialFile> {
    let is_ordinary = kind.is_file() || kind.is_dir() || kind.is_symlink();
    (!is_ordinary).then(|| system::special_file(kind))
}

/// A file, whatever its path: no other file of the machine has the same while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    pub(crate) device: u64,
    pub(crate) file: u64,
}

/// What the system tells of a file without reading it.
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
pub struct FileStatus {
    /// The file.
    pub id: FileId,
    /// `true` if it is a folder.
    pub is_folder: bool,
    /// The number of its names.
    pub links: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its [permissions](mode).
    pub mode: u32,
    /// When it was last written, in seconds and nanoseconds since 1970. Whoever may write to it can set this.
    pub modified: (i64, i64),
    /// When anything about it was last changed, which nobody can set at will; none where the system does not tell. A file with the same status and such a time has
    /// the same content.
    pub changed: Option<(i64, i64)>,
}

impl FileStatus {
    /// Of an open file.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn from_file(file: &File) -> io::Result<Self> {
        system::status_of(file)
    }

    /// Of the file at a path; if that is a link, of the file that it leads to.
    ///
    /// # Errors
    /// If there is none, or the system does not tell.
    pub fn from_path(path: &Path) -> io::Result<Self> {
        system::status_at(path)
    }

    /// Of the file at a path, also if that is a link.
    ///
    /// # Errors
    /// If there is none, or the system does not tell.
    pub fn from_link(path: &Path) -> io::Result<Self> {
        system::status_at_link(path)
    }

    /// `true` if a change from now on would show: clocks of file systems tick slowly.
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.changed.is_some_and(|(changed, _)| i64::try_from(now).is_ok_and(|now| now - changed >= 2))
    }
}

/// A name within a folder: neither a path, nor the folder itself, nor the one above.
pub(crate) fn check_name(name: &OsStr) -> io::Result<&OsStr> {
    let is_name = Path::new(name).file_name() == Some(name);
    is_name.then_some(name).ok_or_else(|| ErrorKind::InvalidInput.into())
}
