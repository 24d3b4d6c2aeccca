//! Sandboxes on Linux, with namespaces or Landlock.

mod descriptors;
mod devices;
mod init;
mod landlock;
mod locations;
mod message;
mod mounts;
mod namespace;
mod pool;
mod session;
mod views;

use std::os::fd::OwnedFd;
use std::process::Command;

use super::policy::Method;
use super::{
    ErrorContext, LaunchError, Sandbox, SandboxError, SandboxPolicy, pins, policy, replace, report_possible, temporary,
};

pub(crate) use pool::ReportedExit;
pub(super) use pool::SandboxPool;
pub(super) use session::start as start_session;

/// Runs a program in a sandbox, and returns its exit code. Without a program, only checks that this works.
pub(super) fn run(policy: &SandboxPolicy, method: Method, program: Option<Command>) -> Result<u8, LaunchError> {
    if method != Method::Session {
        descriptors::close_inherited()?;
    }
    if method == Method::Namespaces {
        return init::start_now(policy, program);
    }
    enter_weaker(policy, method)?;
    let Some(program) = program else { return report_possible() };
    let [how, value] = init::run_with_descendants(program, None)?;
    Ok(init::exit_as(how, value))
}

/// Prepares a sandbox, and waits for a [message](message) with a program.
pub(super) fn wait(policy: &SandboxPolicy, method: Method) -> Result<u8, LaunchError> {
    if method != Method::Session {
        descriptors::close_inherited()?;
    }
    let receive = |socket: &OwnedFd| {
        rustix::io::write(socket, &[message::READY]).context("the user of the sandbox has ended")?;
        let mut program = message::receive(socket)?.ok_or(LaunchError::Unused)?;
        program.envs(temporary(policy));
        Ok(program)
    };
    if method == Method::Namespaces {
        return init::start_on_message(policy, receive);
    }
    let socket = descriptors::take_stdin()?;
    let program = receive(&socket)?;
    init::report_exit(
        &socket,
        enter_weaker(policy, method).and_then(|()| init::run_with_descendants(program, Some(&socket))),
    )
}

fn enter_weaker(policy: &SandboxPolicy, method: Method) -> Result<(), LaunchError> {
    pins::check(&policy.pinned)?;
    if method == Method::Landlock {
        landlock::enter(policy)?;
    }
    Ok(())
}
