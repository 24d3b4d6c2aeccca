//! Programs and variables that every Unix has.

use std::ffi::OsString;
use std::io;

pub(crate) const POSIX_SHELL: &str = "/bin/sh";
pub(crate) const FILE_OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
pub(crate) const HOME_VARIABLE: &str = "HOME";
pub(crate) const USER_NAME: &[&str] = &["USER", "LOGNAME"];
pub(crate) const BASIC_VARIABLES: &[&str] =
    &["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

pub(crate) fn bash() -> io::Result<OsString> {
    Ok("bash".into())
}

pub(crate) fn this_program() -> io::Result<OsString> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe().map(Into::into) }
}
