//! Locks between processes, on files: exclusive or shared.
//!
//! A lock is released when it is dropped, or when its process ends. The file stays: another process could not see a lock on a removed file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::files::OpenOptionsExt;

/// The pause between attempts to take a lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// A lock, released on drop.
#[derive(Debug)]
#[must_use]
pub struct FileLock(#[allow(dead_code, reason = "what matters is that it is dropped")] File);

impl FileLock {
    /// Waits until the lock is free, and takes it. A missing file is created for its owner alone.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub fn wait(file: &Path) -> io::Result<Self> {
        let file = open(file)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// Takes the lock if it is free within the time limit.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
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

    /// Takes a shared lock if no process has an exclusive one.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub fn try_lock_shared(file: &Path) -> io::Result<Option<Self>> {
        let file = open(file)?;
        Ok(none_if_locked(file.try_lock_shared())?.map(|()| Self(file)))
    }

    /// Waits until a folder is free, and locks it. On Unix this locks the folder itself, because a lock file in it could be removed while locked; on
    /// Windows it locks a file in the folder, which cannot be removed meanwhile.
    ///
    /// # Errors
    /// If the folder is missing, or cannot be locked.
    pub fn wait_for_folder(folder: &Path) -> io::Result<Self> {
        let file = crate::system::files::open_to_lock(folder)?;
        file.lock()?;
        Ok(Self(file))
    }
}

/// Converts the result of an attempt: none if another process has the lock.
///
/// # Errors
/// If the file cannot be locked.
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
