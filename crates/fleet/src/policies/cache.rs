//! The active policy of this machine, on its disk: it works without the centre.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_audit::{Hash, PublicKey};
use amplifier_process::files::{Durability, create_private_folder, read_regular, write_atomic};
use amplifier_process::locks::FileLock;

use super::{BundleArchive, PolicyError, PolicyPointer};
use crate::FleetName;

const POINTER: &str = "pointer";
const MAX_POINTER_BYTES: u64 = 8 << 20;
const MAX_ARCHIVE_BYTES: u64 = 64 << 20;

/// The folder with the active policy of this machine.
#[derive(Clone, Debug)]
pub struct PolicyCache {
    folder: PathBuf,
    organisation: PublicKey,
    group: FleetName,
}

/// The policy that is active on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActivePolicy {
    /// The pointer.
    pub pointer: PolicyPointer,
    /// The file of the bundle.
    pub bundle: PathBuf,
}

impl PolicyCache {
    /// Uses a folder for the policy of a group, signed by the organisation.
    pub fn new(folder: impl Into<PathBuf>, organisation: PublicKey, group: FleetName) -> Self {
        Self { folder: folder.into(), organisation, group }
    }

    /// Returns the group.
    pub fn group(&self) -> &FleetName {
        &self.group
    }

    /// Returns the file that changes with each version.
    pub fn pointer_file(&self) -> PathBuf {
        self.folder.join(POINTER)
    }

    /// Returns the pointer to the active policy, without looking at its bundle; `None` before the first policy.
    ///
    /// # Errors
    /// If the file is unreadable, or was changed.
    pub fn pointer(&self) -> Result<Option<PolicyPointer>, PolicyError> {
        let file = self.pointer_file();
        match read_regular(&file, MAX_POINTER_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PolicyError::file(&file)(error)),
            Ok(signed) => {
                let pointer = self.check(&signed).map_err(|error| damaged(&file, &error))?;
                Ok(Some(pointer))
            }
        }
    }

    /// Returns the file of the active bundle, without looking at it; `None` before the first policy.
    ///
    /// # Errors
    /// As [`pointer`](Self::pointer).
    pub fn bundle_file(&self) -> Result<Option<PathBuf>, PolicyError> {
        Ok(self.pointer()?.map(|pointer| BundleArchive::bundle(&self.bundle_folder(&pointer))))
    }

    /// Returns the active policy, after its signature and all its files were checked; `None` before the first policy.
    ///
    /// # Errors
    /// If a file is unreadable, or was changed. No session may start then.
    pub fn load(&self) -> Result<Option<ActivePolicy>, PolicyError> {
        let Some(pointer) = self.pointer()? else { return Ok(None) };
        let file = self.archive_file(&pointer);
        let text = read_regular(&file, MAX_ARCHIVE_BYTES).map_err(|error| damaged(&file, &error))?;
        let archive = BundleArchive::from_text(text, pointer.bundle).map_err(|error| damaged(&file, &error))?;
        let folder = self.bundle_folder(&pointer);
        let unpacked = BundleArchive::pack(&folder).map_err(|error| damaged(&folder, &error))?;
        if unpacked != archive {
            return Err(damaged(&folder, &"its files differ from those that were signed"));
        }
        Ok(Some(ActivePolicy { bundle: BundleArchive::bundle(&folder), pointer }))
    }

    /// Checks that a signed pointer is one for this machine.
    ///
    /// # Errors
    /// If it is not signed by the organisation, or is for another group.
    pub(super) fn check(&self, signed: &[u8]) -> Result<PolicyPointer, PolicyError> {
        let pointer = PolicyPointer::verify(signed, &self.organisation)?;
        if pointer.group != self.group {
            let (found, expected) = (pointer.group.to_string(), self.group.to_string());
            return Err(PolicyError::OtherGroup { found, expected });
        }
        Ok(pointer)
    }

    /// Activates a policy, after `check_bundle` has accepted its bundle. The active one stays in every moment until then.
    ///
    /// # Errors
    /// If the policy is not newer than the active one, its bundle is refused, or a file cannot be written.
    pub(super) fn activate(
        &self,
        signed: &[u8],
        archive: &BundleArchive,
        check_bundle: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<ActivePolicy, PolicyError> {
        let pointer = self.check(signed)?;
        if archive.hash() != pointer.bundle {
            return Err(PolicyError::OtherContent { found: archive.hash(), expected: pointer.bundle });
        }
        create_private_folder(&self.folder).map_err(PolicyError::file(&self.folder))?;
        let lock = self.folder.join("lock");
        // Several sessions share the folder.
        let _lock = FileLock::wait(&lock).map_err(PolicyError::file(&lock))?;
        let before = match self.pointer() {
            // A changed file is replaced.
            Err(PolicyError::Damaged { .. }) => None,
            read => read?,
        };
        if let Some(before) = before.as_ref().filter(|before| before.version >= pointer.version && **before != pointer)
        {
            return Err(PolicyError::Older { found: pointer.version, active: before.version });
        }
        let folder = self.bundle_folder(&pointer);
        // Sessions may use the same content, as an earlier version.
        if BundleArchive::pack(&folder).ok().as_ref() != Some(archive) {
            remove(&folder)?;
            archive.unpack(&folder)?;
        }
        let bundle = BundleArchive::bundle(&folder);
        check_bundle(&bundle).map_err(|cause| PolicyError::BadBundle { cause })?;
        let file = self.archive_file(&pointer);
        write_atomic(&file, archive.text(), Durability::Synced).map_err(PolicyError::file(&file))?;
        let file = self.pointer_file();
        write_atomic(&file, signed, Durability::Synced).map_err(PolicyError::file(&file))?;
        self.remove_unused(&pointer, before.as_ref())?;
        Ok(ActivePolicy { pointer, bundle })
    }

    /// Removes all bundles but the active one and the one before, which sessions use until their next turn.
    fn remove_unused(&self, active: &PolicyPointer, before: Option<&PolicyPointer>) -> Result<(), PolicyError> {
        let used: Vec<String> =
            [Some(active), before].into_iter().flatten().map(|used| used.bundle.to_string()).collect();
        for entry in fs::read_dir(&self.folder).map_err(PolicyError::file(&self.folder))? {
            let path = entry.map_err(PolicyError::file(&self.folder))?.path();
            let hash = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .filter(|stem| Hash::from_hex(stem.as_bytes()).is_some());
            if hash.is_some_and(|hash| !used.iter().any(|used| used == hash)) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn archive_file(&self, pointer: &PolicyPointer) -> PathBuf {
        self.folder.join(format!("{}.json", pointer.bundle))
    }

    fn bundle_folder(&self, pointer: &PolicyPointer) -> PathBuf {
        self.folder.join(pointer.bundle.to_string())
    }
}

fn remove(path: &Path) -> Result<(), PolicyError> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(PolicyError::file(path)(error)),
        _ => Ok(()),
    }
}

fn damaged(path: &Path, cause: &dyn ToString) -> PolicyError {
    PolicyError::Damaged { path: path.to_owned(), cause: cause.to_string() }
}
