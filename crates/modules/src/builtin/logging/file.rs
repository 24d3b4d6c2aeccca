//! An append-only file shared by several processes.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use amplifier_process::files::{FileStatus, OpenOptionsExt, create_private_folder, read_exact_at};

/// Number of attempts to lock the file, and the pause between them: writing a line takes microseconds.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_micros(200);

pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) max_bytes: u64,
    pub(super) keep: u32,
    pub(super) sync: bool,
}

impl LogFile {
    /// Appends a line with a single write.
    ///
    /// The file is opened for each line: another process may have rotated the file meanwhile. A line that is written to the
    /// rotated file is not lost.
    pub(super) fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut file = self.open()?;
        let mut is_alone = is_locked(&file);
        let size = file.metadata()?.len();
        // Without the lock, the file may exceed its size by a few lines.
        if is_alone && size > 0 && size.saturating_add(line.len() as u64) > self.max_bytes {
            self.rotate(&file)?;
            file = self.open()?;
            is_alone = is_locked(&file);
        }
        // A partial line, written when the disk was full, must not be joined with this one. Without the lock, a partial line
        // may be one that another process is writing.
        let is_torn = is_alone && is_torn(&file)?;
        let line = if is_torn { Cow::Owned([b"\n", line].concat()) } else { Cow::Borrowed(line) };
        // A single write to the end of the file, so that lines of several processes do not mix.
        if file.write(&line)? < line.len() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "only a part of the line was written"));
        }
        if self.sync { file.sync_data() } else { Ok(()) }
    }

    fn open(&self) -> io::Result<File> {
        // The agent may have write access to the folder: links are not followed, and a named pipe must not block.
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
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(file)
    }

    /// Rotates the full file, unless another process has already done so.
    fn rotate(&self, file: &File) -> io::Result<()> {
        // The lock belongs to the file, not to its name: the file may have been renamed before it was locked.
        let named = match FileStatus::from_link(&self.path) {
            // Another process has just rotated the file and not created the next one yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            named => named?,
        };
        if FileStatus::from_file(file)?.id != named.id {
            return Ok(());
        }
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        // Files before the first gap move up; without a gap, the oldest is overwritten.
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

/// Waits briefly for the lock. Returns `false` if another process holds it longer, so that the agent is not blocked.
fn is_locked(file: &File) -> bool {
    (0..ATTEMPTS).any(|_| match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            std::thread::sleep(PAUSE);
            false
        }
        locked => locked.is_ok(),
    })
}

/// Returns `true` if the last line is incomplete.
fn is_torn(file: &File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if let Some(at) = file.metadata()?.len().checked_sub(1) {
        read_exact_at(file, &mut last, at)?;
    }
    Ok(last != [b'\n'])
}
