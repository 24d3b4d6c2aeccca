//! `amplifier man`: manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};

use super::output::print;

/// Print a manual page, or write all pages
///
/// Example: `amplifier man audit verify | man -l -`
#[derive(Args, Debug)]
pub struct Man {
    /// Command of the page, such as `audit verify`
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
    /// Folder for the pages of all commands, such as `~/.local/share/man/man1`
    #[arg(long, value_name = "FOLDER", conflicts_with = "path")]
    output: Option<PathBuf>,
    /// Prints the reference of all commands as Markdown
    #[arg(long, hide = true, conflicts_with_all = ["path", "output"])]
    markdown: bool,
}

impl Man {
    /// Prints the page of `command` or of the requested subcommand.
    ///
    /// # Errors
    /// If the command is unknown or the pages cannot be written.
    pub fn run(self, command: Command) -> anyhow::Result<ExitCode> {
        let mut command = command.disable_help_subcommand(true);
        if let Some(folder) = self.output {
            let problem = || format!("cannot write the pages to `{}`", folder.display());
            std::fs::create_dir_all(&folder).with_context(problem)?;
            clap_mangen::generate_to(command, &folder).with_context(problem)?;
            return Ok(ExitCode::SUCCESS);
        }
        // Gives the subcommands their full names.
        command.build();
        if self.markdown {
            return print(super::reference::markdown(&command));
        }
        let mut wanted = &command;
        for name in &self.path {
            wanted = wanted
                .find_subcommand(name)
                .with_context(|| format!("unknown command `{}`; see `amplifier --help`", self.path.join(" ")))?;
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(wanted.clone()).render(&mut page)?;
        print(page)
    }
}
