//! Storage of logs: a folder, or a replacement in tests.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_process::files::{OpenOptionsExt, create_private_folder, sync_folder};
use amplifier_process::locks::FileLock;

/// A source of records. Names of files are relative, with `/` between folders.
pub trait RecordSource: Send + Sync + 'static {
    /// Returns the files of a folder; none if the folder is missing.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Returns the size of a file; `None` if the file is missing.
    ///
    /// # Errors
    /// If the size cannot be read.
    fn size(&self, file: &str) -> io::Result<Option<u64>>;

    /// Returns the state of a file; `None` if the file is missing.
    ///
    /// # Errors
    /// If the state cannot be read.
    fn state(&self, file: &str) -> io::Result<Option<FileState>> {
        Ok(self.size(file)?.map(|size| FileState { size, identity: None, changed: None }))
    }

    /// Reads a file from an offset on.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn read(&self, file: &str, from: u64) -> io::Result<Vec<u8>>;

    /// Reads up to `most` bytes of a file, from an offset on.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn read_part(&self, file: &str, from: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = self.read(file, from)?;
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(bytes)
    }
}

/// The state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileState {
    /// The size in bytes.
    pub size: u64,
    /// A number that identifies the file, if the source has one.
    pub identity: Option<u64>,
    /// The time of the last change, in seconds and nanoseconds, if the source has one.
    pub changed: Option<(i64, i64)>,
}

/// A storage for a log.
///
/// Nothing is safe before a sync: neither appended bytes (of the file), nor the existence of a file (of its folder).
pub trait Storage: RecordSource {
    /// Waits for the exclusive right to append, until the lock is dropped.
    ///
    /// # Errors
    /// If the lock cannot be taken.
    fn lock(&self) -> io::Result<Lock>;

    /// Appends to a file, creating a missing one; returns the number of appended bytes.
    ///
    /// # Errors
    /// If no byte could be appended.
    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the content of the file survives a loss of power.
    ///
    /// # Errors
    /// If the sync fails. All bytes since the last success may be lost then.
    fn sync(&self, file: &str) -> io::Result<()>;

    /// Truncates a file.
    ///
    /// # Errors
    /// If the file cannot be truncated.
    fn truncate(&self, file: &str, size: u64) -> io::Result<()>;

    /// Renames a file, without replacing another one.
    ///
    /// # Errors
    /// If the file cannot be renamed, or the new name exists.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; a missing one is not an error.
    ///
    /// # Errors
    /// If the file cannot be removed.
    fn remove(&self, file: &str) -> io::Result<()>;

    /// Creates a folder and its parents.
    ///
    /// # Errors
    /// If the folder cannot be created.
    fn make_folder(&self, folder: &str) -> io::Result<()>;

    /// Waits until the names in the folder survive a loss of power.
    ///
    /// # Errors
    /// If the sync fails.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;
}

/// The exclusive right to append, until drop.
#[must_use]
pub struct Lock(#[allow(dead_code, reason = "what matters is that it is dropped")] Box<dyn Send>);

impl Lock {
    /// Creates a lock that is released when the value is dropped.
    pub fn new(held: impl Send + 'static) -> Self {
        Self(Box::new(held))
    }
}

/// A folder of the file system, readable by its owner only.
pub struct Folder {
    path: PathBuf,
    /// Open files, so that not every batch opens them again.
    // A std lock: it is held for a lookup, not while a file is written.
    open: Mutex<HashMap<String, Arc<File>>>,
}

const MOST_OPEN: usize = 4;

impl Folder {
    /// Creates a storage for this folder, which is created on the first write. A relative path is resolved now.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: absolute_path(path.into()), open: Mutex::default() }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn at(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }

    /// Refuses pipes and devices, whose content has no end.
    fn regular(&self, name: &str) -> io::Result<fs::Metadata> {
        let metadata = fs::metadata(self.at(name))?;
        if metadata.is_file() { Ok(metadata) } else { Err(io::Error::other(format!("`{name}` is not a file"))) }
    }

    fn to_append(&self, name: &str) -> io::Result<Arc<File>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(name) {
            return Ok(file.clone());
        }
        let file = Arc::new(OpenOptions::new().append(true).create(true).owner_only().open(self.at(name))?);
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        open.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn close(&self, name: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Makes a path absolute: a later change of the current folder must not lead to another log.
pub(crate) fn absolute_path(path: PathBuf) -> PathBuf {
    // This fails for an empty path or a missing current folder, which are invalid anyway.
    std::path::absolute(&path).unwrap_or(path)
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl RecordSource for Folder {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let Some(entries) = unless_missing(fs::read_dir(self.at(folder)))? else { return Ok(Vec::new()) };
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn size(&self, file: &str) -> io::Result<Option<u64>> {
        Ok(unless_missing(self.regular(file))?.map(|metadata| metadata.len()))
    }

    #[cfg(unix)]
    fn state(&self, file: &str) -> io::Result<Option<FileState>> {
        use std::os::unix::fs::MetadataExt;
        Ok(unless_missing(self.regular(file))?.map(|about| FileState {
            size: about.len(),
            identity: Some(about.ino()),
            changed: Some((about.ctime(), about.ctime_nsec())),
        }))
    }

    fn read(&self, file: &str, from: u64) -> io::Result<Vec<u8>> {
        self.read_part(file, from, u64::MAX)
    }

    fn read_part(&self, file: &str, from: u64, most: u64) -> io::Result<Vec<u8>> {
        self.regular(file)?;
        let mut file = File::open(self.at(file))?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Storage for Folder {
    fn lock(&self) -> io::Result<Lock> {
        let lock = match unless_missing(FileLock::wait_for_folder(&self.path))? {
            Some(lock) => lock,
            None => {
                self.make_folder("")?;
                FileLock::wait_for_folder(&self.path)?
            }
        };
        Ok(Lock::new(lock))
    }

    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<usize> {
        (&*self.to_append(file)?).write(bytes)
    }

    fn sync(&self, file: &str) -> io::Result<()> {
        self.to_append(file)?.sync_data()
    }

    fn truncate(&self, file: &str, size: u64) -> io::Result<()> {
        self.to_append(file)?.set_len(size)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.close(from);
        // A rename would replace a file of another process.
        fs::hard_link(self.at(from), self.at(to))?;
        fs::remove_file(self.at(from))
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        self.close(file);
        unless_missing(fs::remove_file(self.at(file))).map(|_| ())
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        let path = self.at(folder);
        if path.is_dir() {
            return Ok(());
        }
        create_private_folder(&path)?;
        // The folder itself must survive a loss of power.
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), sync_folder)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        sync_folder(&self.at(folder))
    }
}
