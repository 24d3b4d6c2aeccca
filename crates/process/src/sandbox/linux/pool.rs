//! Sandboxes that are made before they are needed.
//!
//! To make a sandbox takes several times as long as to start a program. So the next one is made when a program has ended, while nobody waits for it: a launcher that has
//! done all but start a program, and waits for a [message](super::message) that names it. Each is used once.
//!
//! INVARIANT: a waiting sandbox protects what a new one would protect. It is used only if the mounts and the files of its policy are the same as when it was made.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::net::RecvFlags;
use tokio::process::Child;
use tokio::runtime::{Handle, Id};

use super::policy::{END, WAIT};
use super::{Sandbox, SandboxPolicy, message};
use crate::system::pipes::Pipes;
use crate::{Environment, Process, ProcessGroup};

/// How many sandboxes wait at most. They differ in the files that are pinned.
const MAX_SANDBOXES: usize = 8;

/// After how long another takes the place of one that nobody used.
const REPLACE_AFTER: Duration = Duration::from_secs(60);

/// The sandboxes that wait. Those with the same launcher share them.
#[derive(Default)]
pub(in crate::sandbox) struct SandboxPool(Mutex<Vec<PreparedSandbox>>);

/// A sandbox that waits for its program.
struct PreparedSandbox {
    words: Arc<[OsString]>,
    policy: SandboxPolicy,
    snapshot: Option<Snapshot>,
    since: Instant,
    /// The runtime that its pipes belong to.
    runtime: Id,
    // INVARIANT: dropped before `child`, as in `Process`.
    group: IdleGroup,
    child: Child,
    socket: UnixStream,
}

impl SandboxPool {
    fn lock(&self) -> MutexGuard<'_, Vec<PreparedSandbox>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a sandbox, unless there is one with these words.
    pub(in crate::sandbox) fn fill(&self, words: &Arc<[OsString]>, policy: SandboxPolicy) {
        let unused = {
            let mut list = self.lock();
            // One whose files changed while it was made has ended.
            list.retain(|prepared| prepared.peek() != Some(0));
            if list.iter().any(|prepared| prepared.words == *words) {
                return;
            }
            // Those that are used often come and go. If there are more of them than places, most of them would be made in vain.
            let oldest = (list.len() >= MAX_SANDBOXES)
                .then(|| list.iter().position(|prepared| prepared.since.elapsed() > REPLACE_AFTER));
            match oldest {
                Some(None) => return,
                Some(Some(at)) => Some(list.remove(at)),
                None => None,
            }
        };
        drop(unused);
        // Nothing is lost if this fails: the program is started without it, and the reason is told then.
        let Ok(prepared) = PreparedSandbox::start(words.clone(), policy) else { return };
        self.lock().push(prepared);
    }

    /// `true` if a sandbox with these words has done all but start a program.
    pub(in crate::sandbox) fn is_ready(&self, words: &[OsString]) -> bool {
        self.lock().iter().any(|prepared| prepared.words[..] == *words && prepared.peek() == Some(1))
    }

    /// Starts a command in a sandbox that waits, if there is one that fits.
    pub(in crate::sandbox) fn start(&self, sandbox: &Sandbox, command: &crate::Command) -> Option<Process> {
        let prepared = {
            let mut list = self.lock();
            let at = list.iter().position(|prepared| prepared.words[..] == *sandbox.words())?;
            list.remove(at)
        };
        let is_same_runtime = Handle::try_current().is_ok_and(|runtime| runtime.id() == prepared.runtime);
        let is_current = prepared.snapshot.is_some() && prepared.snapshot == Snapshot::take(&prepared.policy);
        if !is_same_runtime || !is_current {
            return None;
        }
        prepared.start_program(sandbox, command).ok()
    }
}

