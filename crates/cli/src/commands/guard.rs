//! `amplifier guard`: the policy for other coding agents.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use amplifier_guard::daemon::{Daemon, DaemonOptions, GuardFolder};
use amplifier_host::{Config, Home, Overrides, reasons};
use amplifier_process::detach;
use anyhow::Result;
use clap::{Args, Subcommand};

/// Guard other coding agents with your bundles, approvals and audit log
#[derive(Args, Debug)]
pub struct Guard {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Decide about the calls of guarded agents; started by their hooks
    #[command(hide = true)]
    Daemon {
        /// Folder of the socket
        #[arg(long, value_name = "FOLDER")]
        folder: PathBuf,
        /// Time without a call after which the daemon ends
        #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
        idle: u64,
    },
    /// Answer one call of a hook; used if the program `amplifier-hook` is not installed
    #[command(hide = true, disable_help_flag = true)]
    Hook {
        /// Arguments of `amplifier-hook`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

impl Guard {
    /// Runs a command that must not have a runtime, or has to begin without one; returns any other.
    ///
    /// # Errors
    /// If the daemon cannot leave the session of its parent.
    pub fn run_alone(self) -> Result<Result<ExitCode, Self>> {
        match self.command {
            Command::Hook { arguments } => Ok(Ok(amplifier_hook::run(arguments))),
            Command::Daemon { .. } => {
                detach()?;
                Ok(Err(self))
            }
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// If the daemon cannot listen.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        match self.command {
            Command::Daemon { folder, idle } => run_daemon(&folder, Duration::from_secs(idle), home).await,
            Command::Hook { arguments } => Ok(amplifier_hook::run(arguments)),
        }
    }
}

async fn run_daemon(folder: &Path, idle: Duration, home: &Home) -> Result<ExitCode> {
    let folder = GuardFolder::new(folder);
    let config_home = home.clone();
    let load = move |workspace: &Path| {
        let overrides = Overrides { workspace: Some(workspace.to_owned()), ..Overrides::default() };
        Config::load(&overrides, &config_home)
    };
    let options = DaemonOptions {
        folder: folder.clone(),
        home: home.clone(),
        load: Box::new(load),
        idle,
        program: std::env::current_exe().ok(),
    };
    match Daemon::open(options).await {
        Ok(Some(daemon)) => daemon.run().await,
        // Another daemon answers.
        Ok(None) => {}
        Err(error) => {
            folder.leave_error(&reasons(&error));
            return Err(error.into());
        }
    }
    Ok(ExitCode::SUCCESS)
}
