//! The processes around a program: the launcher waits outside of the namespaces, and the first process inside starts the program and ends with it, which ends all others.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::process::Command;

use fork::{Fork, fork};
use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_dumpable_behavior,
    set_parent_process_death_signal, wait, waitpid,
};

use super::views::PinnedCopies;
use super::{Context, LaunchError, NotConfined, descriptors, landlock, mounts, namespace, say_possible};

/// Signals that are for the program. Who sends them to the process group reaches it; the launcher waits for what it does.
const PASSED: [NixSignal; 7] = [
    NixSignal::SIGALRM,
    NixSignal::SIGHUP,
    NixSignal::SIGINT,
    NixSignal::SIGQUIT,
    NixSignal::SIGTERM,
    NixSignal::SIGUSR1,
    NixSignal::SIGUSR2,
];

/// How a program ended, as the first process tells the launcher: its own end cannot say it, because no signal ends the first process of a namespace from inside.
const EXITED: u8 = 0;
const KILLED: u8 = 1;

/// Starts the program in the namespaces that were entered, and returns the code to exit with when it has ended. Without a program, it was asked whether all this is possible.
pub(super) fn supervise(program: Option<Command>, copies: &PinnedCopies) -> Result<u8, LaunchError> {
    let passed: SigSet = PASSED.into_iter().collect();
    passed.thread_block().context("signals cannot be blocked")?;
    match split()? {
        Side::Parent(child, reader) => {
            namespace::give_up_rights()?;
            descriptors::release_standard()?;
            Ok(pass_on(child, reader)?)
        }
        Side::Child(writer) => {
            // The first process of a namespace ignores them anyway, and the program is not to inherit that they are blocked.
            passed.thread_unblock().context("signals cannot be unblocked")?;
            be_first(program, copies, writer)
        }
    }
}

/// Continues in a child, which is killed if this process ends: the child gets none, this process the code to exit with when the child has ended.
pub(super) fn fork_and_wait() -> Result<Option<u8>, NotConfined> {
    match split()? {
        Side::Parent(child, reader) => pass_on(child, reader).map(Some),
        Side::Child(_) => Ok(None),
    }
}

enum Side {
    Parent(Pid, PipeReader),
    Child(PipeWriter),
}

fn split() -> Result<Side, NotConfined> {
    let (reader, mut writer) = pipe().context("a pipe")?;
    match fork().context("a process cannot be forked")? {
        Fork::Parent(child) => {
            let child = Pid::from_raw(child).ok_or_else(|| NotConfined("the child has no number".to_owned()))?;
            Ok(Side::Parent(child, reader))
        }
        Fork::Child => {
            drop(reader);
            set_parent_process_death_signal(Some(Signal::KILL)).context("the end of the launcher")?;
            // Fails if the launcher had ended before it could have been told of that.
            writer.write_all(&[0]).context("the launcher has ended")?;
            Ok(Side::Child(writer))
        }
    }
}

/// The first process of the namespaces.
fn be_first(program: Option<Command>, copies: &PinnedCopies, mut writer: PipeWriter) -> Result<u8, LaunchError> {
    mounts::own_processes()?;
    landlock::scope_sockets();
    namespace::give_up_rights()?;
    // Nobody inside reads or changes what this process does.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("this process cannot be protected")?;
    copies.check()?;
    let Some(mut program) = program else { return say_possible() };
    let started = program.spawn();
    let started = started.map_err(|error| LaunchError::NotStarted(program.get_program().to_owned(), error))?;
    let started = Pid::from_child(&started);
    descriptors::release_standard()?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == started => {
                let how = match status.terminating_signal() {
                    Some(signal) => [KILLED, u8::try_from(signal).unwrap_or_default()],
                    None => [EXITED, exit_code(status)],
                };
                writer.write_all(&how).context("the launcher has ended")?;
                return Ok(0);
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(NotConfined(format!("the program is gone: {error}")).into()),
        }
    }
}

fn exit_code(status: WaitStatus) -> u8 {
    status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Waits for a child, and ends as it did: gives the code to exit with, or ends by the same signal.
fn pass_on(child: Pid, reader: PipeReader) -> Result<u8, NotConfined> {
    let waited = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty())).context("the program is gone")?;
    let Some((_, status)) = waited else {
        return Err(NotConfined("the program is gone".to_owned()));
    };
    let mut told = Vec::new();
    // All that could write to it have ended.
    reader.take(8).read_to_end(&mut told).context("how the program ended")?;
    match told[..] {
        [_, EXITED, code] => Ok(code),
        [_, KILLED, signal] => Ok(end_by(signal.into())),
        _ => Ok(status.terminating_signal().map_or_else(|| exit_code(status), end_by)),
    }
}

/// Ends this process by a signal. Gives the code that shells use if it has another effect here.
fn end_by(signal: i32) -> u8 {
    let _ = SigSet::all().thread_unblock();
    if let Some(named) = Signal::from_named_raw(signal) {
        // The second time, because the standard library handles some of them once.
        for _ in 0..2 {
            let _ = kill_process(getpid(), named);
        }
    }
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
