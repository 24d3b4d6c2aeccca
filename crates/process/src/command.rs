//! Programs to start.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use crate::environment::is_for_loader;
use crate::sandbox::Sandbox;
use crate::system::group::GroupWatcher;
use crate::system::pipes::Pipes;
use crate::system::process::set_group;
use crate::{Environment, Process, ProcessGroup};

/// A program to start, with its arguments, environment, folder and sandbox.
///
/// ```
/// use amplifier_process::{Command, Environment};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let completed = Command::new("cat", Environment::Commands).run(b"text", std::time::Duration::from_secs(10), 1024).await?;
/// assert_eq!(completed.stdout.bytes, b"text");
/// # std::io::Result::Ok(()) })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) folder: Option<PathBuf>,
    environment: Environment,
    variables: Vec<(OsString, OsString)>,
    pub(crate) has_input: bool,
    pub(crate) is_merged: bool,
    pub(crate) is_truncated: bool,
    is_watched: bool,
    sandbox: Sandbox,
}

impl Command {
    /// A program with this environment, in the current folder, without a sandbox.
    pub fn new(program: impl Into<OsString>, environment: Environment) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            folder: None,
            environment,
            variables: Vec::new(),
            has_input: true,
            is_merged: false,
            is_truncated: false,
            is_watched: false,
            sandbox: Sandbox::default(),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets the folder to run in.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Gives the program an empty standard input.
    #[must_use]
    pub fn without_input(mut self) -> Self {
        self.has_input = false;
        self
    }

    /// Merges standard error into standard output, in the order of writing.
    #[must_use]
    pub fn with_errors_in_output(mut self) -> Self {
        self.is_merged = true;
        self
    }

    /// Discards output beyond the limit of a [run](Self::run), instead of ending the program.
    #[must_use]
    pub fn with_truncated_output(mut self) -> Self {
        self.is_truncated = true;
        self
    }

    /// Kills the process group even if this process is killed. This starts a small shell, so it is for programs that are started seldom. No effect in
    /// a sandbox or on Windows.
    #[must_use]
    pub fn kill_with_parent(mut self) -> Self {
        self.is_watched = true;
        self
    }

    /// Sets the sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: &Sandbox) -> Self {
        self.sandbox = sandbox.clone();
        self
    }

    /// Starts the program in its own process group; in a sandbox, in its own session. Needs a tokio runtime.
    ///
    /// This process may be large, so forking is avoided: the standard library uses `posix_spawn` unless the program has a `PATH` of its own and is
    /// named without a path.
    ///
    /// # Errors
    /// If the program cannot be started. In a sandbox, a missing program ends with exit code 127 instead.
    ///
    /// # Cancel safety
    /// Dropping the process kills it and all that descends from it.
    pub fn start(&self) -> io::Result<Process> {
        if let Some(process) = self.sandbox.start_prepared(self) {
            return Ok(process);
        }
        let words = self.words();
        let (program, arguments) = words.split_first().ok_or(ErrorKind::InvalidInput)?;
        let mut command = tokio::process::Command::new(program);
        command.args(arguments);
        let watcher = (self.is_watched && self.sandbox.is_none()).then(GroupWatcher::start).transpose()?;
        // A group leader cannot start a session.
        if self.sandbox.is_none() {
            set_group(&mut command, watcher.as_ref());
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        for name in self.environment.removed() {
            command.env_remove(name);
        }
        command.envs(
            self.variables
                .iter()
                .filter(|variable| !self.is_loader_variable(variable))
                .map(|(name, value)| (name, value)),
        );
        let pipes = Pipes::open(self.has_input, self.is_merged)?;
        let [stdin, stdout, stderr] = pipes.child_ends;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        let child = command.kill_on_drop(true).spawn()?;
        // Closes the ends of the program.
        drop(command);
        let group = child.id().and_then(ProcessGroup::from_leader).ok_or(ErrorKind::NotFound)?.with_watcher(watcher);
        Ok(Process::new(group, child, None, pipes.stdin, pipes.stdout, pipes.stderr, self.sandbox.clone()))
    }

    pub(crate) fn all_variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let is_set = |name: &OsStr| self.variables.iter().any(|(set, _)| set == name);
        self.environment.inherited().filter(move |(name, _)| !is_set(name)).chain(self.variables.iter().cloned())
    }

    /// Returns the launcher, the command, and between them `env` with the variables that a launcher must not see.
    fn words(&self) -> Vec<OsString> {
        let mut words = self.sandbox.words().to_vec();
        let loader_variables = self.variables.iter().filter(|variable| self.is_loader_variable(variable));
        let loader_variables: Vec<OsString> =
            loader_variables.map(|(name, value)| [name.as_os_str(), value].join(OsStr::new("="))).collect();
        if !loader_variables.is_empty() {
            words.push("/usr/bin/env".into());
            words.extend(loader_variables);
        }
        words.push(self.program.clone());
        words.extend(self.arguments.iter().cloned());
        words
    }

    /// Returns `true` if the variable would make the loader run other code in a launcher, before it enters the sandbox.
    fn is_loader_variable(&self, (name, _): &(OsString, OsString)) -> bool {
        !self.sandbox.is_none() && is_for_loader(name)
    }
}

/// Omits the values of variables, which may be secrets.
impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.variables.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("Command")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("folder", &self.folder)
            .field("variables", &names)
            .finish_non_exhaustive()
    }
}
