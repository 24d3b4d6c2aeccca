//! A program to start, and its surroundings.

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

/// A program to start: its arguments, environment, folder and sandbox.
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
    /// A program with this environment, in the folder of this process, without a sandbox.
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

    /// Runs in another folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Has nothing to read.
    #[must_use]
    pub fn without_input(mut self) -> Self {
        self.has_input = false;
        self
    }

    /// Writes errors to its output, so that what it writes stays in order.
    #[must_use]
    pub fn with_errors_in_output(mut self) -> Self {
        self.is_merged = true;
        self
    }

    /// Reads and forgets what it writes beyond the limits of a [run](Self::run), instead of ending it.
    #[must_use]
    pub fn with_truncated_output(mut self) -> Self {
        self.is_truncated = true;
        self
    }

    /// Ends its process group also if this process is killed. It takes a tiny shell, so it is for programs that are started seldom; in a sandbox, and on Windows, it does
    /// nothing.
    #[must_use]
    pub fn kill_with_parent(mut self) -> Self {
        self.is_watched = true;
        self
    }

    /// Runs in a sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: &Sandbox) -> Self {
        self.sandbox = sandbox.clone();
        self
    }

    /// Starts it, in a process group of its own: in a sandbox, in a session of its own. Needs a tokio runtime.
    ///
    /// This process may be large, so it must not be forked. Nothing here keeps the standard library from `posix_spawn`: a process group and (since glibc 2.29) a
    /// folder do not; only a `PATH` of its own for a program that is given without its path does.
    ///
    /// # Errors
    /// If it cannot be started. In a sandbox, a program that is missing ends with exit code 127 instead.
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
        // A process that leads a group cannot start a session.
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
        // The ends that the program has are closed here.
        drop(command);
        let group = child.id().and_then(ProcessGroup::from_leader).ok_or(ErrorKind::NotFound)?.with_watcher(watcher);
        Ok(Process::new(group, child, None, pipes.stdin, pipes.stdout, pipes.stderr, self.sandbox.clone()))
    }

    /// All variables that the program gets.
    pub(crate) fn all_variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let is_set = |name: &OsStr| self.variables.iter().any(|(set, _)| set == name);
        self.environment.inherited().filter(move |(name, _)| !is_set(name)).chain(self.variables.iter().cloned())
    }

    /// The words of the sandbox, the command, and between them what sets the variables that a launcher must not see.
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

    /// `true` if a variable would make the loader put other code into a launcher, before that enters the sandbox.
    fn is_loader_variable(&self, (name, _): &(OsString, OsString)) -> bool {
        !self.sandbox.is_none() && is_for_loader(name)
    }
}

/// The values of variables may be secrets.
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
