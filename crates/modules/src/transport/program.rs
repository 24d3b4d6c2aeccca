//! The program of a hook.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{HookError, HookResult};
use amplifier_process::sandbox::{PIN_MISMATCH_TEXT, Sandbox};
use amplifier_process::{Command, CompletedProcess, Environment, Process, posix_shell};

use super::{TransportError, expand::expand_for_hook, runtime, tail};
use crate::trust::PinnedFiles;

const MAX_STDERR_CHARS: usize = 1000;

/// A program and its environment.
///
/// The program gets the environment of the agent, except variables whose names look like secrets (with `KEY`, `TOKEN`, `SECRET`, `PASSW`,
/// `CREDENTIAL` or `PRIVATE` in them) and those that make an interpreter run other code (`LD_PRELOAD`, `BASH_ENV`, `PYTHONPATH`). To pass such a
/// variable, name it: `("GITHUB_TOKEN", "${GITHUB_TOKEN}")`. Python does not import from the user's site-packages.
///
/// ```
/// use amplifier_modules::transport::Program;
///
/// let listed = Program::new(["ruff", "check", "."]);
/// let line = Program::line("ruff check . | head -20");
/// ```
#[derive(Clone)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Working folder; that of the agent by default.
    pub folder: Option<PathBuf>,
    /// Additional variables. `${NAME}` in a value is a variable of the agent.
    pub environment: Vec<(String, String)>,
    sandbox: Sandbox,
    /// Folders that Python imports from, instead of the script's folder.
    python_path: Option<Vec<PathBuf>>,
    pinned_files: Option<Arc<PinnedFiles>>,
}

impl Program {
    /// Creates a program with arguments.
    pub fn new(command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            folder: None,
            environment: Vec::new(),
            sandbox: Sandbox::default(),
            python_path: None,
            pinned_files: None,
        }
    }

    /// Creates a program that runs a line in the [shell](posix_shell).
    pub fn line(line: impl Into<OsString>) -> Self {
        Self::new([posix_shell(), "-c".into(), line.into()])
    }

    /// Sets the sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Makes Python import from these folders, which commands of the agent cannot change, instead of the script's folder.
    #[must_use]
    pub(crate) fn python_path(mut self, folders: Vec<PathBuf>) -> Self {
        self.python_path = Some(folders);
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets a variable; `${NAME}` in its value is a variable of the agent.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the files that must be unchanged when the program starts.
    #[must_use]
    pub(crate) fn pinned_files(mut self, pinned_files: Option<Arc<PinnedFiles>>) -> Self {
        self.pinned_files = pinned_files;
        self
    }

    /// Denies if a pinned file has changed, regardless of `on_error`: changing a guard's program must not bypass it.
    pub(super) async fn deny_if_changed(&self) -> Result<Option<HookResult>, HookError> {
        Ok(self.find_change().await?.map(HookResult::deny))
    }

    /// Returns a message about a changed file.
    pub(crate) async fn find_change(&self) -> Result<Option<String>, HookError> {
        let Some(pinned_files) = self.pinned_files.clone() else { return Ok(None) };
        let checked = tokio::task::spawn_blocking(move || pinned_files.check()).await;
        let checked =
            checked.map_err(|error| HookError::Failed(format!("checking the hook's files failed: {error}")))?;
        Ok(checked.err())
    }

    /// Turns a failed start into a denial, if a pinned file changed between the check and the start.
    pub(super) fn deny_changed_at_start(&self, answer: Result<HookResult, HookError>) -> Result<HookResult, HookError> {
        match answer {
            Err(error) if !self.sandbox.is_none() && error.to_string().contains(PIN_MISMATCH_TEXT) => {
                Ok(HookResult::deny("a file of the hook changed during its start, so the hook did not run"))
            }
            answer => answer,
        }
    }

    /// Expands environment variables in the values.
    pub(super) fn resolve(mut self, hook: &str) -> Result<Self, TransportError> {
        if self.command.first().is_none_or(|program| program.is_empty()) {
            return Err(TransportError::NoCommand { hook: hook.to_owned() });
        }
        for (name, value) in &mut self.environment {
            *value = expand_for_hook(hook, name, value)?;
        }
        Ok(self)
    }

    /// Runs the program with an input, a time limit, and a maximum number of bytes for each of its outputs.
    ///
    /// # Cancel safety
    /// Dropping the future kills the program and all its descendants.
    pub(crate) async fn run(&self, input: &[u8], limit: Duration, most: usize) -> Result<CompletedProcess, HookError> {
        self.run_with(&[], input, limit, most).await
    }

    /// Runs the program as [`run`](Self::run) does, with additional variables. The variables of its definition take precedence.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    pub(super) async fn run_with(
        &self,
        variables: &[(&str, String)],
        input: &[u8],
        limit: Duration,
        most: usize,
    ) -> Result<CompletedProcess, HookError> {
        runtime()?;
        self.to_command(variables).run(input, limit, most).await.map_err(|error| self.not_started(&error))
    }

    /// Starts the program.
    pub(super) fn start(&self, variables: &[(&str, String)]) -> Result<Process, HookError> {
        self.to_command(variables).start().map_err(|error| self.not_started(&error))
    }

    fn not_started(&self, error: &io::Error) -> HookError {
        let program = self.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        HookError::Failed(format!("`{program}` cannot be started: {error}; check that program and folder exist"))
    }

    fn to_command(&self, variables: &[(&str, String)]) -> Command {
        let (program, arguments) =
            self.command.split_first().map_or((OsStr::new(""), &[][..]), |(program, rest)| (program, rest));
        let pins = self.pinned_files.as_ref().map(|files| files.for_sandbox()).unwrap_or_default();
        let mut command =
            Command::new(program, Environment::Hooks).args(arguments).sandbox(&self.sandbox.pinning(&pins));
        if let Some(folder) = &self.folder {
            command = command.folder(folder);
        }
        // Prevents imports and `.pth` files from the user's site-packages, to which commands of the agent may have written.
        command = command.variable("PYTHONNOUSERSITE", "1");
        if let Some(folders) = &self.python_path {
            command = command.variable("PYTHONSAFEPATH", "1");
            if let Some(folders) = std::env::join_paths(folders).ok().filter(|folders| !folders.is_empty()) {
                command = command.variable("PYTHONPATH", folders);
            }
        }
        command = variables.iter().fold(command, |command, (name, value)| command.variable(name, value));
        self.environment.iter().fold(command, |command, (name, value)| command.variable(name, value))
    }
}

/// Without the values of variables, which may be secrets.
impl fmt::Debug for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.environment.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("Program")
            .field("command", &self.command)
            .field("folder", &self.folder)
            .field("environment", &names)
            .finish()
    }
}

/// Appends the end of stderr to a message.
pub(super) fn with_stderr(what: String, stderr: &[u8]) -> String {
    match tail(stderr, MAX_STDERR_CHARS) {
        said if said.is_empty() => what,
        said => format!("{what}; its stderr ends with: {said}"),
    }
}
