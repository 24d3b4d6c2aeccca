//! A session of its own: a process in it has no controlling terminal, and cannot get that of its parent back.

use crate::system::process::start_session;

use super::{ErrorContext, SandboxError};

/// Starts a session. If this process leads a process group, which cannot start one, a child does: then this returns in both, with a code to exit with in the parent once the child has ended.
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
