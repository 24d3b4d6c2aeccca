//! Confinement of programs: this program starts others through itself, as `amplifier confined OPTIONS -- PROGRAM ARGUMENTS`, which confines itself and
//! starts the program.

use std::ffi::OsString;
use std::process::ExitCode;

use amplifier_host::Environment;
use amplifier_process::{sandbox, this_program};

/// The word that makes this program a launcher. It is not for people, so no help names it.
const CONFINED: &str = "confined";

/// Runs the launcher, if the arguments ask for that. It has to be called first of all: namespaces are entered by a process with one
/// thread.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    arguments.next_if(|word| word == CONFINED)?;
    Some(ExitCode::from(sandbox::launch(arguments)))
}

/// Returns the environment of this program, with its launcher. Where the system does not tell which program this is, there is none, and nothing is confined.
pub fn environment() -> Environment {
    let environment = Environment::from_process();
    match this_program() {
        Ok(program) => environment.launcher([program, CONFINED.into()]),
        Err(_) => environment,
    }
}