impl PreparedSandbox {
    fn start(words: Arc<[OsString]>, policy: SandboxPolicy) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?.id();
        let snapshot = Snapshot::take(&policy);
        let [program, arguments @ .., _end] = &*words else { return Err(ErrorKind::InvalidInput.into()) };
        let mut launcher = tokio::process::Command::new(program);
        launcher.args(arguments).args([WAIT, END]).current_dir("/");
        for name in Environment::Hooks.removed() {
            launcher.env_remove(name);
        }
        let (socket, child_ends) = UnixStream::pair()?;
        launcher.stdin(OwnedFd::from(child_ends)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = launcher.kill_on_drop(true).spawn()?;
        let group = child.id().and_then(ProcessGroup::from_leader).ok_or(rustix::io::Errno::SRCH)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            words,
            policy,
            snapshot,
            since: Instant::now(),
            runtime,
            group: IdleGroup(Some(group)),
            child,
            socket,
        })
    }

    /// How many bytes there are to read from the sandbox, of one: 1 if it is ready, 0 if it has ended, none if it is being made.
    fn peek(&self) -> Option<usize> {
        let mut byte = [0];
        let read = rustix::net::recv(&self.socket, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        read.ok().map(|(_, length)| length)
    }

    /// Tells the sandbox which program to start.
    ///
    /// # Errors
    /// If the sandbox is not ready, or the message does not fit into the socket. Nothing was started then.
    fn start_program(self, sandbox: &Sandbox, command: &crate::Command) -> io::Result<Process> {
        let Self { mut group, child, socket, .. } = self;
        let mut byte = [0];
        if rustix::io::read(&socket, &mut byte)? != 1 || byte != [message::READY] {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let message = message::encode(command).ok_or(ErrorKind::InvalidInput)?;
        let pipes = Pipes::open(command.has_input, command.is_merged)?;
        let reported =
            Arc::new(ReportedExit { socket: tokio::net::UnixStream::from_std(socket)?, status: OnceLock::new() });
        message::send(&reported.socket, &message, pipes.child_ends.each_ref().map(AsFd::as_fd))?;
        let group = group.0.take().ok_or(ErrorKind::NotFound)?;
        Ok(Process::new(group, child, Some(reported), pipes.stdin, pipes.stdout, pipes.stderr, sandbox.clone()))
    }
}

/// The processes of a sandbox without a program. Nothing else descends from them, so they are killed at once when this is dropped: whoever ends must not be held up, nor
/// leave them stopped half-way.
struct IdleGroup(Option<ProcessGroup>);

impl Drop for IdleGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            group.kill();
        }
    }
}

/// How a program in a sandbox ended, as the sandbox says. It says so before its own processes have ended, which takes a while.
#[derive(Debug)]
pub(crate) struct ReportedExit {
    socket: tokio::net::UnixStream,
    status: OnceLock<ExitStatus>,
}

impl ReportedExit {
    /// Waits until the sandbox says how the program ended; none if it cannot say that.
    pub(crate) async fn wait(&self) -> Option<ExitStatus> {
        if let Some(status) = self.status.get() {
            return Some(*status);
        }
        loop {
            self.socket.readable().await.ok()?;
            let mut kind = [0; 2];
            match self.socket.try_read(&mut kind) {
                Ok(2) => return Some(self.store(kind)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// What was said so far.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        let mut kind = [0; 2];
        match self.status.get() {
            Some(status) => Some(*status),
            None if matches!(rustix::io::read(&self.socket, &mut kind), Ok(2)) => Some(self.store(kind)),
            None => None,
        }
    }

    fn store(&self, [kind, value]: [u8; 2]) -> ExitStatus {
        let value = i32::from(value);
        *self.status.get_or_init(|| ExitStatus::from_raw(if kind == message::KILLED { value } else { value << 8 }))
    }
}

/// What a sandbox was made for: if nothing of this has changed, a new one would protect the same.
#[derive(PartialEq)]
struct Snapshot {
    mounts: Vec<u8>,
    files: Vec<Option<FileIdentity>>,
    /// When folders of which the program has a private view were last changed.
    views: Vec<(i64, i64)>,
}

/// Which file there is at a path: a new file may get the number of a deleted one, but not its time.
#[derive(PartialEq)]
struct FileIdentity {
    device: u64,
    inode: u64,
    created: Option<SystemTime>,
}

impl Snapshot {
    fn take(policy: &SandboxPolicy) -> Option<Self> {
        let paths = policy.read_only.iter().chain(&policy.hidden).chain(policy.writable.iter().flatten());
        let files = paths.chain(&policy.temporary).map(|path| FileIdentity::at(path)).collect();
        let folders =
            policy.pinned.iter().filter_map(|file| Some((file.path.parent()?, file.path.canonicalize().ok()?)));
        let mut views = Vec::new();
        for (named, path) in folders {
            let above = named.ancestors().chain(path.ancestors().skip(1));
            let is_protected =
                |folder: &&Path| policy.read_only.iter().any(|place: &PathBuf| folder.starts_with(place));
            for folder in above.filter(is_protected) {
                let metadata = fs::metadata(folder).ok()?;
                views.push((metadata.mtime(), metadata.mtime_nsec()));
            }
        }
        Some(Self { mounts: fs::read("/proc/self/mountinfo").ok()?, files, views })
    }
}

impl FileIdentity {
    fn at(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino(), created: metadata.created().ok() })
    }
}
