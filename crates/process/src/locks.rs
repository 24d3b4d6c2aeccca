//! Locks between processes: files that one of them, or several who only look, have locked.
//!
//! A lock is free again when it is dropped, or when its process ends. The file stays: one that is removed while it is locked would lock nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::files::OpenOptionsExt;

/// How soon a lock that another process has is looked at again.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// A lock, which is free again when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct FileLock(#[allow(dead_code, reason = "what matters is that it is dropped")] File);

impl FileLock {
    /// Waits until the lock is free, and takes it. The file is made if there is none, for its owner alone.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub fn wait(file: &Path) -> io::Result<Self> {
        let file = open(file)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// Takes the lock if it is free within that time.
    ///
    /// # Errors
    /// If it is not, or the file cannot be opened or locked.
    pub fn wait_for(file: &Path, limit: Duration) -> io::Result<Option<Self>> {
        let (file, started) = (open(file)?, Instant::now());
        loop {
            match none_if_locked(file.try_lock())? {
                Some(()) => return Ok(Some(Self(file))),
                None if started.elapsed() >= limit => return Ok(None),
                None => sleep(RETRY_INTERVAL),
            }
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub fn try_lock(file: &Path) -> io::Result<Option<Self>> {
        let file = open(file)?;
        Ok(none_if_locked(file.try_lock())?.map(|()| Self(file)))
    }

    /// Takes the lock if nobody has it, or only others who share it.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub fn try_lock_shared(file: &Path) -> io::Result<Option<Self>> {
        let file = open(file)?;
        Ok(none_if_locked(file.try_lock_shared())?.map(|()| Self(file)))
    }

    /// Waits until a folder is free, and locks it. On Unix this locks the folder itself, because a file in it could be removed while it is locked, and the next
    /// process would lock another one; on Windows a file in it, which cannot be removed meanwhile.
    ///
    /// # Errors
    /// If there is no such folder, or it cannot be locked.
    pub fn wait_for_folder(folder: &Path) -> io::Result<Self> {
        let file = crate::system::files::open_to_lock(folder)?;
        file.lock()?;
        Ok(Self(file))
    }
}

/// The result of a try, none if another process has the lock.
///
/// # Errors
/// If it cannot be locked.
pub fn none_if_locked(result: Result<(), TryLockError>) -> io::Result<Option<()>> {
    match result {
        Ok(()) => Ok(Some(())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open(file: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).owner_only().open(file)
}
