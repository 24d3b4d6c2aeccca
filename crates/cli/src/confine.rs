//! Confinement of programs: this program starts others through itself, as `amplifier confined OPTIONS -- PROGRAM ARGUMENTS`, which confines itself and
//! starts the program.

use std::ffi::OsString;
use std::process::ExitCode;

use amplifier_host::Environment;
use amplifier_process::sandbox;

/// The word that makes this program a launcher. It is not for people, so no help names it.
const CONFINED: &str = "confined";

/// This very program, also when its file has been replaced or removed since it was started.
const THIS: &str = "/proc/self/exe";

/// Runs the launcher, if the arguments ask for that. It has to be called first of all: namespaces are entered by a process with one
/// thread.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    arguments.next_if(|word| word == CONFINED)?;
    Some(ExitCode::from(sandbox::launch(arguments)))
}

/// Returns the environment of this program, with its launcher.
pub fn environment() -> Environment {
    Environment::from_process().launcher([THIS, CONFINED])
}
