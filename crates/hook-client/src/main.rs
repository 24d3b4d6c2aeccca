//! `amplifier-hook`: the hook of another coding agent asks the daemon of the guard, and denies if anything goes wrong.

use std::process::ExitCode;

fn main() -> ExitCode {
    amplifier_hook::run(std::env::args_os().skip(1))
}
