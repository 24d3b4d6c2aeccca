//! The files of hooks in the user's own bundles: nobody has to trust them, but no other version of them runs unnoticed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use amplifier_process::files::can_write;

use super::pin::{pin, resolve_parent};
use super::recheck::{OnChange, PinnedPath};
use super::{PinnedFiles, TrustError};
use crate::bundle::{HookDefinition, HookKind, OneOrMany};
use crate::environment::HookEnvironment;
use crate::shell::analyse;

/// Larger files are not pinned: they are hashed when a session begins, and copied when the hook starts.
pub(super) const MAX_PINNED_SIZE: u64 = 16 << 20;

impl HookDefinition {
    /// Pins the files that a hook of the user names and that programs of the user could change, as they are now. What cannot be pinned, because it is a pipe
    /// or cannot be read, is left out: the user has named it. Changes in protected folders are adopted.
    ///
    /// # Errors
    /// If the hook names too much to look at.
    pub(crate) fn pin_user_files(
        &self,
        host: &HookEnvironment,
        protected: &[PathBuf],
    ) -> Result<PinnedFiles, TrustError> {
        let outputs = self.outputs();
        let mut files = Vec::new();
        for name in self.named_files(host.scope.workspace())? {
            let Ok(location) = resolve_parent(&name) else { continue };
            let Ok(metadata) = name.metadata() else { continue };
            let is_output = name.canonicalize().is_ok_and(|file| outputs.contains(&file));
            if is_output || metadata.len() > MAX_PINNED_SIZE || !is_changeable(&location) {
                continue;
            }
            if let Ok((pin, _)) = pin(&location) {
                files.push(PinnedPath { name, location, pin });
            }
        }
        Ok(PinnedFiles::new(files, Vec::new(), OnChange::Adopt(protected.to_vec())))
    }

    /// The files that the hook's command line writes to, without links. They need not be there, but their folders have to.
    pub(crate) fn outputs(&self) -> Vec<PathBuf> {
        let Ok(HookKind::Command(command) | HookKind::Worker(command)) = self.entry.kind() else { return Vec::new() };
        let line = match command {
            OneOrMany::One(line) => line.clone(),
            OneOrMany::Many(words) => match words.as_slice() {
                [shell, option, line] if shell.ends_with("sh") && option == "-c" => line.clone(),
                words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            },
        };
        let written = analyse(&line).writes.into_iter().map(|file| self.folder().join(file));
        written.filter_map(|file| Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?))).collect()
    }

    /// The folders that Python imports from: that of the bundle and those of the files that the hook names, as far as no program of a session can change
    /// them. All of them where the host says nothing about that.
    pub(crate) fn import_folders(&self, host: &HookEnvironment) -> Vec<PathBuf> {
        let named = self.named_files(host.scope.workspace()).unwrap_or_default();
        let folders = named.iter().filter_map(|file| file.parent()).map(Path::to_owned);
        let folders: BTreeSet<PathBuf> = folders.filter_map(|folder| folder.canonicalize().ok()).collect();
        // The bundle's own first, because programs run there.
        let own = self.folder().canonicalize().ok();
        let others = folders.into_iter().filter(|folder| own.as_ref() != Some(folder));
        let is_safe = |folder: &PathBuf| match host.protected_folders() {
            Some(protected) => protected.iter().any(|protected| folder.starts_with(protected)),
            None => true,
        };
        own.clone().into_iter().chain(others).filter(is_safe).collect()
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// `true` if programs of this user can change a file, or put another in its place.
pub(crate) fn is_changeable(file: &Path) -> bool {
    can_write(file) || file.parent().is_some_and(can_write)
}
