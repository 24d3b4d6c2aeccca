//! Files of hooks in the user's own bundles: used without a trust decision, but not in another version without notice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use amplifier_process::files::can_write;

use super::pin::{pin, resolve_parent};
use super::recheck::{OnChange, PinnedPath};
use super::{PinnedFiles, TrustError};
use crate::bundle::{HookDefinition, HookKind};
use crate::environment::HookEnvironment;
use crate::shell::analyse;

/// Maximum size of a pinned file, because pinned files are hashed when a session begins and copied when the hook starts.
pub(super) const MAX_PINNED_SIZE: u64 = 16 << 20;

impl HookDefinition {
    /// Pins the current version of the files that a user's hook names, if programs of the user can change these. Pipes and unreadable files are left
    /// out. Changes in protected folders are adopted.
    pub(crate) fn pin_user_files(
        &self,
        host: &HookEnvironment,
        protected: &[PathBuf],
    ) -> Result<PinnedFiles, TrustError> {
        let outputs = self.outputs(host.scope.workspace());
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

    /// Returns the files that the hook's command line writes to, with links resolved. The files may not exist, but their folders must.
    pub(crate) fn outputs(&self, workspace: &Path) -> Vec<PathBuf> {
        let Ok(HookKind::Command(command) | HookKind::Worker(command)) = self.entry.kind() else { return Vec::new() };
        let line = self.absolute_command(command).to_line();
        let written = analyse(&line).writes.into_iter().map(|file| workspace.join(file));
        written.filter_map(|file| Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?))).collect()
    }

    /// Returns the folders that Python imports from: those of the bundle and of the hook's files, if no program of a session can change them. All of
    /// them if the environment has no protected folders.
    pub(crate) fn import_folders(&self, host: &HookEnvironment) -> Vec<PathBuf> {
        let named = self.named_files(host.scope.workspace()).unwrap_or_default();
        let folders = named.iter().filter_map(|file| file.parent()).map(Path::to_owned);
        let folders: BTreeSet<PathBuf> = folders.filter_map(|folder| folder.canonicalize().ok()).collect();
        // The bundle's own first, because most hooks have their files there.
        let own = self.folder().canonicalize().ok();
        let others = folders.into_iter().filter(|folder| own.as_ref() != Some(folder));
        let is_safe = |folder: &PathBuf| match host.protected_folders() {
            Some(protected) => protected.iter().any(|protected| folder.starts_with(protected)),
            None => true,
        };
        own.clone().into_iter().chain(others).filter(is_safe).collect()
    }
}

/// `true` if programs of this user can change or replace a file.
pub(crate) fn is_changeable(file: &Path) -> bool {
    can_write(file) || file.parent().is_some_and(can_write)
}
