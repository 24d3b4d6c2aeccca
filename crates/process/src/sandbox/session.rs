//! A session of its own: a process in it has no controlling terminal, and cannot get that of its parent back.

use rustix::process::setsid;

use super::{Context, NotConfined};

/// Starts a session. If this process leads a process group, which cannot start one, a child does: then this returns in both, with a code to exit with in the parent once the child has ended.
#[cfg(target_os = "linux")]
pub(super) fn start() -> Result<Option<u8>, NotConfined> {
    if setsid().is_ok() {
        return Ok(None);
    }
    let code = super::init::fork_and_wait()?;
    if code.is_none() {
        setsid().context("a new session")?;
    }
    Ok(code)
}

/// Starts a session.
#[cfg(not(target_os = "linux"))]
pub(super) fn start() -> Result<Option<u8>, NotConfined> {
    setsid().context("a new session; the launcher must not lead a process group")?;
    Ok(None)
}
