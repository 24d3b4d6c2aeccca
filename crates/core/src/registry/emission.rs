//! The rules of an emission, without I/O.

use std::sync::Arc;

use super::outcome::{Attributed, Decision, Denial, HookApproval, Outcome, OutcomeDetails, ReportDetail};
use super::progress::Progress;
use super::settings::{HookRole, OnError};
use super::table::{ListedHook, Listeners};
use crate::event::{Data, EventData, EventName, Map};
use crate::result::{Action, ActionKind, HookError, HookResult};

/// One emission, as a state machine: it hands out the next hook to call and the data to call it with, takes the
/// answer, and at the end gives the [`Outcome`].
///
/// All rules about order, precedence and failing hooks live here and nowhere else. The machine never waits, so that
/// Rust, Python and a test can drive the same one.
///
/// ```
/// use amplifier_core::{data, HookRegistry, HookResult, TOOL_PRE};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let hooks = HookRegistry::new();
/// hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::deny("no rm"));
///
/// let mut emission = hooks.begin(TOOL_PRE, data! { "tool_name": "rm", "tool_input": {} });
/// while let Some(index) = emission.next_hook() {
///     let answer = emission.hook(index).call(emission.data()).await;
///     emission.answer(index, answer);
/// }
/// let outcome = emission.finish();
/// assert_eq!(outcome.denial().unwrap().to_string(), "Denied by hook guard: no rm");
/// # }
/// ```
pub struct Emission<D: Data = EventData> {
    outcome: Outcome<D>,
}

impl<D: Data> Emission<D> {
    /// Begins an emission over data of any kind, which must already carry what the registry adds to it.
    /// [`HookRegistry::begin`](crate::HookRegistry::begin) does it for JSON.
    #[inline]
    pub fn new(listeners: Listeners, data: D) -> Self {
        let progress = Progress::new(&listeners);
        Self { outcome: Outcome { decision: Decision::Continue, data, details: None, progress, listeners } }
    }

    /// Only collects answers: every hook is asked, nobody denies and nothing is modified.
    #[must_use]
    pub fn collecting(mut self) -> Self {
        self.outcome.progress.collecting = true;
        self
    }

    /// The next hook to call, by its place in the running order; `None` when all have had their turn.
    pub fn next_hook(&mut self) -> Option<usize> {
        self.outcome.progress.next_hook()
    }

    /// The hook at that place.
    #[inline]
    pub fn hook(&self, index: usize) -> &ListedHook {
        &self.outcome.listeners.hooks()[index]
    }

    /// The event as emitted.
    pub fn event(&self) -> &EventName {
        self.outcome.event()
    }

    /// How many of the hooks are gates. The others are observers: they cannot change the data, so they may run side by side.
    pub fn gates(&self) -> usize {
        self.outcome.progress.gates()
    }

    /// What the hooks so far have come to.
    pub fn decision(&self) -> &Decision {
        &self.outcome.decision
    }

    /// The data, as the hooks so far have left it.
    #[inline]
    pub fn data(&self) -> &D {
        &self.outcome.data
    }

    /// Takes the answer of a hook, or how it failed. An answer out of turn (no such hook, not its turn yet, or answered
    /// before) is not taken.
    pub fn answer(&mut self, index: usize, answer: Result<HookResult<D::Object>, HookError>) {
        if !self.outcome.progress.awaits(index) {
            return;
        }
        let (answered, suppressed_output, detail) = match answer {
            Ok(result) => self.take(index, result),
            Err(error) => {
                self.fail(index, &error);
                (ActionKind::Failed, false, Some(ReportDetail::Failure(error)))
            }
        };
        if let Some(detail) = detail {
            self.details().reasons.push((index, detail));
        }
        self.outcome.progress.report(index, answered, suppressed_output);
    }

    /// Takes the answer of a hook that goes on and says nothing else: [`answer`](Self::answer) for the most frequent case.
    #[inline]
    pub fn go_on(&mut self, index: usize) {
        if self.outcome.progress.awaits(index) {
            self.outcome.progress.continued(index);
        }
    }

    /// What a driver needs to run hooks that have nothing to say, without going through the emission for each.
    pub(super) fn parts(&mut self) -> (&[ListedHook], &D, &mut Progress) {
        (self.outcome.listeners.hooks(), &self.outcome.data, &mut self.outcome.progress)
    }

    /// Says how long the hooks took that answered since this was last said; several share the time.
    pub fn record_duration(&mut self, nanos: u64) {
        self.outcome.progress.record_duration(nanos);
    }

