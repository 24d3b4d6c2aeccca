//! All mirrors of a collector.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_audit::{PublicKey, SigningKey};
use amplifier_process::files::create_private_folder;
use amplifier_process::locks::FileLock;

use crate::FleetName;
use crate::records::RecordsError;
use crate::records::mirror::{Append, Mirror, read_receipt_file};
use crate::records::receipt::MirrorState;
use crate::records::stream_reader::StreamChunk;

/// The key of a machine's log, if it is known.
pub(crate) type KnownKeys = Arc<dyn Fn(&FleetName, &FleetName) -> Option<PublicKey> + Send + Sync>;

/// A machine and one of its logs.
pub type LogName = (FleetName, FleetName);

/// The mirrors in a folder: `MACHINE/LOG/`.
pub(crate) struct MirrorSet {
    root: PathBuf,
    keys: Option<KnownKeys>,
    open: BTreeMap<LogName, Mirror>,
    /// The mirrors that could not be opened. They are not tried for each chunk, because that reads them.
    damaged: BTreeSet<LogName>,
    _lock: FileLock,
}

impl MirrorSet {
    pub(crate) fn open(root: PathBuf, keys: Option<KnownKeys>) -> Result<Self, RecordsError> {
        create_private_folder(&root).map_err(RecordsError::file(&root))?;
        let lock = FileLock::try_lock(&root.join("collector.lock")).map_err(RecordsError::file(&root))?;
        let lock = lock.ok_or_else(|| RecordsError::Locked(root.clone()))?;
        Ok(Self { root, keys, open: BTreeMap::new(), damaged: BTreeSet::new(), _lock: lock })
    }

    /// Returns all logs that have a mirror.
    pub(crate) fn logs(&self) -> Result<Vec<LogName>, RecordsError> {
        list_mirrors(&self.root)
    }

    /// Returns a mirror, which is opened when it is used first.
    pub(crate) fn get(&mut self, name: &LogName) -> Result<&mut Mirror, RecordsError> {
        // Not with `entry`, because opening can fail.
        if !self.open.contains_key(name) {
            let (machine, log) = name;
            let key = self.keys.as_ref().and_then(|key| key(machine, log));
            let mirror = Mirror::open(&mirror_folder(&self.root, machine, log), log.clone(), key)?;
            self.open.insert(name.clone(), mirror);
        }
        self.open.get_mut(name).ok_or(RecordsError::Ended)
    }

    /// Returns the state of a mirror for its machine; of a mirror that is not open, only its receipt.
    pub(crate) fn state(&self, name: &LogName) -> Result<Option<MirrorState>, RecordsError> {
        match self.open.get(name) {
            Some(mirror) => Ok(Some(mirror.state())),
            None => {
                let receipt = read_receipt_file(&mirror_folder(&self.root, &name.0, &name.1))?;
                Ok(receipt.map(MirrorState::of_receipt))
            }
        }
    }

    /// Appends a chunk to its mirror.
    pub(crate) fn append(&mut self, chunk: &StreamChunk) -> Result<Append, RecordsError> {
        let name = (chunk.machine.clone(), chunk.log.clone());
        if self.damaged.contains(&name) {
            return Ok(Append::Damaged);
        }
        let result = self.get(&name).and_then(|mirror| mirror.append(&chunk.header, &chunk.lines));
        match &result {
            Ok(_) => {}
            Err(error) if error.is_damage() => _ = self.damaged.insert(name),
            // After a failed write, only a new look at the disk tells its content.
            Err(_) => _ = self.open.remove(&name),
        }
        result
    }

    /// Returns `true` if a damaged mirror was repaired or moved away.
    pub(crate) fn retry_damaged(&mut self) -> Result<bool, RecordsError> {
        let before = self.damaged.len();
        for name in std::mem::take(&mut self.damaged) {
            match self.get(&name) {
                Ok(_) => {}
                Err(error) if error.is_damage() => _ = self.damaged.insert(name),
                Err(error) => return Err(error),
            }
        }
        Ok(self.damaged.len() < before)
    }

    /// Syncs a mirror, and signs its newest checkpoint.
    pub(crate) fn sign(
        &mut self,
        name: &LogName,
        collector: &FleetName,
        key: &SigningKey,
    ) -> Result<bool, RecordsError> {
        let result = self.get(name)?.sign(collector, key);
        if result.is_err() {
            self.open.remove(name);
        }
        result
    }
}

/// Returns the folder of a mirror.
pub fn mirror_folder(root: &Path, machine: &FleetName, log: &FleetName) -> PathBuf {
    root.join(&**machine).join(&**log)
}

/// Returns all logs that have a mirror in a folder; none if the folder is missing.
///
/// # Errors
/// If a folder cannot be read.
pub fn list_mirrors(root: &Path) -> Result<Vec<LogName>, RecordsError> {
    let mut logs = Vec::new();
    if !root.exists() {
        return Ok(logs);
    }
    for machine in names(root)? {
        for log in names(&root.join(&*machine))? {
            logs.push((machine.clone(), log));
        }
    }
    Ok(logs)
}

/// Returns the folders in a folder whose names are valid, in order.
fn names(folder: &Path) -> Result<Vec<FleetName>, RecordsError> {
    let failed = || RecordsError::file(folder);
    let mut names = Vec::new();
    for entry in folder.read_dir().map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if entry.file_type().map_err(failed())?.is_dir() {
            names.extend(entry.file_name().to_str().and_then(|name| name.parse().ok()));
        }
    }
    names.sort_unstable();
    Ok(names)
}
