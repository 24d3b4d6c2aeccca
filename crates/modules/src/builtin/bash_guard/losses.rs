//! Destructive commands, checked against the files in the workspace.

use amplifier_process::sandbox::Sandbox;

use super::locations::{Location, is_below_temporary, is_nowhere, is_single_or_litter, locate, paths, plain};
use super::outputs;
use crate::condition::Scope;
use crate::shell::{Effects, Exemption, FileReference, is_litter_file};

/// Maximum number of files that are checked.
const FILES: usize = 64;

/// Returns the reason for the first loss that is not exempt.
pub(super) async fn find_loss(effects: &Effects, scope: &Scope, sandbox: &Sandbox) -> Option<String> {
    for loss in &effects.losses {
        if !is_exempt(&loss.exemption, scope, sandbox).await {
            return Some(loss.why.clone());
        }
    }
    None
}

async fn is_exempt(exemption: &Exemption, scope: &Scope, sandbox: &Sandbox) -> bool {
    let are_few = |files: &[FileReference]| files.len() <= FILES;
    match exemption {
        Exemption::Never => false,
        Exemption::Outputs(files) => {
            let mut are_known = !files.is_empty() && are_few(files);
            for file in files {
                are_known &= file.paths.is_some();
                for path in paths(file) {
                    are_known = are_known
                        && (is_below_temporary(path, scope) || outputs::is_output(path, scope, sandbox).await);
                }
            }
            are_known
        }
        Exemption::Inside(files) => {
            let is_inside = |file: &FileReference| match locate(file, scope) {
                Location::Temporary => {
                    paths(file).iter().all(|path| plain(path).is_some() || is_below_temporary(path, scope))
                }
                Location::Inside => paths(file).iter().all(|path| is_single_or_litter(path)),
                Location::Outside(_) | Location::Unknown => false,
            };
            are_few(files) && files.iter().all(is_inside)
        }
        Exemption::Workspace(files) => files.iter().all(|file| locate(file, scope) == Location::Inside),
        Exemption::NoFile(files) => are_few(files) && files.iter().all(|file| is_no_file(file, scope)),
        Exemption::Deleted(files) => {
            let mut deleted = Vec::new();
            for path in files.iter().flat_map(paths).filter_map(|path| plain(path)).take(FILES) {
                let is_file = scope.workspace().join(path).is_file() && !is_below_temporary(path, scope);
                if is_file && !outputs::is_output(path, scope, sandbox).await {
                    deleted.push(path.to_owned());
                }
            }
            deleted.is_empty() || !outputs::is_tracked_work(&deleted, scope, sandbox).await
        }
        Exemption::Copied { from, to } => {
            let is_file = |file: &FileReference| {
                paths(file).iter().any(|path| plain(path).is_some_and(|path| scope.workspace().join(path).is_file()))
            };
            // Files outside of the workspace are covered by the check of their location.
            !is_file(to)
                || !is_file(from)
                || locate(to, scope) != Location::Inside
                || holds_no_work(to, scope, sandbox).await
                || !outputs::is_tracked(paths(from), scope, sandbox).await
        }
        Exemption::New(files) => {
            let mut are_new = are_few(files);
            for file in files {
                are_new = are_new
                    && match locate(file, scope) {
                        Location::Temporary => true,
                        Location::Inside => holds_no_work(file, scope, sandbox).await,
                        Location::Outside(_) | Location::Unknown => false,
                    };
            }
            are_new
        }
    }
}

fn is_no_file(file: &FileReference, scope: &Scope) -> bool {
    let is_none =
        |path: &String| plain(path).is_some_and(|path| scope.workspace().join(path).symlink_metadata().is_err());
    file.paths.as_ref().is_some_and(|paths| paths.iter().all(is_none))
}

/// Returns `true` if a file in the workspace is safe to lose: missing, a build output, or a leftover of programs.
async fn holds_no_work(file: &FileReference, scope: &Scope, sandbox: &Sandbox) -> bool {
    if is_no_file(file, scope) {
        return true;
    }
    for path in paths(file) {
        let Some(path) = plain(path) else { return false };
        let is_litter = || path.rsplit('/').next().is_some_and(is_litter_file);
        if !is_nowhere(path) && !is_litter() && !outputs::is_output(path, scope, sandbox).await {
            return false;
        }
    }
    true
}
