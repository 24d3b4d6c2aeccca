//! What a command destroys that is a loss, now that the files are known.

use amplifier_process::sandbox::Sandbox;

use super::outputs;
use super::places::{Where, is_below_temporary, is_nowhere, is_single_or_litter, locate, paths, plain};
use crate::condition::Scope;
use crate::shell::{Effects, Excuse, Place, is_litter_file};

/// So many files are looked at.
const FILES: usize = 64;

/// The first loss that has no excuse, in words.
pub(super) async fn why(effects: &Effects, scope: &Scope, sandbox: &Sandbox) -> Option<String> {
    for loss in &effects.losses {
        if !is_excused(&loss.excuse, scope, sandbox).await {
            return Some(loss.why.clone());
        }
    }
    None
}

async fn is_excused(excuse: &Excuse, scope: &Scope, sandbox: &Sandbox) -> bool {
    let are_few = |places: &[Place]| places.len() <= FILES;
    match excuse {
        Excuse::Never => false,
        Excuse::Outputs(places) => {
            let mut are_known = !places.is_empty() && are_few(places);
            for place in places {
                are_known &= place.paths.is_some();
                for path in paths(place) {
                    are_known = are_known
                        && (is_below_temporary(path, scope) || outputs::is_output(path, scope, sandbox).await);
                }
            }
            are_known
        }
        Excuse::Inside(places) => {
            let is_inside = |place: &Place| match locate(place, scope) {
                Where::Temporary => {
                    paths(place).iter().all(|path| plain(path).is_some() || is_below_temporary(path, scope))
                }
                Where::Inside => paths(place).iter().all(|path| is_single_or_litter(path)),
                Where::Outside(_) | Where::Unknown => false,
            };
            are_few(places) && places.iter().all(is_inside)
        }
        Excuse::Workspace(places) => places.iter().all(|place| locate(place, scope) == Where::Inside),
        Excuse::NoFile(places) => are_few(places) && places.iter().all(|place| is_no_file(place, scope)),
        Excuse::Deleted(places) => {
            let mut files = Vec::new();
            for path in places.iter().flat_map(paths).filter_map(|path| plain(path)).take(FILES) {
                let is_file = scope.workspace().join(path).is_file() && !is_below_temporary(path, scope);
                if is_file && !outputs::is_output(path, scope, sandbox).await {
                    files.push(path.to_owned());
                }
            }
            files.is_empty() || !outputs::is_work(&files, scope, sandbox).await
        }
        Excuse::Copied { from, to } => {
            let is_file = |place: &Place| {
                paths(place).iter().any(|path| plain(path).is_some_and(|path| scope.workspace().join(path).is_file()))
            };
            // What lies elsewhere is judged by where it is.
            !is_file(to)
                || !is_file(from)
                || locate(to, scope) != Where::Inside
                || holds_no_work(to, scope, sandbox).await
                || !outputs::is_kept(paths(from), scope, sandbox).await
        }
        Excuse::New(places) => {
            let mut are_new = are_few(places);
            for place in places {
                are_new = are_new
                    && match locate(place, scope) {
                        Where::Temporary => true,
                        Where::Inside => holds_no_work(place, scope, sandbox).await,
                        Where::Outside(_) | Where::Unknown => false,
                    };
            }
            are_new
        }
    }
}

/// Whether a place is certainly no file.
fn is_no_file(place: &Place, scope: &Scope) -> bool {
    let is_none =
        |path: &String| plain(path).is_some_and(|path| scope.workspace().join(path).symlink_metadata().is_err());
    place.paths.as_ref().is_some_and(|paths| paths.iter().all(is_none))
}

/// `true` if there is nothing to lose at a place in the workspace: no file, a build output, or what programs leave behind.
async fn holds_no_work(place: &Place, scope: &Scope, sandbox: &Sandbox) -> bool {
    if is_no_file(place, scope) {
        return true;
    }
    for path in paths(place) {
        let Some(path) = plain(path) else { return false };
        let is_litter = || path.rsplit('/').next().is_some_and(is_litter_file);
        if !is_nowhere(path) && !is_litter() && !outputs::is_output(path, scope, sandbox).await {
            return false;
        }
    }
    true
}
