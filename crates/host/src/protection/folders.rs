//! The choice of folders to protect together with a file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use amplifier_process::files::is_executable;

use crate::environment::Environment;

/// Shared folders, in which only the file itself is protected.
const SYSTEM: [&str; 11] =
    ["/bin", "/boot", "/etc", "/lib", "/lib64", "/nix", "/opt", "/sbin", "/snap", "/usr", "/var"];
const SHARED: [&str; 6] = ["bin", "sbin", ".bin", "Scripts", "node_modules", "site-packages"];
const SHARED_AT_HOME: [&str; 9] =
    [".config", ".local", ".local/lib", ".local/share", ".cache", ".cargo", "Desktop", "Documents", "Downloads"];
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

const SCRIPTS: [&str; 15] =
    ["bash", "cjs", "fish", "js", "lua", "mjs", "php", "pl", "ps1", "py", "pyz", "rb", "sh", "ts", "zsh"];

/// Returns the folder of a file, if it can be protected.
///
/// A process that can write to the folder can replace the file, even under a mount. But a folder cannot be protected if it contains the workspace or
/// is shared by many programs.
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

/// Returns `true` for a program or script, as opposed to data.
pub(super) fn is_program(file: &Path) -> bool {
    let is_script = file.extension().is_some_and(|extension| SCRIPTS.iter().any(|script| extension == *script));
    let may_run = || file.metadata().is_ok_and(|metadata| is_executable(&metadata));
    is_script || may_run() || has_interpreter(file)
}

/// Returns `true` if a file begins with `#!`.
fn has_interpreter(file: &Path) -> bool {
    let mut start = [0; 2];
    File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}
