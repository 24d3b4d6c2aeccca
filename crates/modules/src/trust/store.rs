//! The file with the user's trust decisions.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use amplifier_audit::Hash;
use amplifier_process::files::{
    Durability, create_private_folder, is_writable_by_owner_only, open_regular, write_atomic,
};
use amplifier_process::locks::FileLock;
use serde::{Deserialize, Serialize};

use super::status::{TrustStatus, changes};
use super::{BundlePins, Pin, TrustError};

const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_SIZE: u64 = 64 << 20;
const VERSION: u32 = 1;

/// The user's trust decisions: a JSON file that only the user can write to.
#[derive(Clone, Debug)]
pub struct TrustStore {
    file: PathBuf,
}

/// A trusted bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TrustedBundle {
    /// Time of the decision.
    pub trusted_at: String,
    /// Hash of all files.
    pub digest: Hash,
    /// Pins of the files.
    pub files: BTreeMap<PathBuf, Pin>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    bundles: BTreeMap<PathBuf, TrustedBundle>,
}

impl TrustStore {
    /// Creates a store for a file, which may not exist yet.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    /// Returns all trusted bundles by path.
    ///
    /// # Errors
    /// If the store cannot be read, is damaged, or is writable by others. Then nothing is trusted.
    pub fn list(&self) -> Result<BTreeMap<PathBuf, TrustedBundle>, TrustError> {
        let file = match open_regular(&self.file) {
            Ok((file, _)) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(self.failed(error)),
        };
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        if !is_writable_by_owner_only(&metadata) {
            return Err(self.damaged("other users can write to the file"));
        }
        if metadata.len() > MAX_SIZE {
            return Err(self.damaged("the file is too large"));
        }
        let mut text = Vec::new();
        file.take(MAX_SIZE).read_to_end(&mut text).map_err(|error| self.failed(error))?;
        let content: Content = serde_json::from_slice(&text).map_err(|error| self.damaged(error.to_string()))?;
        if content.version != VERSION {
            return Err(self.damaged(format!("unknown version {}; this program supports {VERSION}", content.version)));
        }
        // An entry whose digest does not match its files was edited in part, so it is not trusted.
        let is_whole = |(bundle, trusted): (&PathBuf, &TrustedBundle)| {
            BundlePins { bundle: bundle.clone(), files: trusted.files.clone() }.digest() == trusted.digest
        };
        if !content.bundles.iter().all(is_whole) {
            return Err(self.damaged("a digest does not match its files"));
        }
        Ok(content.bundles)
    }

    /// Returns the trust status of a bundle.
    ///
    /// # Errors
    /// As [`list`](Self::list); the bundle is not trusted then.
    pub fn status(&self, pinned: &BundlePins) -> Result<TrustStatus, TrustError> {
        Ok(match self.list()?.get(&pinned.bundle) {
            None => TrustStatus::Unknown,
            Some(trusted) if trusted.files == pinned.files => TrustStatus::Trusted,
            Some(trusted) => TrustStatus::Changed(changes(&trusted.files, &pinned.files)),
        })
    }

    /// Trusts the pinned version of a bundle.
    ///
    /// # Errors
    /// If the store cannot be written, or is damaged.
    pub fn trust(&self, pinned: &BundlePins) -> Result<(), TrustError> {
        let trusted = TrustedBundle {
            trusted_at: jiff::Timestamp::now().to_string(),
            digest: pinned.digest(),
            files: pinned.files.clone(),
        };
        self.change(|bundles| _ = bundles.insert(pinned.bundle.clone(), trusted))
    }

    /// Removes the trust in a bundle. Returns the removed entry.
    ///
    /// # Errors
    /// If the store cannot be written, or is damaged.
    pub fn untrust(&self, bundle: &Path) -> Result<Option<TrustedBundle>, TrustError> {
        let mut removed = None;
        self.change(|bundles| removed = bundles.remove(bundle))?;
        Ok(removed)
    }

    /// Changes the store atomically, under a lock.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<PathBuf, TrustedBundle>)) -> Result<(), TrustError> {
        let failed = |error| self.failed(error);
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        create_private_folder(folder).map_err(failed)?;
        let _lock = lock(&self.file.with_extension("lock")).map_err(failed)?;
        let mut bundles = self.list()?;
        change(&mut bundles);
        let text = serde_json::to_vec_pretty(&Content { version: VERSION, bundles })
            .map_err(|error| self.failed(io::Error::other(error)))?;
        write_atomic(&self.file, &text, Durability::Synced).map_err(failed)
    }

    fn failed(&self, why: io::Error) -> TrustError {
        TrustError::Store { file: self.file.clone(), why }
    }

    fn damaged(&self, why: impl Into<String>) -> TrustError {
        TrustError::Damaged { file: self.file.clone(), why: why.into() }
    }
}

fn lock(file: &Path) -> io::Result<FileLock> {
    FileLock::wait_for(file, LOCK_TIMEOUT)?.ok_or_else(|| {
        let message = format!("`{}` is locked by another process; try again", file.display());
        io::Error::new(ErrorKind::TimedOut, message)
    })
}
