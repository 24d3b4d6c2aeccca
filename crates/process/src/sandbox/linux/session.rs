//! Sessions: a process in its own session has no controlling terminal, and cannot regain that of its parent.

use crate::system::process::start_session;

use super::{ErrorContext, SandboxError};

/// Starts a session. A group leader cannot start one, so a child does: then this returns in both processes, with the exit code of the child in the
/// parent.
pub(in crate::sandbox) fn start() -> Result<Option<u8>, SandboxError> {
    if start_session().is_ok() {
        return Ok(None);
    }
    let code = super::init::fork_and_wait()?;
    if code.is_none() {
        start_session().context("a new session")?;
    }
    Ok(code)
}
