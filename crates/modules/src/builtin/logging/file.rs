//! A file of lines that several processes write to.

use std::borrow::Cow;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use rustix::fs::OFlags;

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
        let size = file.metadata()?.len();
        if size > 0 && size.saturating_add(line.len() as u64) > self.max_bytes && self.rotate(&file)? {
            file = self.open()?;
        }
        // Half a line, from when the disk was full, must not become the beginning of this one.
        let line = if is_torn(&file)? { Cow::Owned([b"\n", line].concat()) } else { Cow::Borrowed(line) };
        // One call, at the end of the file wherever that is by then: lines of several processes do not mix.
        if file.write(&line)? < line.len() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "there is no room for all of a line"));
        }
        if self.sync { file.sync_data() } else { Ok(()) }
    }

    fn open(&self) -> io::Result<File> {
        // The agent may be able to write to the folder: no link leads elsewhere, and no pipe makes it wait.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let open = || {
            OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .custom_flags(flags.bits().cast_signed())
                .open(&self.path)
        };
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = self.path.parent() {
                    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
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

    /// Puts the full file aside; false if another process is doing so: then it takes a few lines too many.
    fn rotate(&self, file: &File) -> io::Result<bool> {
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Ok(false);
        }
        // The lock is on the file, not on its name: it may have been put aside before it was locked.
        let (locked, named) = (file.metadata()?, fs::symlink_metadata(&self.path)?);
        if (locked.dev(), locked.ino()) != (named.dev(), named.ino()) {
            return Ok(true);
        }
        if self.keep == 0 {
            fs::remove_file(&self.path)?;
            return Ok(true);
        }
        // Those before the first gap move up; the oldest goes if there is none.
        let is_there = |number: &u32| fs::symlink_metadata(self.numbered(*number)).is_ok();
        let gap = (1..self.keep).find(|number| !is_there(number)).unwrap_or(self.keep);
        for number in (1..gap).rev() {
            fs::rename(self.numbered(number), self.numbered(number + 1))?;
        }
        fs::rename(&self.path, self.numbered(1))?;
        Ok(true)
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Whether the last line has no end.
fn is_torn(file: &File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if let Some(at) = file.metadata()?.len().checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    Ok(last != [b'\n'])
}
