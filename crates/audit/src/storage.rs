//! Where a log is kept: a folder, or what a test puts in its place.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use amplifier_process::files::{OpenOptionsExt, create_private_folder, sync_folder};
use amplifier_process::locks::FileLock;

/// A place from which the records of a log can be read. Names of files are relative, with `/` between folders.
pub trait RecordSource: Send + Sync + 'static {
    /// The files of a folder; none if there is no such folder.
    ///
    /// # Errors
    /// If it cannot be read.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// The size of a file; `None` if there is none.
    ///
    /// # Errors
    /// If that cannot be found out.
    fn size(&self, file: &str) -> io::Result<Option<u64>>;

    /// The state of a file; `None` if there is none.
    ///
    /// # Errors
    /// If that cannot be found out.
    fn state(&self, file: &str) -> io::Result<Option<FileState>> {
        Ok(self.size(file)?.map(|size| FileState { size, identity: None, changed: None }))
    }

    /// What is in a file, from that place on.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self, file: &str, from: u64) -> io::Result<Vec<u8>>;

    /// So many bytes of a file, from that place on; fewer where it ends.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read_part(&self, file: &str, from: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = self.read(file, from)?;
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(bytes)
    }
}

/// The state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The size in bytes.
    pub size: u64,
    /// A number that the file keeps for as long as it is the same file, where the source has one.
    pub identity: Option<u64>,
    /// The time of the last change, in seconds and nanoseconds, where the source has one.
    pub changed: Option<(i64, i64)>,
}

/// A place where a log is kept.
///
/// Nothing is safe before it was synced: neither what was appended, nor (in its folder) that a file exists.
pub trait Storage: RecordSource {
    /// Waits until no other process appends, and keeps others out until the lock is dropped.
    ///
    /// # Errors
    /// If the lock cannot be taken.
    fn lock(&self) -> io::Result<Lock>;

    /// Appends to a file, which is made if there is none; says how many bytes it took.
    ///
    /// # Errors
    /// If nothing could be appended.
    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<usize>;

    /// Returns when what is in the file survives a loss of power.
    ///
    /// # Errors
    /// If that cannot be promised. What was appended since the last success may be lost then.
    fn sync(&self, file: &str) -> io::Result<()>;

    /// Cuts a file.
    ///
    /// # Errors
    /// If that fails.
    fn truncate(&self, file: &str, size: u64) -> io::Result<()>;

    /// Gives a file another name, unless there is a file of that name.
    ///
    /// # Errors
    /// If that fails, or if there is one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; it is no error if there is none.
    ///
    /// # Errors
    /// If it is still there.
    fn remove(&self, file: &str) -> io::Result<()>;

    /// Makes a folder, and those above it.
    ///
    /// # Errors
    /// If that fails.
    fn make_folder(&self, folder: &str) -> io::Result<()>;

    /// Returns when names in the folder survive a loss of power.
    ///
    /// # Errors
    /// If that cannot be promised.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;
}

/// Keeps other processes from appending until it is dropped.
#[must_use]
pub struct Lock(#[allow(dead_code, reason = "what matters is that it is dropped")] Box<dyn Send>);

impl Lock {
    /// A lock that is released when the value is dropped.
    pub fn new(held: impl Send + 'static) -> Self {
        Self(Box::new(held))
    }
}

/// A folder of the file system, readable by its owner alone.
pub struct Folder {
    path: PathBuf,
    /// Files that were appended to, so that not every batch opens them anew.
    // A std lock: it is held for a look into the map, not while a file is written.
    open: Mutex<HashMap<String, Arc<File>>>,
}

/// More files than this are not kept open.
const MOST_OPEN: usize = 4;

impl Folder {
    /// The folder at that path. It is made when something is written to it. A relative path is one of the folder that is current now.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: absolute_path(path.into()), open: Mutex::default() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn at(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }

    /// What a pipe or a device gives has no end.
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

/// A path that leads to the same place when the process changes its folder: else its records would go to another log.
pub(crate) fn absolute_path(path: PathBuf) -> PathBuf {
    // It cannot be said of an empty path, or where the current folder is gone: neither leads anywhere.
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
        // A rename would take the place of a file that another process has made.
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
        // A log in a folder that a loss of power takes away was not kept.
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), sync_folder)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        sync_folder(&self.at(folder))
    }
}
