//! The audit log with its anchors.

use amplifier_audit::{AnchorState, Log};
use amplifier_core::Level;

use crate::config::Config;
use crate::error::{ErrorContext, Result};
use crate::home::Home;
use crate::notices::Notices;

/// Opens the audit log, which all sessions share.
///
/// # Errors
/// If the log cannot be written.
pub fn open_log(config: &Config, home: &Home) -> Result<Log> {
    let options = Log::at(home.audit_folder(), home.audit_key()).durability(config.audit);
    let options = config.anchors.iter().try_fold(options, |options, anchor| anchor.add_to(options))?;
    options.open().with_context(|| format!("the audit log `{}`", home.audit_folder().display()))
}

/// Closes the audit log. A notice names every anchor without the newest checkpoint; this is not an error.
///
/// # Errors
/// If records could not be written.
pub fn close_log(log: Log, notices: &Notices) -> Result<()> {
    let closed = log.clone();
    log.close().context("the audit log")?;
    for AnchorState { name, failure, .. } in closed.status().anchors {
        if let Some(failure) = failure {
            let text = format!("the anchor `{name}` does not have its newest checkpoint: {failure}");
            notices.message(Level::Warning, "audit log", text);
        }
    }
    Ok(())
}