    /// Whether all hooks have had their turn.
    pub fn is_over(&self) -> bool {
        self.outcome.progress.is_over()
    }

    /// What came of it. A hook that was not asked, or did not answer, counts as failed.
    #[inline]
    pub fn finish(mut self) -> Outcome<D> {
        if !self.outcome.progress.is_complete() {
            self.fail_unanswered();
        }
        self.outcome
    }

    /// What was said so far.
    pub(crate) fn partial_outcome(&self) -> &Outcome<D> {
        &self.outcome
    }

    #[cold]
    fn fail_unanswered(&mut self) {
        while self.next_hook().is_some() {}
        for index in 0..self.outcome.listeners.hooks().len() {
            let skipped = self.outcome.denial().is_some() && index < self.gates();
            if !skipped {
                self.answer(index, Err(HookError::failed("was not asked")));
            }
        }
    }

    fn attribute<T>(&self, index: usize, value: T) -> Attributed<T> {
        Attributed { hook: self.hook(index).info().name.clone(), value }
    }

    fn details(&mut self) -> &mut OutcomeDetails<D> {
        self.outcome.details.get_or_insert_default()
    }

    fn take(&mut self, index: usize, result: HookResult<D::Object>) -> (ActionKind, bool, Option<ReportDetail>) {
        let HookResult { action, reason, message, output, suppress_output } = result;
        if let Some(message) = message {
            let message = self.attribute(index, *message);
            self.details().messages.push(message);
        }
        if let Some(output) = output
            && !suppress_output
        {
            let output = self.attribute(index, output);
            self.details().outputs.push(output);
        }
        let counts = self.hook(index).info().role == HookRole::Gate;
        let answered = match action {
            Action::Continue => ActionKind::Continue,
            Action::Respond(answer) => {
                if counts {
                    let answer = self.attribute(index, answer);
                    self.details().responses.push(answer);
                }
                ActionKind::Respond
            }
            Action::Deny => {
                if counts {
                    self.deny(index, reason.clone());
                }
                ActionKind::Deny
            }
            Action::Modify(change) => {
                if counts && self.outcome.progress.collecting {
                    let answer = self.attribute(index, self.outcome.data.changed(change));
                    self.details().responses.push(answer);
                } else if counts {
                    self.outcome.data.apply(change);
                    self.decide(Decision::Modify);
                }
                ActionKind::Modify
            }
            Action::InjectContext(injection) => {
                if counts {
                    let injection = self.attribute(index, *injection);
                    self.details().injections.push(injection);
                    self.decide(Decision::InjectContext);
                }
                ActionKind::InjectContext
            }
            Action::AskUser(approval) => {
                if counts {
                    let hook = self.hook(index).info().name.clone();
                    let (reason, asked_about) = (reason.clone(), self.outcome.data.digest());
                    self.details().approvals.push(HookApproval { hook, approval: *approval, reason, asked_about });
                    self.decide(Decision::AskUser);
                }
                ActionKind::AskUser
            }
        };
        (answered, suppress_output, reason.map(ReportDetail::Reason))
    }

    fn fail(&mut self, index: usize, error: &HookError) {
        let info = self.hook(index).info();
        // Whoever answered with an action tried to intervene: its failure must not let the operation through.
        let denies = matches!(error, HookError::InvalidAnswer(_)) || info.on_error.at(self.event()) == OnError::Deny;
        if denies && info.role == HookRole::Gate {
            // Wherever a denial is shown, the name of the hook stands before the reason.
            self.deny(index, Some(format!("the hook failed: {error}")));
        }
    }

    /// The strongest answer so far decides.
    fn decide(&mut self, decision: Decision) {
        if decision.strength() > self.outcome.decision.strength() {
            self.outcome.decision = decision;
        }
    }

    fn deny(&mut self, index: usize, reason: Option<String>) {
        if self.outcome.progress.collecting {
            return;
        }
        let denial = Denial { by: self.hook(index).info().name.clone(), reason };
        self.decide(Decision::Deny(Box::new(denial)));
        // The remaining gates have no say any more; observers see every emission.
        self.outcome.progress.skip_gates();
    }
}

impl Emission {
    pub(super) fn reserve(&mut self, reserved: &Option<Arc<Map>>) {
        self.outcome.data.reserve(reserved);
    }
}

impl<D: Data> std::fmt::Debug for Emission<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emission")
            .field("event", self.event())
            .field("decision", self.decision())
            .finish_non_exhaustive()
    }
}
