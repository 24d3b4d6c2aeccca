//! `amplifier audit`: the audit log and its key.

mod export;
pub(crate) mod filter;
mod prove;
pub(crate) mod reader;
mod rotate_key;
pub(crate) mod row;
mod show;
mod stats;
mod summary;
mod tail;
pub(crate) mod text;
pub(crate) mod verify;

use amplifier_host::Home;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::exit::{checked, untrusted};
use super::output::ignore_closed_pipe;

/// Read, verify and prove the audit log; rotate its key
///
/// Exit codes: 0 done, sound or proved; 1 failed, unsound or not proved; 2 wrong usage; 4 not checked, because the log or the proof is unreadable.
#[derive(Args, Debug)]
pub struct Audit {
    // Boxed: these commands have far more options than others in the same enum.
    #[command(subcommand)]
    command: Box<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    Show(show::Show),
    Tail(tail::Tail),
    Verify(verify::Verify),
    Stats(stats::Statistics),
    Prove(prove::Prove),
    Export(export::Export),
    RotateKey(rotate_key::RotateKey),
}

/// The location of a log.
#[derive(Args, Debug)]
struct LogLocation {
    /// Folder of the log [default: the log of this installation]
    folder: Option<PathBuf>,
}

impl LogLocation {
    /// Returns the folder. A home is required only if no folder was given.
    fn or_home(self, home: anyhow::Result<Home>) -> anyhow::Result<PathBuf> {
        self.folder.map_or_else(|| Ok(home?.audit_folder()), Ok)
    }
}

impl Audit {
    /// Runs the command.
    ///
    /// # Errors
    /// If the log cannot be read. For checks, the exit code then differs from 1 for a changed log.
    pub fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        let done = match *self.command {
            Command::Show(show) => show.run(home),
            Command::Tail(tail) => tail.run(home),
            Command::Verify(verify) => checked(verify.run(home)),
            Command::Stats(statistics) => statistics.run(home),
            Command::Prove(prove) if prove.is_check() => checked(prove.run(home)),
            Command::Prove(prove) => prove.run(home),
            Command::Export(export) => export.run(home),
            Command::RotateKey(rotate) => rotate.run(home),
        };
        untrusted(ignore_closed_pipe(done))
    }
}
