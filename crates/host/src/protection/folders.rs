//! Which folder is protected for the sake of a file in it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use amplifier_process::files::is_executable;

use crate::environment::Environment;

/// Folders of the system, and those that many programs keep their files in: only the file is protected there.
const SYSTEM: [&str; 11] =
    ["/bin", "/boot", "/etc", "/lib", "/lib64", "/nix", "/opt", "/sbin", "/snap", "/usr", "/var"];
const SHARED: [&str; 6] = ["bin", "sbin", ".bin", "Scripts", "node_modules", "site-packages"];
const SHARED_AT_HOME: [&str; 9] =
    [".config", ".local", ".local/lib", ".local/share", ".cache", ".cargo", "Desktop", "Documents", "Downloads"];
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What files of scripts end with.
const SCRIPTS: [&str; 15] =
    ["bash", "cjs", "fish", "js", "lua", "mjs", "php", "pl", "ps1", "py", "pyz", "rb", "sh", "ts", "zsh"];

/// The folder of a file, if commands have no business in it.
///
/// Whoever can write to the folder of a file can put another in its place, also while a mount lies over the file. But a folder cannot be protected if it
/// holds what the agent works on, or what many programs share.
pub(super) fn own_folder(file: &Path, workspace: &Path, environment: &Environment) -> Option<PathBuf> {
    let home = environment.home();
    let folder = file.parent()?;
    let temporary = TEMPORARY.iter().map(PathBuf::from).chain([environment.temporary().to_owned()]);
    let needed = [workspace].into_iter().map(Path::to_owned).chain(home.map(Path::to_owned)).chain(temporary);
    let is_needed = needed.into_iter().any(|needed| needed.starts_with(folder));
    let is_system = SYSTEM.iter().any(|system| folder.starts_with(system));
    let is_shared = folder.file_name().is_some_and(|name| SHARED.iter().any(|shared| name == *shared));
    let is_shared_at_home = home.is_some_and(|home| SHARED_AT_HOME.iter().any(|shared| folder == home.join(shared)));
    (!is_needed && !is_system && !is_shared && !is_shared_at_home).then(|| folder.to_owned())
}

/// `true` if a file is a program or a script, rather than something that a program reads.
pub(super) fn is_program(file: &Path) -> bool {
    let is_script = file.extension().is_some_and(|extension| SCRIPTS.iter().any(|script| extension == *script));
    let may_run = || file.metadata().is_ok_and(|metadata| is_executable(&metadata));
    is_script || may_run() || has_interpreter(file)
}

/// `true` if a file begins with `#!`.
fn has_interpreter(file: &Path) -> bool {
    let mut start = [0; 2];
    File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}
