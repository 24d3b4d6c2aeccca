//! Placeholders for systems without sandboxes.

use std::ffi::OsString;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use super::policy::Method;
use super::{LaunchError, Sandbox, SandboxError, SandboxPolicy, replace};
use crate::Process;

#[derive(Default)]
pub(super) struct SandboxPool;

impl SandboxPool {
    pub(super) fn fill(&self, _words: &Arc<[OsString]>, _policy: SandboxPolicy) {}

    pub(super) fn is_ready(&self, _words: &[OsString]) -> bool {
        false
    }

    pub(super) fn start(&self, _sandbox: &Sandbox, _command: &crate::Command) -> Option<Process> {
        None
    }
}

/// No sandbox reports an exit here.
#[derive(Debug)]
pub(crate) enum ReportedExit {}

impl ReportedExit {
    pub(crate) async fn wait(&self) -> Option<ExitStatus> {
        match *self {}
    }

    pub(crate) fn status(&self) -> Option<ExitStatus> {
        match *self {}
    }
}

pub(super) fn start_session() -> Result<Option<u8>, SandboxError> {
    let started = crate::system::process::start_session();
    started.map(|()| None).map_err(|error| SandboxError(format!("a new session: {error}")))
}

/// Replaces this process by the program, in its own session. Processes that leave its group are not killed with it.
pub(super) fn run(policy: &SandboxPolicy, method: Method, program: Option<Command>) -> Result<u8, LaunchError> {
    super::pins::check(&policy.pinned)?;
    if method != Method::Session {
        return Err(SandboxError(format!("sandboxes need Linux, and this is {}", std::env::consts::OS)).into());
    }
    program.map_or_else(super::report_possible, replace)
}

pub(super) fn wait(_policy: &SandboxPolicy, _method: Method) -> Result<u8, LaunchError> {
    Err(SandboxError::new("sandboxes are not made in advance on this system").into())
}
