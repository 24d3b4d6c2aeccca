//! Decides with the user whether the bundle of a project is used.

use std::time::Duration;

use amplifier_audit::Log;
use amplifier_core::{Level, PortError};
use amplifier_modules::bundle::Loaded;
use amplifier_modules::trust::{Pinned, TrustStore, Verdict};
use futures::future::BoxFuture;
use serde_json::json;

use crate::bundles::{Project, ProjectTrust};
use crate::error::{Error, ErrorContext, Result};
use crate::notices::Notices;

/// Asks the user whether to trust the bundle of a project.
pub trait TrustPrompt: Send + Sync {
    /// Shows the bundle, and returns the user's answer.
    ///
    /// # Errors
    /// If the user cannot be asked any more.
    fn ask<'a>(&'a self, request: TrustRequest<'a>) -> BoxFuture<'a, Result<TrustAnswer, PortError>>;
}

/// The bundle that the user decides about.
#[derive(Clone, Copy, Debug)]
pub struct TrustRequest<'a> {
    /// The bundle, with its hooks.
    pub bundle: &'a Loaded,
    /// Every file that trust pins.
    pub pinned: &'a Pinned,
    /// The difference to the version that was trusted before, if there was one.
    pub verdict: &'a Verdict,
    /// The time for an answer.
    pub timeout: Duration,
}

/// The user's answer about the bundle of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    /// Its hooks run.
    Trust,
    /// The session goes on without it.
    Refuse,
    /// The session is not to begin. The prompt tells the program so.
    Stop,
}

/// Decides whether the bundle of the project is used in a session: asks the user if there is a prompt, and sends a notice if it is not used. The decision is
/// recorded before it counts.
///
/// # Errors
/// If it cannot be recorded or kept, or the user cannot be asked any more.
pub async fn decide(
    project: &mut Project,
    store: &TrustStore,
    log: &Log,
    prompt: Option<(&dyn TrustPrompt, Duration)>,
    notices: &Notices,
) -> Result<()> {
    let answer = match (prompt, &project.state) {
        (_, ProjectTrust::Trusted(_, pinned)) => return record(log, pinned, "used"),
        (Some((prompt, timeout)), ProjectTrust::Untrusted(bundle, pinned, verdict)) => {
            let answer = prompt.ask(TrustRequest { bundle, pinned, verdict, timeout }).await.map_err(Error::other)?;
            record(log, pinned, if answer == TrustAnswer::Trust { "trusted" } else { "refused" })?;
            Some(answer)
        }
        (None, ProjectTrust::Untrusted(_, pinned, _)) => {
            record(log, pinned, "not used")?;
            None
        }
        (_, ProjectTrust::Unusable(_)) => None,
    };
    match answer {
        Some(TrustAnswer::Trust) => trust(project, store, log),
        // The prompt has told the program.
        Some(TrustAnswer::Stop) => Ok(()),
        Some(TrustAnswer::Refuse) => {
            notices.note("going on without the hooks of this project");
            Ok(())
        }
        None => {
            notices.message(Level::Warning, "trust", project.warning().unwrap_or_default());
            Ok(())
        }
    }
}

/// Trusts a bundle as it was looked at.
fn trust(project: &mut Project, store: &TrustStore, log: &Log) -> Result<()> {
    project.state = match std::mem::replace(&mut project.state, ProjectTrust::Unusable(String::new())) {
        ProjectTrust::Untrusted(bundle, pinned, _) => {
            store.trust(&pinned)?;
            record(log, &pinned, "used")?;
            ProjectTrust::Trusted(bundle, pinned)
        }
        state => state,
    };
    Ok(())
}

/// Records a decision about a bundle.
///
/// # Errors
/// If it cannot be kept.
pub fn record(log: &Log, pinned: &Pinned, decision: &str) -> Result<()> {
    let change = json!({
        "project_bundle": pinned.bundle.to_string_lossy(),
        "digest": pinned.digest(),
        "decision": decision,
    });
    let receipt = log.policy_change(&change).context("the audit log")?;
    log.flush_blocking(receipt).context("the audit log")
}
