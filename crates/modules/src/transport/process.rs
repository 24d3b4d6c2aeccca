//! A process with all that it begins.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use amplifier_core::{HookError, HookResult};
use amplifier_process::sandbox::{PIN_MISMATCH_TEXT, pinning};
use amplifier_process::{is_for_loader, is_inherited_by_hooks};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::{TransportError, tail, variables::expanded};
use crate::trust::Held;

/// How often is looked for processes that left their group, while new ones are found.
const MOST_LOOKS: usize = 10;

/// How long a process that was killed may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// How much of stderr is part of an error's text.
const LONGEST_STDERR: usize = 1000;

/// A program and the surroundings in which it runs.
///
/// It gets the environment of the agent, but for variables whose names look like secrets (with `KEY`, `TOKEN`, `SECRET`, `PASSW`, `CREDENTIAL` or
/// `PRIVATE` in them) and those that make an interpreter run other code (`LD_PRELOAD`, `BASH_ENV`, `PYTHONPATH`). To hand such a one over, name it:
/// `("GITHUB_TOKEN", "${GITHUB_TOKEN}")`. Python does not import from the user's site-packages.
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
    /// Where it runs; the folder of the agent if not given.
    pub folder: Option<PathBuf>,
    /// Variables beside those of the agent. `${NAME}` in a value is a variable of the agent.
    pub environment: Vec<(String, String)>,
    /// The words that stand before the command.
    launcher: Vec<OsString>,
    /// The folders that Python imports from beside its own, if it does not import from wherever its script is.
    python_path: Option<Vec<PathBuf>>,
    held: Option<Arc<Held>>,
}

impl Program {
    /// A program with its arguments.
    pub fn new(command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            folder: None,
            environment: Vec::new(),
            launcher: Vec::new(),
            python_path: None,
            held: None,
        }
    }

    /// A line for the shell.
    pub fn line(line: impl Into<OsString>) -> Self {
        // With its path, so that it is found whatever `PATH` the hook is given.
        Self::new(["/bin/sh".into(), "-c".into(), line.into()])
    }

    /// Is started by another program, which gets the command behind these arguments. It is to start a session, confine itself, and run the command; no words mean no
    /// launcher.
    #[must_use]
    pub fn launcher(mut self, launcher: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.launcher = launcher.into_iter().map(Into::into).collect();
        self
    }

    /// Has Python import from these folders, which commands of the agent cannot change, and not from wherever its script is.
    #[must_use]
    pub(crate) fn python_path(mut self, folders: Vec<PathBuf>) -> Self {
        self.python_path = Some(folders);
        self
    }

    /// Runs in another folder.
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

    /// Runs only while these files are as they were trusted.
    #[must_use]
    pub(crate) fn held(mut self, held: Option<Arc<Held>>) -> Self {
        self.held = held;
        self
    }

    /// Denies if a file is not as it was trusted: a guard must not be got around by changing its program, whatever its `on_error` says.
    pub(super) async fn denied(&self) -> Result<Option<HookResult>, HookError> {
        Ok(self.changed().await?.map(HookResult::deny))
    }

    /// Which file is not as it was trusted, in words.
    pub(crate) async fn changed(&self) -> Result<Option<String>, HookError> {
        let Some(held) = self.held.clone() else { return Ok(None) };
        let checked = tokio::task::spawn_blocking(move || held.check()).await;
        let checked = checked.map_err(|error| HookError::Failed(format!("files could not be looked at: {error}")))?;
        Ok(checked.err())
    }

    /// Turns the failure of a program whose files had other bytes when it was started than when they were looked at into a denial, as
    /// [`denied`](Self::denied) does.
    pub(super) fn denying_changed(&self, answer: Result<HookResult, HookError>) -> Result<HookResult, HookError> {
        match answer {
            Err(error) if !self.launcher.is_empty() && error.to_string().contains(PIN_MISMATCH_TEXT) => {
                Ok(HookResult::deny("a file of the hook changed while it was started, so it did not run"))
            }
            answer => answer,
        }
    }

    /// Puts in what the values name.
    pub(super) fn resolve(mut self, hook: &str) -> Result<Self, TransportError> {
        if self.command.first().is_none_or(|program| program.is_empty()) {
            return Err(TransportError::NoCommand { hook: hook.to_owned() });
        }
        for (name, value) in &mut self.environment {
            *value = expanded(hook, name, value)?;
        }
        Ok(self)
    }

    /// Starts it, in a process group of its own: with a launcher, in a session of its own.
    ///
    /// The parent may be large, so it must not be forked. Nothing here keeps the standard library from `posix_spawn`: a process group and
    /// (since glibc 2.29) a folder do not; only a `PATH` of its own for a program that is given without its path does.
    pub(super) fn start(&self) -> Result<Process, HookError> {
        self.spawn().map_err(|error| {
            let program = self.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
            HookError::Failed(format!("`{program}` cannot be started: {error}; check that program and folder exist"))
        })
    }

    fn spawn(&self) -> io::Result<Process> {
        let words = self.words();
        let (program, arguments) = words.split_first().ok_or(Errno::INVAL)?;
        let mut command = Command::new(program);
        command.args(arguments);
        // A process that leads a group cannot start a session.
        if self.launcher.is_empty() {
            command.process_group(0);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| !is_inherited_by_hooks(name)) {
            command.env_remove(name);
        }
        // What a command of the agent wrote into the user's site-packages is not imported, nor run as a `.pth` file.
        command.env("PYTHONNOUSERSITE", "1");
        if let Some(folders) = &self.python_path {
            command.env("PYTHONSAFEPATH", "1");
            if let Some(folders) = std::env::join_paths(folders).ok().filter(|folders| !folders.is_empty()) {
                command.env("PYTHONPATH", folders);
            }
        }
        command.envs(
            self.environment.iter().filter(|variable| !self.is_late(variable)).map(|(name, value)| (name, value)),
        );
        let mut child = command.spawn()?;
        // First of all the group: whatever fails after this, it ends.
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or(Errno::SRCH)?;
        let group = Group(leader);
        let stdin = child.stdin.take();
        let (stdout, stderr) = child.stdout.take().zip(child.stderr.take()).ok_or(Errno::BADF)?;
        Ok(Process { group, child, stdin, stdout, stderr })
    }
}

