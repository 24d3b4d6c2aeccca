//! The programs that this one relies on, under the names that they have on this system.

use std::ffi::OsString;
use std::io;

use crate::system::programs as system;

/// The variable that names the home folder of the user.
pub const HOME_VARIABLE: &str = system::HOME_VARIABLE;

/// The shell for the lines that people write, such as those of hooks. With its path where it has the same one everywhere, so that it is found whatever `PATH` a
/// program is given. On Windows, a `sh` in `PATH`, which comes with Git for Windows.
pub fn posix_shell() -> OsString {
    system::POSIX_SHELL.into()
}

/// The shell for the commands of an agent. On Windows, the `bash` of Git for Windows: that of WSL runs commands in another system, where files have other paths than
/// those that were analysed and are protected.
///
/// # Errors
/// If there is none. It is looked for on Windows alone; elsewhere its start tells.
pub fn bash() -> io::Result<OsString> {
    system::bash()
}

/// This very program, to be started again. On Linux, also when its file has been replaced or removed since it was started.
///
/// # Errors
/// If the system does not tell.
pub fn this_program() -> io::Result<OsString> {
    system::this_program()
}

/// The program that opens a file with whatever the person uses for it.
pub fn file_opener() -> &'static str {
    system::FILE_OPENER
}

/// The name of the user, as the environment has it.
pub fn user_name() -> Option<String> {
    system::USER_NAME.iter().find_map(|variable| std::env::var(variable).ok())
}
