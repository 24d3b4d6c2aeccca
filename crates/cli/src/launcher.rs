//! The sandbox launcher. The program starts others through itself, as `amplifier confined OPTIONS -- PROGRAM ARGUMENTS`; the launcher
//! confines itself and then starts the program.

use std::ffi::OsString;
use std::process::ExitCode;

use amplifier_host::Environment;
use amplifier_process::{sandbox, this_program};

/// The hidden subcommand of the launcher.
const CONFINED: &str = "confined";

/// Runs the launcher if the arguments request it. Must be called before any thread starts, because only a single-threaded process can
/// enter namespaces.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    arguments.next_if(|word| word == CONFINED)?;
    Some(ExitCode::from(sandbox::launch(arguments)))
}

/// Returns the environment of this program with its launcher. Without the path of its executable, the program has no launcher and no sandbox.
pub fn environment() -> Environment {
    let environment = Environment::from_process();
    match this_program() {
        Ok(program) => environment.launcher([program, CONFINED.into()]),
        Err(_) => environment,
    }
}
