//! Sandboxes that are prepared in advance.
//!
//! Creating a sandbox takes several times as long as starting a program. So the next one is created when a program has ended: a launcher that waits
//! for a [message](super::message) with its program. Each is used once.
//!
//! INVARIANT: a prepared sandbox protects the same as a new one. It is used only if the mounts and the files of its policy are unchanged.

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

/// The largest number of prepared sandboxes. They differ in their pinned files.
const MAX_SANDBOXES: usize = 8;

/// The age after which an unused sandbox may be replaced.
const REPLACE_AFTER: Duration = Duration::from_secs(60);

/// The prepared sandboxes, shared by all users of a launcher.
#[derive(Default)]
pub(in crate::sandbox) struct SandboxPool(Mutex<Vec<PreparedSandbox>>);

struct PreparedSandbox {
    words: Arc<[OsString]>,
    policy: SandboxPolicy,
    snapshot: Option<Snapshot>,
    since: Instant,
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

    /// Prepares a sandbox, unless there is one with these words.
    pub(in crate::sandbox) fn fill(&self, words: &Arc<[OsString]>, policy: SandboxPolicy) {
        let unused = {
            let mut list = self.lock();
            // A sandbox ends if its files change while it is created.
            list.retain(|prepared| prepared.peek() != Some(0));
            if list.iter().any(|prepared| prepared.words == *words) {
                return;
            }
            // Frequently used sandboxes are replaced anyway. If all entries are recent, a further one would push out another before its use.
            let oldest = (list.len() >= MAX_SANDBOXES)
                .then(|| list.iter().position(|prepared| prepared.since.elapsed() > REPLACE_AFTER));
            match oldest {
                Some(None) => return,
                Some(Some(at)) => Some(list.remove(at)),
                None => None,
            }
        };
        drop(unused);
        // If this fails, the program starts without the pool, and reports the reason.
        let Ok(prepared) = PreparedSandbox::start(words.clone(), policy) else { return };
        self.lock().push(prepared);
    }

    pub(in crate::sandbox) fn is_ready(&self, words: &[OsString]) -> bool {
        self.lock().iter().any(|prepared| prepared.words[..] == *words && prepared.peek() == Some(1))
    }

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

    /// Returns the number of readable bytes, at most one: 1 if ready, 0 if ended, none if still in preparation.
    fn peek(&self) -> Option<usize> {
        let mut byte = [0];
        let read = rustix::net::recv(&self.socket, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        read.ok().map(|(_, length)| length)
    }

    /// Sends the program to the sandbox.
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

/// The processes of a sandbox without a program. They have no other descendants, so dropping kills them at once, without stopping them first.
struct IdleGroup(Option<ProcessGroup>);

impl Drop for IdleGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            group.kill();
        }
    }
}

/// The exit of a program as its sandbox reports it, before the processes of the sandbox have ended.
#[derive(Debug)]
pub(crate) struct ReportedExit {
    socket: tokio::net::UnixStream,
    status: OnceLock<ExitStatus>,
}

impl ReportedExit {
    /// Waits for the report; none if the sandbox ends without one.
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

/// The state for which a sandbox was created. If it is unchanged, a new one would protect the same.
#[derive(PartialEq)]
struct Snapshot {
    mounts: Vec<u8>,
    files: Vec<Option<FileIdentity>>,
    /// The modification times of folders of which the program has a private view.
    views: Vec<(i64, i64)>,
}

/// The identity of the file at a path. A new file may reuse an inode, but not the creation time.
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
            let is_protected = |folder: &&Path| policy.read_only.iter().any(|root: &PathBuf| folder.starts_with(root));
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