impl Program {
    /// The launcher, the command, and between them what sets the variables that the launcher must not see.
    fn words(&self) -> Vec<OsString> {
        let late = self.environment.iter().filter(|variable| self.is_late(variable));
        let late: Vec<OsString> = late.map(|(name, value)| format!("{name}={value}").into()).collect();
        let pins = self.held.as_ref().map(|held| held.pinned_files()).unwrap_or_default();
        let mut words = pinning(&self.launcher, &pins);
        if !late.is_empty() {
            words.push("/usr/bin/env".into());
            words.extend(late);
        }
        words.extend(self.command.iter().cloned());
        words
    }

    /// `true` if a variable would make the loader put other code into the launcher, before that confines itself.
    fn is_late(&self, (name, _): &(String, String)) -> bool {
        !self.launcher.is_empty() && is_for_loader(OsStr::new(name))
    }
}

/// The values of variables may be secrets.
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

/// A process in a process group of its own, which ends when this is dropped, with all that descend from it.
///
/// Only a process that has left both the group (`setsid`) and the tree (whoever began it has ended) is not ended; nobody waits for it.
pub(super) struct Process {
    // INVARIANT: dropped before `child`. Until the child is waited for, its id, which is that of the group, cannot become another's.
    pub(super) group: Group,
    child: Child,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// What is left of a process.
pub(super) struct Ended {
    /// How it ended, if that is known.
    pub(super) status: Option<ExitStatus>,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Process {
    /// Ends the process, if it still runs, and all that it began.
    pub(super) async fn end(self) -> Ended {
        let Self { group, mut child, stdin, stdout, stderr } = self;
        drop(group);
        // Only now, so that the end of its input is not what ended it.
        drop(stdin);
        let status = timeout(GONE_WITHIN, child.wait()).await.ok().and_then(Result::ok);
        Ended { status, stdout, stderr }
    }
}

/// Writes some of the bytes; waits for ever if there is nowhere to write to.
pub(super) async fn write(stdin: &mut Option<ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}

/// What a process wrote to one of its outputs.
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    most: usize,
    pub(super) is_open: bool,
}

impl Output {
    pub(super) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, is_open: true }
    }

    /// Takes in the result of a read.
    pub(super) fn took(&mut self, read: io::Result<usize>) {
        self.is_open = matches!(read, Ok(1..));
    }

    /// Whether there was more than there may be.
    pub(crate) fn is_too_much(&self) -> bool {
        self.bytes.len() > self.most
    }

    /// Takes what is in the pipe, and does not wait for more: a process that left the group may hold it open for ever.
    pub(super) fn drain(&mut self, pipe: impl AsFd) {
        let mut bytes = [0; 16 * 1024];
        while !self.is_too_much() {
            // Not `try_read`: it knows of what was written only after the runtime has looked.
            let Ok(read @ 1..) = retry_on_intr(|| rustix::io::read(&pipe, &mut bytes)) else { return };
            self.bytes.extend_from_slice(&bytes[..read]);
        }
    }
}

