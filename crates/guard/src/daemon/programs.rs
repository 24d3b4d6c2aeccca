//! The programs of the guard.

use std::env::split_paths;
use std::path::{Path, PathBuf};

use amplifier_host::Home;

const NAMES: [&str; 2] = ["amplifier", "amplifier-hook"];

/// Returns the programs of the guard: those beside the program of the daemon, and those that a shell would find. A link and its target are both listed.
pub(super) fn find(program: Option<&Path>, home: &Home) -> Vec<PathBuf> {
    let beside = program.and_then(Path::parent).map(Path::to_owned);
    let path = home.environment().variable("PATH").map(|path| split_paths(path).collect::<Vec<_>>());
    let user = home.environment().home().map(|home| [home.join(".cargo/bin"), home.join(".local/bin")]);
    let folders = beside.into_iter().chain(path.into_iter().flatten()).chain(user.into_iter().flatten());
    let found = folders.filter(|folder| folder.is_absolute()).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    let mut programs: Vec<PathBuf> =
        program.map(Path::to_owned).into_iter().chain(found.filter(|file| file.exists())).collect();
    let targets: Vec<PathBuf> = programs.iter().filter_map(|file| file.canonicalize().ok()).collect();
    programs.extend(targets);
    programs.sort();
    programs.dedup();
    programs
}
