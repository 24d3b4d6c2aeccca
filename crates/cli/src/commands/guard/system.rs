//! Installations for all users: the settings of the system name programs, which no user may replace.

use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use amplifier_process::files::changeable_part;
#[cfg(target_os = "linux")]
use anyhow::Context;
use anyhow::Result;

use crate::errors::usage;

/// Checks that only the administrator can replace a program: neither its file nor a folder above it belongs to others, or can be written by them.
///
/// # Errors
/// If somebody else could, or if this system has no settings for all users.
#[cfg(target_os = "linux")]
pub(super) fn check_program(program: &Path) -> Result<()> {
    let read = changeable_part(program);
    match read.with_context(|| format!("the owner of `{}` is unknown", program.display()))? {
        Some(path) => Err(usage(format!(
            "the guard was not installed: `{}` can be changed by another user than the administrator; \
             copy `{}` and `amplifier-hook` to a folder such as `/usr/local/bin`, and run it there with `sudo`",
            path.display(),
            program.display()
        ))),
        None => Ok(()),
    }
}

/// Returns the audit log of the calling user, as hooks for all users find it.
///
/// # Errors
/// If the home folder of the user is unknown.
#[cfg(unix)]
pub(super) fn audit_folder() -> Result<PathBuf> {
    let (guard, _) = amplifier_hook::user_folder().map_err(anyhow::Error::msg)?;
    Ok(guard.with_file_name("audit"))
}

/// Returns an error.
///
/// # Errors
/// Always: the guard does not support this system.
#[cfg(not(unix))]
pub(super) fn audit_folder() -> Result<PathBuf> {
    Err(usage("the guard does not support this system; use Linux or macOS"))
}

/// Refuses the installation.
///
/// # Errors
/// Always: the settings for all users are known only for Linux.
#[cfg(not(target_os = "linux"))]
pub(super) fn check_program(_: &Path) -> Result<()> {
    Err(usage("the guard was not installed: `--system` supports only Linux; install it for each user"))
}
