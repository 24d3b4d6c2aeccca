//! The processes around a program: the launcher waits outside of the namespaces; the first process inside starts the program, and kills all
//! others when it ends.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::process::Command;

use fork::{Fork, fork};
use nix::sys::signal::{SigSet, Signal as NixSignal, kill};
use nix::unistd::Pid as NixPid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, wait, waitpid,
};

use super::message::{EXITED, KILLED};
use super::{
    ErrorContext, LaunchError, SandboxError, SandboxPolicy, descriptors, landlock, mounts, namespace, replace,
    report_possible,
};
use crate::system::group::descendants;

/// Signals for the program. They are sent to the process group, so the program gets them; the launcher waits for the effect.
const FORWARDED_SIGNALS: [NixSignal; 7] = [
    NixSignal::SIGALRM,
    NixSignal::SIGHUP,
    NixSignal::SIGINT,
    NixSignal::SIGQUIT,
    NixSignal::SIGTERM,
    NixSignal::SIGUSR1,
    NixSignal::SIGUSR2,
];

/// Enters namespaces, starts the program, and returns its exit code. Without a program, only checks that this works.
///
/// Three processes take part. This one stays outside, and ends as soon as it knows the exit; the second holds the namespaces, whose teardown takes a
/// while; the third is the first process inside.
pub(super) fn start_now(policy: &SandboxPolicy, program: Option<Command>) -> Result<u8, LaunchError> {
    block_forwarded_signals()?;
    let mut writer = match fork_with_pipe()? {
        ForkSide::Parent(child, reader) => {
            descriptors::release_standard()?;
            return Ok(forward_exit(child, reader)?);
        }
        ForkSide::Child(writer) => writer,
    };
    let copies = namespace::enter(policy)?;
    match enter_processes()? {
        Some(code) => Ok(code),
        None => {
            copies.check()?;
            let Some(program) = program else { return report_possible() };
            let how = run_as_init(program, None)?;
            writer.write_all(&how).context("the launcher has ended")?;
            Ok(0)
        }
    }
}

/// Enters namespaces, and starts the program received over the socket on standard input. Reports the exit over the socket.
pub(super) fn start_on_message(
    policy: &SandboxPolicy,
    receive: impl FnOnce(&OwnedFd) -> Result<Command, LaunchError>,
) -> Result<u8, LaunchError> {
    let socket = descriptors::take_stdin()?;
    block_forwarded_signals()?;
    let copies = namespace::enter(policy)?;
    if let Some(code) = enter_processes()? {
        return Ok(code);
    }
    let program = receive(&socket)?;
    report_exit(&socket, copies.check().and_then(|()| run_as_init(program, Some(&socket))))
}

/// Reports the exit of the program, or the failure to start it, to the user of the sandbox.
pub(super) fn report_exit(socket: &OwnedFd, ended: Result<[u8; 2], LaunchError>) -> Result<u8, LaunchError> {
    let how = ended.unwrap_or_else(|error| [EXITED, error.report()]);
    rustix::io::write(socket, &how).context("the user of the sandbox has ended")?;
    Ok(0)
}

/// Runs a program without namespaces, kills its descendants when it has ended, and returns its exit. This process adopts the orphans.
pub(super) fn run_with_descendants(program: Command, user: Option<&OwnedFd>) -> Result<[u8; 2], LaunchError> {
    block_forwarded_signals()?;
    set_child_subreaper(Some(getpid())).context("what the program leaves behind")?;
    let ForkSide::Parent(child, _reader) = fork_with_pipe()? else {
        forwarded_signals().thread_unblock().context("signals cannot be unblocked")?;
        return Ok([EXITED, replace(program)?]);
    };
    descriptors::release_standard()?;
    let status = wait_for(child, user);
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            // Each one that ends may leave children behind.
            Ok(None) => {
                for (descendant, _) in descendants(getpid()) {
                    let _ = kill_process(descendant, Signal::KILL);
                }
                let _ = wait(WaitOptions::empty());
            }
            Err(_) => break,
        }
    }
    Ok(encode_status(status?))
}

fn forwarded_signals() -> SigSet {
    FORWARDED_SIGNALS.into_iter().collect()
}

fn block_forwarded_signals() -> Result<(), SandboxError> {
    forwarded_signals().thread_block().context("signals cannot be blocked")
}

/// Continues in the first process of the new process namespace, which gets none; this process gets the exit code.
fn enter_processes() -> Result<Option<u8>, LaunchError> {
    if let ForkSide::Parent(child, reader) = fork_with_pipe()? {
        namespace::give_up_rights()?;
        descriptors::release_standard()?;
        return Ok(Some(forward_exit(child, reader)?));
    }
    // The first process of a namespace ignores them anyway, and the program must not inherit the block.
    forwarded_signals().thread_unblock().context("signals cannot be unblocked")?;
    mounts::mount_own_proc()?;
    landlock::scope_sockets();
    namespace::give_up_rights()?;
    // Protects this process from processes inside.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("this process cannot be protected")?;
    Ok(None)
}