/// A process group, which ends when this is dropped.
pub(super) struct Group(Pid);

impl Group {
    /// Returns when the first process of the group has ended. It is still there for whoever waits for it.
    pub(super) fn leader_ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let leader = self.0;
        // A thread waits, because the runtime cannot wait for a process and leave it there.
        let ended = tokio::task::spawn_blocking(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            retry_on_intr(|| waitid(WaitId::Pid(leader), options)).map(drop)
        });
        async move {
            // It fails only if there is no such process, which has ended then.
            let _ = ended.await;
        }
    }

    /// Whether the first process of the group has ended; then nothing descends from it any more.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.0), options), Ok(None))
    }

    /// Ends what descends from the first process and has left the group.
    fn end_strays(&self) {
        // Whoever stands still begins nothing, and does not let the number of one that ended become another's. First the leader: a launcher that has not started its
        // session yet is not in the group.
        let _ = kill_process(self.0, Signal::STOP);
        let _ = kill_process_group(self.0, Signal::STOP);
        let mut stopped = HashSet::new();
        for _ in 0..MOST_LOOKS {
            let new: Vec<Pid> = strays(self.0).into_iter().filter(|stray| !stopped.contains(stray)).collect();
            if new.is_empty() {
                break;
            }
            for stray in new {
                let _ = kill_process(stray, Signal::STOP);
                stopped.insert(stray);
            }
        }
        for stray in stopped {
            let _ = kill_process(stray, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.end_strays();
        }
        // One signal reaches them all, also those that are being forked. Both fail if they have all ended.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// Who descends from a process and is in another process group. Where the system does not tell, nobody.
fn strays(ancestor: Pid) -> Vec<Pid> {
    let ancestor = ancestor.as_raw_nonzero().get();
    let ids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut begun_by: HashMap<i32, Vec<(i32, i32)>> = HashMap::new();
    for id in ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some((parent, group)) = parent_and_group(id) {
            begun_by.entry(parent).or_default().push((id, group));
        }
    }
    let (mut strays, mut to_visit) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = to_visit.pop() {
        // Taken out, so that nobody is visited twice.
        for (id, group) in begun_by.remove(&parent).unwrap_or_default() {
            to_visit.push(id);
            strays.extend(Pid::from_raw(id).filter(|_| group != ancestor));
        }
    }
    strays
}

/// Who began a process, and its group.
fn parent_and_group(id: i32) -> Option<(i32, i32)> {
    let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    // The name before may have anything in it.
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[after + 1..]).ok()?.split_ascii_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// How a process ended, in words.
pub(crate) fn describe(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended with exit code {code}"),
        Some((None, Some(signal))) => format!("was ended by signal {signal}"),
        _ => "ended, nobody knows how".to_owned(),
    }
}

/// What happened, and what the process said last.
pub(super) fn with_stderr(what: String, stderr: &[u8]) -> String {
    match tail(stderr, LONGEST_STDERR) {
        said if said.is_empty() => what,
        said => format!("{what}; its stderr ends with: {said}"),
    }
}
