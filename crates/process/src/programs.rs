//! Programs that this one relies on, by their names on this system.

use std::ffi::OsString;
use std::io;

use crate::system::programs as system;

/// The environment variable with the home folder of the user.
pub const HOME_VARIABLE: &str = system::HOME_VARIABLE;

/// Returns the shell for lines that users write, such as hooks: an absolute path where all systems have the same one, so that `PATH` does not matter.
/// On Windows, a `sh` in `PATH`, which comes with Git for Windows.
pub fn posix_shell() -> OsString {
    system::POSIX_SHELL.into()
}

/// Returns the shell for commands of an agent. On Windows, the `bash` of Git for Windows: the one of WSL runs in another system, whose paths differ
/// from the analysed and protected ones.
///
/// # Errors
/// On Windows, if there is none. Elsewhere its start fails.
pub fn bash() -> io::Result<OsString> {
    system::bash()
}

/// Returns the path of this program, to start it again. On Linux, this works even if its file was replaced or removed.
///
/// # Errors
/// If the system does not know the path.
pub fn this_program() -> io::Result<OsString> {
    system::this_program()
}

/// Returns the program that opens a file with the default application.
pub fn file_opener() -> &'static str {
    system::FILE_OPENER
}

/// Returns the name of the user from the environment.
pub fn user_name() -> Option<String> {
    system::USER_NAME.iter().find_map(|variable| std::env::var(variable).ok())
}