/// Continues in a child, which gets none and is killed when this process ends; this process gets the exit code of the child.
pub(super) fn fork_and_wait() -> Result<Option<u8>, SandboxError> {
    match fork_with_pipe()? {
        ForkSide::Parent(child, reader) => forward_exit(child, reader).map(Some),
        ForkSide::Child(_) => Ok(None),
    }
}

enum ForkSide {
    Parent(Pid, PipeReader),
    Child(PipeWriter),
}

fn fork_with_pipe() -> Result<ForkSide, SandboxError> {
    let (reader, mut writer) = pipe().context("a pipe")?;
    match fork().context("a process cannot be forked")? {
        Fork::Parent(child) => {
            let child = Pid::from_raw(child).ok_or_else(|| SandboxError("the child has no number".to_owned()))?;
            Ok(ForkSide::Parent(child, reader))
        }
        Fork::Child => {
            drop(reader);
            set_parent_process_death_signal(Some(Signal::KILL)).context("the end of the launcher")?;
            // Fails if the launcher ended before the signal was set.
            writer.write_all(&[0]).context("the launcher has ended")?;
            Ok(ForkSide::Child(writer))
        }
    }
}

/// Runs a program as the first process of the namespaces, kills all others when it has ended, and returns its exit. The exit status of this process
/// cannot carry a signal, because no signal from inside ends the first process of a namespace.
fn run_as_init(mut program: Command, user: Option<&OwnedFd>) -> Result<[u8; 2], LaunchError> {
    let started = program.spawn();
    let started = started.map_err(|error| LaunchError::NotStarted(program.get_program().to_owned(), error))?;
    let started = Pid::from_child(&started);
    descriptors::release_standard()?;
    let status = wait_for(started, user);
    kill_all_others();
    Ok(encode_status(status?))
}

/// Waits for a child, and reaps others meanwhile. Fails if the user of the sandbox has ended.
fn wait_for(child: Pid, user: Option<&OwnedFd>) -> Result<WaitStatus, LaunchError> {
    let ending = user.and_then(|user| Some((user, pidfd_open(child, PidfdFlags::empty()).ok()?)));
    let options = if ending.is_some() { WaitOptions::NOHANG } else { WaitOptions::empty() };
    loop {
        match (wait(options), &ending) {
            (Ok(Some((ended, status))), _) if ended == child => return Ok(status),
            (Ok(None), Some((user, end))) => {
                // Other children are reaped a little later.
                let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
                let mut polled = [PollFd::new(end, PollFlags::IN), PollFd::new(user, PollFlags::empty())];
                let _ = poll(&mut polled, Some(&patience));
                if polled[1].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
                    return Err(LaunchError::Unused);
                }
            }
            (Ok(_) | Err(Errno::INTR), _) => {}
            (Err(error), _) => return Err(SandboxError(format!("the program is missing: {error}")).into()),
        }
    }
}

fn encode_status(status: WaitStatus) -> [u8; 2] {
    match status.terminating_signal() {
        Some(signal) => [KILLED, u8::try_from(signal).unwrap_or_default()],
        None => [EXITED, exit_code(status)],
    }
}

/// Mirrors the exit of the program: returns its exit code, or ends by the same signal.
pub(super) fn exit_as(how: u8, value: u8) -> u8 {
    if how == KILLED { exit_by_signal(value.into()) } else { value }
}

/// Kills all other processes of the namespace, so that none is left when the exit is reported.
fn kill_all_others() {
    // Fails if there are no other processes.
    let _ = kill(NixPid::from_raw(-1), NixSignal::SIGKILL);
    while !matches!(wait(WaitOptions::empty()), Err(error) if error != Errno::INTR) {}
}

fn exit_code(status: WaitStatus) -> u8 {
    status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Waits for the reported exit of the program, and mirrors it. Without a report, mirrors the exit of the child.
fn forward_exit(child: Pid, mut reader: PipeReader) -> Result<u8, SandboxError> {
    let mut reported = [0; 3];
    match reader.read_exact(&mut reported) {
        Ok(()) => {
            let [_, how, value] = reported;
            Ok(exit_as(how, value))
        }
        // All possible writers have ended.
        Err(_) => {
            let waited =
                retry_on_intr(|| waitpid(Some(child), WaitOptions::empty())).context("the program is missing")?;
            let (_, status) = waited.ok_or_else(|| SandboxError::new("the program is missing"))?;
            Ok(status.terminating_signal().map_or_else(|| exit_code(status), exit_by_signal))
        }
    }
}

/// Ends this process by a signal. Returns the exit code of shells if the signal does not end it.
fn exit_by_signal(signal: i32) -> u8 {
    let _ = SigSet::all().thread_unblock();
    if let Some(named) = Signal::from_named_raw(signal) {
        // Twice, because the standard library handles some signals once.
        for _ in 0..2 {
            let _ = kill_process(getpid(), named);
        }
    }
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
