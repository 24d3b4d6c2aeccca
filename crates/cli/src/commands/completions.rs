//! `amplifier completions`: shell completions.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use super::output::print;

/// Print shell completions
///
/// For bash: `amplifier completions bash > ~/.local/share/bash-completion/completions/amplifier`
#[derive(Args, Debug)]
pub struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the completions of `command`.
    ///
    /// # Errors
    /// If the completions cannot be written.
    pub fn run(self, mut command: Command) -> anyhow::Result<ExitCode> {
        let name = command.get_name().to_owned();
        // Into memory, because the generator panics on write errors.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        print(script)
    }
}
