//! A process with all that it begins.

use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use amplifier_process::is_inherited_by_commands;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::timeout;

use super::excerpt::Excerpt;
use super::{ToolError, Workspace};

/// How much of the output is kept.
const MOST_OUTPUT: usize = 64 * 1024;

/// How long a process that was killed may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// How much is read of what is still in the pipe at the end: as much as fits into one.
const PIPE: usize = 1024 * 1024;

/// A command that runs in a process group of its own, which ends when this is dropped.
pub(super) struct Process {
    group: Group,
    child: Child,
    // One pipe for stdout and stderr, so that what is written to them stays in order.
    pipe: pipe::Receiver,
    output: Excerpt,
}

/// What became of a process.
pub(super) struct Waited {
    /// How it ended, if that is known.
    pub(super) status: Option<ExitStatus>,
    /// What it wrote.
    pub(super) output: String,
}

impl Process {
    /// Starts a command in the root of a workspace.
    pub(super) fn start(command: &str, workspace: &Workspace) -> Result<Self, ToolError> {
        Self::spawn(command, workspace).map_err(|error| {
            let folder = workspace.root().display();
            ToolError::Failed(format!(
                "`bash` cannot be started in `{folder}`: {error}; it must be installed and in `PATH`"
            ))
        })
    }

    fn spawn(command: &str, workspace: &Workspace) -> std::io::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let mut bash = workspace.command("bash");
        bash.arg("-c").arg(command).current_dir(workspace.root());
        bash.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        for (name, _) in std::env::vars_os().filter(|(name, _)| !is_inherited_by_commands(name)) {
            bash.env_remove(name);
        }
        let child = bash.spawn()?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or(Errno::SRCH)?;
        Ok(Self { group: Group(leader), child, pipe, output: Excerpt::new(MOST_OUTPUT) })
    }

    /// Takes in what the process writes, until it has ended by itself.
    pub(super) async fn wait(&mut self) {
        let mut ended = std::pin::pin!(self.group.leader_ended());
        let mut bytes = Vec::with_capacity(16 * 1024);
        let mut open = true;
        loop {
            tokio::select! {
                () = &mut ended => return,
                read = self.pipe.read_buf(&mut bytes), if open => {
                    open = matches!(read, Ok(1..));
                    self.output.push(&bytes);
                    bytes.clear();
                }
            }
        }
    }

    /// Ends the process, if it still runs, and all that it began.
    pub(super) async fn end(mut self) -> Waited {
        // The process is waited for only after this: until then its id, which is that of the group, cannot become another's.
        drop(self.group);
        let status = timeout(GONE_WITHIN, self.child.wait()).await;
        drain(&self.pipe, &mut self.output);
        Waited { status: status.ok().and_then(Result::ok), output: self.output.into_text() }
    }
}

/// Takes what is in the pipe, and does not wait for more: a process that left the group may hold it open for ever.
fn drain(pipe: &pipe::Receiver, output: &mut Excerpt) {
    let mut bytes = [0; 16 * 1024];
    let mut left = PIPE;
    // Not `try_read`: it knows of what was written only after the runtime has looked.
    while let Ok(read @ 1..) = retry_on_intr(|| rustix::io::read(pipe, &mut bytes)) {
        output.push(&bytes[..read]);
        left = left.saturating_sub(read);
        if left == 0 {
            break;
        }
    }
}

/// A process group, which ends when this is dropped.
struct Group(Pid);

impl Group {
    /// Returns when the first process of the group has ended. It is still there for whoever waits for it.
    fn leader_ended(&self) -> impl Future<Output = ()> + use<> {
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
}

impl Drop for Group {
    fn drop(&mut self) {
        // First the leader: a launcher that has not started its session yet is not in the group, and has no children yet. Both fail if they have all ended, and then there
        // is nothing to do.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}
