//! A file of lines that several processes write to.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use amplifier_process::files::{FileStatus, OpenOptionsExt, create_private_folder, read_exact_at};

/// How often, and how long between, a file is looked at that another process has locked: writing a line takes microseconds.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_micros(200);

/// A file that grows line by line, and is put aside when it is full.
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) max_bytes: u64,
    pub(super) keep: u32,
    pub(super) sync: bool,
}

impl LogFile {
    /// Adds a line, all of it in one piece.
    ///
    /// The file is opened for each line: another process may have put it aside meanwhile, and a line that is on its way then is
    /// part of the full file, not lost.
    pub(super) fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut file = self.open()?;
        let mut is_alone = is_locked(&file);
        let size = file.metadata()?.len();
        // If it cannot be locked, it takes a few lines too many.
        if is_alone && size > 0 && size.saturating_add(line.len() as u64) > self.max_bytes {
            self.rotate(&file)?;
            file = self.open()?;
            is_alone = is_locked(&file);
        }
        // Half a line, from when the disk was full, must not become the beginning of this one. But a line that another one is
        // writing is no such thing.
        let is_torn = is_alone && is_torn(&file)?;
        let line = if is_torn { Cow::Owned([b"\n", line].concat()) } else { Cow::Borrowed(line) };
        // One call, at the end of the file wherever that is by then: lines of several processes do not mix.
        if file.write(&line)? < line.len() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "there is no room for all of a line"));
        }
        if self.sync { file.sync_data() } else { Ok(()) }
    }

    fn open(&self) -> io::Result<File> {
        // The agent may be able to write to the folder: no link leads elsewhere, and no pipe makes it wait.
        let open = || OpenOptions::new().read(true).append(true).create(true).owner_only().no_follow().open(&self.path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = self.path.parent() {
                    create_private_folder(folder)?;
                }
                open()?
            }
            opened => opened?,
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        Ok(file)
    }

    /// Puts the full file aside, unless another process did so before it was locked.
    fn rotate(&self, file: &File) -> io::Result<()> {
        // The lock is on the file, not on its name: it may have been put aside before it was locked.
        let named = match FileStatus::from_link(&self.path) {
            // Another process has just put a later file aside, and has not made the next one yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            named => named?,
        };
        if FileStatus::from_file(file)?.id != named.id {
            return Ok(());
        }
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        // Those before the first gap move up; the oldest goes if there is none.
        let is_there = |number: &u32| fs::symlink_metadata(self.numbered(*number)).is_ok();
        let gap = (1..self.keep).find(|number| !is_there(number)).unwrap_or(self.keep);
        for number in (1..gap).rev() {
            fs::rename(self.numbered(number), self.numbered(number + 1))?;
        }
        fs::rename(&self.path, self.numbered(1))
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Waits a little until no other process writes to the file. Whoever keeps it locked does not keep the agent from going on.
fn is_locked(file: &File) -> bool {
    (0..ATTEMPTS).any(|_| match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            std::thread::sleep(PAUSE);
            false
        }
        locked => locked.is_ok(),
    })
}

/// Whether the last line has no end.
fn is_torn(file: &File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if let Some(at) = file.metadata()?.len().checked_sub(1) {
        read_exact_at(file, &mut last, at)?;
    }
    Ok(last != [b'\n'])
}
