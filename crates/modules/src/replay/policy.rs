//! A bundle that is evaluated on recorded events.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use amplifier_core::{EventData, EventName, HookRegistry, InvalidEventName, SESSION_END};
use serde::Serialize;

use super::clock::RecordedClock;
use super::summary::DecisionSummary;
use crate::bundle::{self, BundleError, Confirm, HookKind};
use crate::condition::Scope;
use crate::environment::HookEnvironment;

/// A bundle that is evaluated on recorded events: with the recorded time, and without approval requests to a user.
///
/// ```
/// use std::time::SystemTime;
/// use amplifier_core::data;
/// use amplifier_modules::Scope;
/// use amplifier_modules::replay::ReplayPolicy;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("candidate.yaml");
/// std::fs::write(&file, "hooks: [{ rule: no-rm, on: tool:pre, when: tool_name == 'rm', deny: no rm }]")?;
/// let policy = ReplayPolicy::load(&file, Scope::new(".")?, false)?;
///
/// let summary = policy.judge("tool:pre", data! { "tool_name": "rm" }, SystemTime::now()).await?;
/// assert_eq!((summary.decision.as_str(), &summary.decided_by[..]), ("deny", &["no-rm".to_owned()][..]));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ReplayPolicy {
    hooks: HookRegistry,
    scope: Arc<Scope>,
    clock: RecordedClock,
    skipped: Vec<SkippedHook>,
    confirm: Option<Confirm>,
}

/// A hook that a replay skips because it has side effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedHook {
    /// Name of the hook.
    pub name: String,
    /// Kind of the hook: `command`, `worker`, `http`, `wasm` or `module`.
    pub kind: &'static str,
}

impl ReplayPolicy {
    /// Loads a bundle. Hooks with side effects, such as programs and requests to servers, are skipped unless `run_programs` is
    /// set.
    ///
    /// # Errors
    /// If the bundle cannot be read, or is invalid.
    pub fn load(file: &Path, scope: Scope, run_programs: bool) -> Result<Self, BundleError> {
        let clock = RecordedClock::new();
        let hooks = HookRegistry::builder().clock(clock.clone()).build();
        let mut bundle = bundle::load(file)?;
        let mut skipped = Vec::new();
        if !run_programs {
            bundle.hooks.retain(|placed| {
                let Some(kind) = placed.entry.kind().ok().and_then(|kind| effects(&kind)) else { return true };
                if placed.entry.enabled != Some(false) {
                    skipped.push(SkippedHook { name: placed.entry.shown_name(), kind });
                }
                false
            });
        }
        let host = HookEnvironment::new(scope.clock(clock.clone()));
        bundle.register(&hooks, &host)?;
        Ok(Self { hooks, scope: host.scope, clock, skipped, confirm: bundle.session.confirm })
    }

    /// Returns the hooks; more can be registered, such as those of every session.
    pub fn hooks(&self) -> &HookRegistry {
        &self.hooks
    }

    /// Returns the operations that need approval, if the bundle names them.
    pub fn confirm(&self) -> Option<Confirm> {
        self.confirm
    }

    /// Returns the skipped hooks.
    pub fn skipped(&self) -> &[SkippedHook] {
        &self.skipped
    }

    /// Returns the events that rules of the bundle count.
    pub fn counted(&self) -> Vec<String> {
        self.scope.counts().tracked()
    }

    /// Counts a recorded event without evaluating it, so that rules know the events before those that are evaluated.
    pub fn count(&self, event: &str, data: &EventData, at: SystemTime) {
        let Ok(event) = event.parse::<EventName>() else { return };
        let (event, counts) = (event.canonical(), self.scope.counts());
        if counts.is_counted(event) {
            counts.record(event, data, at);
        }
        if event == SESSION_END.as_str() {
            counts.forget(data);
        }
    }

    /// Returns the decision of the policy on a recorded event, and counts the event.
    ///
    /// Events are evaluated one at a time, because all hooks share the clock.
    ///
    /// # Errors
    /// If the event's name is invalid.
    pub async fn judge(
        &self,
        event: &str,
        data: impl Into<EventData>,
        at: SystemTime,
    ) -> Result<DecisionSummary, InvalidEventName> {
        let data = data.into();
        self.clock.show(at);
        let outcome = self.hooks.emit(event, data.clone()).await?;
        Ok(DecisionSummary::from_outcome(&outcome, &data))
    }
}

/// Returns the kind of a hook with side effects; `None` for other hooks.
fn effects(kind: &HookKind<'_>) -> Option<&'static str> {
    match kind {
        HookKind::Rule(_) => None,
        HookKind::Module(module) if module.is_pure() => None,
        HookKind::Module(_) | HookKind::HostModule(_) => Some("module"),
        HookKind::Command(_) => Some("command"),
        HookKind::Worker(_) => Some("worker"),
        HookKind::Http(_) => Some("http"),
        HookKind::Nats(_) => Some("nats"),
        // A WASM hook without grants has no side effects, but its grants are meant for the session.
        HookKind::Wasm(_) => Some("wasm"),
    }
}
