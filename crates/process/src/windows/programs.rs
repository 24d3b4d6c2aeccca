//! Programs and variables on Windows.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::Path;

pub(crate) const POSIX_SHELL: &str = "sh.exe";
pub(crate) const FILE_OPENER: &str = "explorer.exe";
pub(crate) const HOME_VARIABLE: &str = "USERPROFILE";
pub(crate) const USER_NAME: &[&str] = &["USERNAME"];
/// The variables that a program needs. Without `SYSTEMROOT`, most cannot open a connection.
pub(crate) const BASIC_VARIABLES: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];

pub(crate) fn bash() -> io::Result<OsString> {
    let system = super::group::system_folder();
    // WSL installs its `bash.exe` in a Windows folder, or in the one for apps.
    let is_of_wsl = |folder: &Path| {
        let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase());
        starts_with(folder, &system) || name.is_some_and(|name| name == "windowsapps")
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute() && !is_of_wsl(folder));
    let found = folders.find_map(|folder| Some(folder.join("bash.exe")).filter(|file| file.is_file()));
    let missing = "no usable `bash.exe` in `PATH` (the one of WSL does not count); install Git for Windows, and add its `bin` to `PATH`";
    found.map(Into::into).ok_or_else(|| io::Error::new(ErrorKind::NotFound, missing))
}

pub(crate) fn this_program() -> io::Result<OsString> {
    std::env::current_exe().map(Into::into)
}

/// As [`Path::starts_with`], ignoring case.
fn starts_with(path: &Path, folder: &Path) -> bool {
    let lower = |path: &Path| path.to_string_lossy().to_lowercase();
    Path::new(&lower(path)).starts_with(lower(folder))
}
