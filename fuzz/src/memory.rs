//! A log folder in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use amplifier_audit::{Lock, RecordSource, Storage};

/// The files of a log, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The segments among the files, with their numbers, in order.
pub fn segments(files: &mut Files) -> Vec<(u64, &mut Vec<u8>)> {
    let number = |name: &str| {
        let number = name.strip_prefix("seg-")?.strip_suffix(".jsonl")?.parse::<u32>().ok()?.into();
        (name == format!("seg-{number:06}.jsonl")).then_some(number)
    };
    let mut segments: Vec<_> = files.iter_mut().filter_map(|(name, file)| Some((number(name)?, file))).collect();
    segments.sort_unstable_by_key(|(number, _)| *number);
    segments
}

/// A log folder in memory, in which everything works and lasts.
#[derive(Default)]
pub struct Memory(Mutex<Files>);

impl Memory {
    /// A folder with these files.
    pub fn new(files: Files) -> Self {
        Self(Mutex::new(files))
    }

    /// A copy of what is there.
    pub fn files(&self) -> Files {
        self.lock_files().clone()
    }

    fn lock_files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordSource for Memory {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let files = self.lock_files();
        let inside = |name: &str| match folder {
            "" => Some(name.to_owned()),
            _ => Some(name.strip_prefix(folder)?.strip_prefix('/')?.to_owned()),
        };
        let first = |name: String| name.split('/').next().unwrap_or_default().to_owned();
        let names: BTreeSet<_> = files.keys().filter_map(|name| inside(name)).map(first).collect();
        Ok(names.into_iter().collect())
    }

    fn size(&self, file: &str) -> io::Result<Option<u64>> {
        Ok(self.lock_files().get(file).map(|bytes| bytes.len() as u64))
    }

    fn read(&self, file: &str, from: u64) -> io::Result<Vec<u8>> {
        let files = self.lock_files();
        let bytes = files.get(file).ok_or(ErrorKind::NotFound)?;
        Ok(bytes.get(from as usize..).unwrap_or_default().to_vec())
    }
}

impl Storage for Memory {
    fn lock(&self) -> io::Result<Lock> {
        // Nobody else is here.
        Ok(Lock::new(()))
    }

    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<usize> {
        self.lock_files().entry(file.to_owned()).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, file: &str, size: u64) -> io::Result<()> {
        self.lock_files().entry(file.to_owned()).or_default().resize(size as usize, 0);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.lock_files();
        let bytes = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        self.lock_files().remove(file);
        Ok(())
    }

    fn make_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}
