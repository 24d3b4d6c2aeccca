//! A bundle that judges recorded events.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use amplifier_core::{EventData, EventName, HookRegistry, InvalidEventName, SESSION_END};
use serde::Serialize;

use super::clock::RecordedClock;
use super::summary::DecisionSummary;
use crate::bundle::{self, BundleError, HookKind};
use crate::condition::Scope;
use crate::host::Host;

/// A bundle that judges recorded events: at the time when they were recorded, and without anyone being asked.
///
/// ```
/// use std::time::SystemTime;
/// use amplifier_core::data;
/// use amplifier_modules::Scope;
/// use amplifier_modules::replay::Policy;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("candidate.yaml");
/// std::fs::write(&file, "hooks: [{ rule: no-rm, on: tool:pre, when: tool_name == 'rm', deny: no rm }]")?;
/// let policy = Policy::load(&file, Scope::new(".")?, false)?;
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
}

/// A hook that is not run, because it does more than answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedHook {
    /// Its name.
    pub name: String,
    /// What it is: `command`, `worker`, `http` or `module`, …
    pub kind: &'static str,
}

impl ReplayPolicy {
    /// Loads a bundle. Hooks that run programs, speak to servers or do something else beyond an answer are left out unless
    /// `run_programs` says otherwise.
    ///
    /// # Errors
    /// If it cannot be read, or there is a mistake in it.
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
        let host = Host::new(scope.clock(clock.clone()));
        bundle.register(&hooks, &host)?;
        Ok(Self { hooks, scope: host.scope, clock, skipped })
    }

    /// The hooks, to which others can be added that stand in every session.
    pub fn hooks(&self) -> &HookRegistry {
        &self.hooks
    }

    /// The hooks that were left out.
    pub fn skipped(&self) -> &[SkippedHook] {
        &self.skipped
    }

    /// The events whose counts in a session its rules ask about.
    pub fn counted(&self) -> Vec<String> {
        self.scope.counts().wanted()
    }

    /// Counts an event that happened then and is not judged, so that rules know what came before those that are.
    pub fn count(&self, event: &str, data: &EventData, at: SystemTime) {
        let Ok(event) = event.parse::<EventName>() else { return };
        let (event, counts) = (event.canonical(), self.scope.counts());
        if counts.counts(event) {
            counts.see(event, data, at);
        }
        if event == SESSION_END.as_str() {
            counts.forget(data);
        }
    }

    /// What the policy makes of an event that happened then. It is counted, too.
    ///
    /// One event is judged at a time: the clock is the same for all hooks.
    ///
    /// # Errors
    /// If the event has no valid name.
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

/// What a hook is that does more than answer.
fn effects(kind: &HookKind<'_>) -> Option<&'static str> {
    match kind {
        HookKind::Rule(_) => None,
        HookKind::Module(module) if module.is_pure() => None,
        HookKind::Module(_) | HookKind::Foreign(_) => Some("module"),
        HookKind::Command(_) => Some("command"),
        HookKind::Worker(_) => Some("worker"),
        HookKind::Http(_) => Some("http"),
        // Without a grant it has nothing to touch, but what it was granted is for the session.
        HookKind::Wasm(_) => Some("wasm"),
    }
}
