//! Trust decisions of the user about project bundles.

use std::time::Duration;

use amplifier_audit::Log;
use amplifier_core::{Level, PortError};
use amplifier_modules::bundle::LoadedBundle;
use amplifier_modules::trust::{BundlePins, TrustStatus, TrustStore};
use futures::future::BoxFuture;
use serde_json::json;

use crate::error::{Error, ErrorContext, Result};
use crate::notices::Notices;
use crate::project_bundle::{ProjectBundle, ProjectTrust};

/// Asks the user to trust the bundle of a project.
pub trait TrustPrompt: Send + Sync {
    /// Shows the bundle, and returns the user's answer.
    ///
    /// # Errors
    /// If the user can no longer be asked.
    fn ask<'a>(&'a self, request: TrustRequest<'a>) -> BoxFuture<'a, Result<TrustAnswer, PortError>>;
}

/// The bundle to decide about.
#[derive(Clone, Copy, Debug)]
pub struct TrustRequest<'a> {
    /// The bundle.
    pub bundle: &'a LoadedBundle,
    /// The files that trust pins.
    pub pinned: &'a BundlePins,
    /// The difference to the last trusted version.
    pub status: &'a TrustStatus,
    /// The time limit for an answer.
    pub timeout: Duration,
}

/// The user's answer about the bundle of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    /// The hooks run.
    Trust,
    /// The session continues without the bundle.
    Refuse,
    /// The session does not start. The prompt informs the program.
    Stop,
}

/// Decides about the bundle of a project: asks the user if there is a prompt, and sends a notice if the bundle is not used. The decision is recorded
/// before it takes effect.
///
/// # Errors
/// If the decision cannot be recorded or stored, or the user can no longer be asked.
pub async fn decide_trust(
    project: &mut ProjectBundle,
    store: &TrustStore,
    log: &Log,
    prompt: Option<(&dyn TrustPrompt, Duration)>,
    notices: &Notices,
) -> Result<()> {
    let answer = match (prompt, &project.state) {
        (_, ProjectTrust::Trusted(_, pinned)) => return record_trust(log, pinned, "used"),
        (Some((prompt, timeout)), ProjectTrust::Untrusted(bundle, pinned, status)) => {
            let answer = prompt.ask(TrustRequest { bundle, pinned, status, timeout }).await.map_err(Error::other)?;
            record_trust(log, pinned, if answer == TrustAnswer::Trust { "trusted" } else { "refused" })?;
            Some(answer)
        }
        (None, ProjectTrust::Untrusted(_, pinned, _)) => {
            record_trust(log, pinned, "not used")?;
            None
        }
        (_, ProjectTrust::Unusable(_)) => None,
    };
    match answer {
        Some(TrustAnswer::Trust) => trust(project, store, log),
        // The prompt has informed the program.
        Some(TrustAnswer::Stop) => Ok(()),
        Some(TrustAnswer::Refuse) => {
            notices.note("continuing without the hooks of this project");
            Ok(())
        }
        None => {
            notices.message(Level::Warning, "trust", project.warning().unwrap_or_default());
            Ok(())
        }
    }
}

fn trust(project: &mut ProjectBundle, store: &TrustStore, log: &Log) -> Result<()> {
    project.state = match std::mem::replace(&mut project.state, ProjectTrust::Unusable(String::new())) {
        ProjectTrust::Untrusted(bundle, pinned, _) => {
            store.trust(&pinned)?;
            record_trust(log, &pinned, "used")?;
            ProjectTrust::Trusted(bundle, pinned)
        }
        state => state,
    };
    Ok(())
}

/// Records a decision about a bundle.
///
/// # Errors
/// If the decision cannot be recorded.
pub fn record_trust(log: &Log, pinned: &BundlePins, decision: &str) -> Result<()> {
    let change = json!({
        "project_bundle": pinned.bundle.to_string_lossy(),
        "digest": pinned.digest(),
        "decision": decision,
    });
    let receipt = log.policy_change(&change).context("the audit log")?;
    log.flush_blocking(receipt).context("the audit log")
}
