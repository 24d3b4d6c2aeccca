//! `amplifier guard`: the policy for other coding agents.

mod canary;
mod explain;
mod install;
mod status;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use amplifier_guard::Client;
use amplifier_guard::daemon::{Daemon, DaemonOptions, GuardFolder};
use amplifier_guard::settings::{self, Scope, settings_file};
use amplifier_host::{Config, Home, Overrides, reasons};
use amplifier_process::detach;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::errors::usage;

/// Guard other coding agents with your bundles, approvals and audit log
#[derive(Args, Debug)]
pub struct Guard {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Add the guard to the settings of agents, and test it
    Install {
        #[command(flatten)]
        selection: Selection,
        /// Show the changes of settings without making them
        #[arg(long)]
        dry_run: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove the guard from the settings of agents, and nothing else
    Uninstall {
        #[command(flatten)]
        selection: Selection,
        /// Show the changes of settings without making them
        #[arg(long)]
        dry_run: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show where the guard is installed, and what disables it
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a call that must be denied through the installed hooks, and look for it in the audit log
    Test {
        /// Agents [possible values: claude, codex, gemini, copilot] [default: all guarded ones]
        #[arg(value_name = "CLIENT")]
        clients: Vec<Client>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain which answers of hooks an agent can express
    Explain {
        /// Agents [possible values: claude, codex, gemini, copilot, opencode, cursor] [default: all]
        #[arg(value_name = "CLIENT")]
        clients: Vec<Client>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
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

/// The agents and the level of settings.
#[derive(Args, Debug)]
struct Selection {
    /// Agents [possible values: claude, codex, gemini, copilot] [default: all with a settings folder]
    #[arg(value_name = "CLIENT")]
    clients: Vec<Client>,
    /// Every supported agent
    #[arg(long, conflicts_with = "clients")]
    all: bool,
    /// Settings of the user; the default
    #[arg(long, conflicts_with_all = ["project", "system"])]
    user: bool,
    /// Settings of the project in the current folder
    #[arg(long, conflicts_with = "system")]
    project: bool,
    /// Settings of the system; `uninstall` removes an earlier installation
    #[arg(long, hide = true)]
    system: bool,
}

impl Selection {
    fn scope(&self) -> Scope {
        match (self.project, self.system) {
            (true, _) => Scope::Project,
            (_, true) => Scope::System,
            _ => Scope::User,
        }
    }

    /// Returns the clients with their files.
    fn files(&self, places: &Places) -> Result<Vec<(Client, PathBuf)>> {
        let supported: Vec<Client> = settings::supported().collect();
        let is_present = |client: &Client| places.user.join(format!(".{client}")).is_dir();
        let clients: Vec<Client> = match (self.clients.is_empty(), self.all) {
            (false, _) => self.clients.clone(),
            (true, true) => supported.clone(),
            (true, false) => supported.iter().copied().filter(is_present).collect(),
        };
        if clients.is_empty() {
            return Err(usage("no agent found in the home folder; name one, such as `amplifier guard install claude`"));
        }
        let file = |client: Client| {
            let file = settings_file(client, self.scope(), &places.user, &places.project);
            Ok((client, file.ok_or_else(|| usage(format!("the settings of {client} cannot be written yet")))?))
        };
        clients.into_iter().map(file).collect()
    }
}

/// The folders of an installation.
struct Places {
    /// The home folder of the user.
    user: PathBuf,
    /// The current folder.
    project: PathBuf,
    guard: GuardFolder,
}

impl Places {
    fn find(home: &Home) -> Result<Self> {
        if cfg!(not(unix)) {
            bail!("the guard does not support this system; use Linux or macOS");
        }
        let user = home.environment().home().context("no home folder found; set HOME")?.to_owned();
        let project = home.environment().current_dir().to_owned();
        let data = std::path::absolute(home.data())?;
        Ok(Self { user, project, guard: GuardFolder::new(data.join("guard")) })
    }

    /// Returns all files in which the guard of a client may be, with their levels.
    fn files(&self, client: Client) -> impl Iterator<Item = (Scope, PathBuf)> {
        Scope::ALL
            .into_iter()
            .filter_map(move |scope| settings_file(client, scope, &self.user, &self.project).map(|file| (scope, file)))
    }
}

impl Guard {
    /// Runs a command that must not have a runtime, or has to begin without one; returns any other.
    ///
    /// # Errors
    /// If the daemon cannot leave the session of its parent.
    pub fn run_alone(self) -> Result<Result<ExitCode, Self>> {
        match self.command {
            Command::Hook { arguments } => Ok(Ok(amplifier_hook::run(arguments))),
            command => {
                if matches!(command, Command::Daemon { .. }) {
                    detach()?;
                }
                Ok(Err(Self { command }))
            }
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// If the daemon cannot listen, or settings cannot be read or written.
    pub async fn run(self, home: &Home) -> Result<ExitCode> {
        match self.command {
            Command::Daemon { folder, idle } => run_daemon(&folder, Duration::from_secs(idle), home).await,
            Command::Hook { arguments } => Ok(amplifier_hook::run(arguments)),
            Command::Install { selection, dry_run, json } => {
                let change = if dry_run { install::Change::Preview } else { install::Change::Write };
                install::install(&selection, change, json, home)
            }
            Command::Uninstall { selection, dry_run, json } => {
                let change = if dry_run { install::Change::Preview } else { install::Change::Write };
                install::uninstall(&selection, change, json, home)
            }
            Command::Status { json } => status::run(json, home).await,
            Command::Test { clients, json } => canary::run(&clients, json, home),
            Command::Explain { clients, json } => explain::run(&clients, json),
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
