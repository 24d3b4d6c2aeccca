//! `amplifier guard`: the policy for other coding agents.

mod canary;
mod codex_hooks;
mod explain;
mod install;
mod last_calls;
mod live;
mod settings_files;
mod status;
mod system;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use amplifier_guard::Client;
use amplifier_guard::daemon::{Daemon, DaemonOptions, GuardFolder};
use amplifier_guard::settings::{ClientFolders, DaemonPlace, HookProgram, InstalledHook, Scope, settings_file};
use amplifier_host::{Config, Home, Overrides, reasons};
use amplifier_process::detach;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

pub(crate) use self::status::check;
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
    /// Show where the guard is installed, what disables it, and its last calls
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a call that must be denied through the installed hooks, and look for it in the audit log
    Test {
        /// Agents [possible values: claude, codex, gemini, copilot, opencode, cursor] [default: all guarded ones]
        #[arg(value_name = "CLIENT")]
        clients: Vec<Client>,
        /// Also run the installed agents, with a scripted model instead of a real one
        #[arg(long)]
        live: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain the effect of your policy in an agent, and which answers of hooks it can express
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
    /// Agents [possible values: claude, codex, gemini, copilot, opencode, cursor] [default: all with a settings folder]
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
    /// Settings of the system, for all users; no project can switch them off
    #[arg(long)]
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
        let file = |client: Client| settings_file(client, self.scope(), &places.folders).map(|file| (client, file));
        let is_present = |client: &Client| places.folders.of_user(*client).is_dir();
        let files: Vec<(Client, PathBuf)> = match (self.clients.is_empty(), self.all) {
            (false, _) => {
                let none = |client: Client| usage(format!("{client} has no settings of the {}", self.scope()));
                let clients = self.clients.iter();
                clients.map(|client| file(*client).ok_or_else(|| none(*client))).collect::<Result<_>>()?
            }
            (true, true) => Client::ALL.into_iter().filter_map(file).collect(),
            (true, false) => Client::ALL.into_iter().filter(is_present).filter_map(file).collect(),
        };
        match files.is_empty() {
            true => Err(usage("no agent found in the home folder; name one, such as `amplifier guard install claude`")),
            false => Ok(files),
        }
    }
}

/// Returns the place of the daemon that hooks of a level ask: the program of the daemon, or its folder.
fn daemon_place(scope: Scope, path: &Path) -> DaemonPlace<'_> {
    match scope {
        Scope::System => DaemonPlace::CallingUser(path),
        Scope::User | Scope::Project => DaemonPlace::Folder(path),
    }
}

/// The folders and programs of an installation.
struct Places {
    folders: ClientFolders,
    guard: GuardFolder,
    /// This program, which is that of the daemon, too.
    program: PathBuf,
    /// The program that hooks call.
    hook: HookProgram,
}

impl Places {
    fn find(home: &Home) -> Result<Self> {
        if cfg!(not(unix)) {
            bail!("the guard does not support this system; use Linux or macOS");
        }
        let environment = home.environment();
        let user = environment.home().context("no home folder found; set HOME")?;
        let folders = ClientFolders::new(user, environment.current_dir());
        let folders = folders.with_variables(|name| environment.variable(name).map(PathBuf::from));
        let program = std::env::current_exe().context("the path of this program is unknown")?;
        let small = program.with_file_name("amplifier-hook");
        // The small one starts faster.
        let hook = if small.is_file() { HookProgram::small(small) } else { HookProgram::command(program.clone()) };
        let guard = GuardFolder::new(std::path::absolute(home.data())?.join("guard"));
        Ok(Self { folders, guard, program, hook })
    }

    /// Returns the reasons why the client does not run hooks, if it can report them.
    fn unused_hooks(&self, client: Client, hooks: &[InstalledHook]) -> Vec<String> {
        let report = (client == Client::Codex).then(|| codex_hooks::unused(hooks, self.folders.project())).flatten();
        report.unwrap_or_default()
    }

    /// Returns the programs that installed hooks of a level may name.
    ///
    /// Only the administrator writes settings of the system, for programs of the administrator. Users may have this program at another place, too.
    ///
    /// # Errors
    /// If another user than the administrator can replace a program that all users run.
    fn programs(&self, scope: Scope, hooks: &[InstalledHook]) -> Result<(HookProgram, PathBuf)> {
        if scope != Scope::System {
            return Ok((self.hook.clone(), self.guard.path().to_owned()));
        }
        let named = hooks.first().and_then(|hook| HookProgram::from_system_line(&hook.command));
        let (hook, daemon) = named.context("the hooks of the system name no program")?;
        system::check_program(hook.path())?;
        system::check_program(&daemon)?;
        Ok((hook, daemon))
    }

    /// Returns all files in which the guard of a client may be, with their levels.
    fn files(&self, client: Client) -> impl Iterator<Item = (Scope, PathBuf)> {
        Scope::ALL
            .into_iter()
            .filter_map(move |scope| settings_file(client, scope, &self.folders).map(|file| (scope, file)))
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
            Command::Test { clients, live, json } => {
                let extent = if live { canary::Extent::Live } else { canary::Extent::Lines };
                canary::run(&clients, extent, json, home)
            }
            Command::Explain { clients, json } => explain::run(&clients, json, home),
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
        // As a task: a call then stays on the thread that has accepted it.
        Ok(Some(daemon)) => tokio::spawn(daemon.run()).await?,
        // Another daemon answers.
        Ok(None) => {}
        Err(error) => {
            folder.leave_error(&reasons(&error));
            return Err(error.into());
        }
    }
    Ok(ExitCode::SUCCESS)
}
