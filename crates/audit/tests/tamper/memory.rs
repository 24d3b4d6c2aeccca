//! A log's files in memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use amplifier_audit::{Lock, RecordSource, Storage};

pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Files in memory.
#[derive(Default)]
pub(super) struct Memory(Mutex<Files>);

impl Memory {
    pub(super) fn new(files: Files) -> Self {
        Self(Mutex::new(files))
    }

    pub(super) fn files(&self) -> std::sync::MutexGuard<'_, Files> {
        self.0.lock().unwrap()
    }
}

impl RecordSource for Memory {
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let names = self.files();
        let names = names.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn size(&self, file: &str) -> io::Result<Option<u64>> {
        Ok(self.files().get(file).map(|bytes| bytes.len() as u64))
    }

    fn read(&self, file: &str, from: u64) -> io::Result<Vec<u8>> {
        Ok(self.files().get(file).ok_or(io::ErrorKind::NotFound)?[from as usize..].to_vec())
    }
}

impl Storage for Memory {
    fn lock(&self) -> io::Result<Lock> {
        Ok(Lock::new(()))
    }

    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<usize> {
        self.files().entry(file.to_owned()).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, file: &str, size: u64) -> io::Result<()> {
        self.files().get_mut(file).ok_or(io::ErrorKind::NotFound)?.truncate(size as usize);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files();
        let bytes = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        self.files().remove(file);
        Ok(())
    }

    fn make_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}
