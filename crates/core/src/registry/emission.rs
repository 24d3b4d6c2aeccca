//! The rules of an emission, without I/O.

use std::sync::Arc;

use super::outcome::{Attributed, HookApproval, Outcome, OutcomeDetails, ReportDetail};
use super::precedence::{Decision, Denial};
use super::progress::Progress;
use super::settings::{HookRole, OnError};
use super::table::{ListedHook, Listeners};
use crate::event::{Data, EventData, EventName, Map};
use crate::result::{Action, ActionKind, HookError, HookResult};

/// One emission, as a state machine: it returns the next hook to call and its data, takes the result, and finally
/// returns the [`Outcome`].
///
/// All rules about order, precedence and failing hooks are here. The machine never waits, so that Rust, Python and tests
/// can drive it.
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
    /// Begins an emission over any type of data, which must already have the registry's fields.
    /// [`HookRegistry::begin`](crate::HookRegistry::begin) does this for JSON.
    #[inline]
    pub fn new(listeners: Listeners, data: D) -> Self {
        let progress = Progress::new(&listeners);
        Self { outcome: Outcome { decision: Decision::Continue, data, details: None, progress, listeners } }
    }

    /// Only collects responses: every hook is called, none can deny or modify.
    #[must_use]
    pub fn collecting(mut self) -> Self {
        self.outcome.progress.collecting = true;
        self
    }

    /// Returns the index of the next hook to call; `None` after the last one.
    pub fn next_hook(&mut self) -> Option<usize> {
        self.outcome.progress.next_hook()
    }

    /// Returns the hook with that index.
    #[inline]
    pub fn hook(&self, index: usize) -> &ListedHook {
        &self.outcome.listeners.hooks()[index]
    }

    /// Returns the event as emitted.
    pub fn event(&self) -> &EventName {
        self.outcome.event()
    }

    /// Returns the number of gates. The other hooks are observers: they cannot change the data, so they can run concurrently.
    pub fn gates(&self) -> usize {
        self.outcome.progress.gates()
    }

    /// Returns the decision so far.
    pub fn decision(&self) -> &Decision {
        &self.outcome.decision
    }

    /// Returns the data with the changes so far.
    #[inline]
    pub fn data(&self) -> &D {
        &self.outcome.data
    }

    /// Takes the result of a hook. A result for an unknown hook, before the hook's turn, or after an earlier result is ignored.
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

    /// Takes a plain `continue`: [`answer`](Self::answer) for the most frequent case.
    #[inline]
    pub fn answer_continue(&mut self, index: usize) {
        if self.outcome.progress.awaits(index) {
            self.outcome.progress.continued(index);
        }
    }

    /// Returns the parts that a driver needs for running silent hooks in a tight loop.
    pub(super) fn parts(&mut self) -> (&[ListedHook], &D, &mut Progress) {
        (self.outcome.listeners.hooks(), &self.outcome.data, &mut self.outcome.progress)
    }

    /// Records the duration of the hooks that answered since the last call; several share the time.
    pub fn record_duration(&mut self, nanos: u64) {
        self.outcome.progress.record_duration(nanos);
    }

    /// Returns `true` if all hooks have had their turn.
    pub fn is_over(&self) -> bool {
        self.outcome.progress.is_over()
    }

    /// Returns the outcome. A hook without a result counts as failed.
    #[inline]
    pub fn finish(mut self) -> Outcome<D> {
        if !self.outcome.progress.is_complete() {
            self.fail_unanswered();
        }
        self.outcome
    }

    pub(crate) fn partial_outcome(&self) -> &Outcome<D> {
        &self.outcome
    }

    #[cold]
    fn fail_unanswered(&mut self) {
        while self.next_hook().is_some() {}
        for index in 0..self.outcome.listeners.hooks().len() {
            let skipped = self.outcome.denial().is_some() && index < self.gates();
            if !skipped {
                self.answer(index, Err(HookError::failed("was not called")));
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
                    self.outcome.decision.raise(Decision::Modify);
                }
                ActionKind::Modify
            }
            Action::InjectContext(injection) => {
                if counts {
                    let injection = self.attribute(index, *injection);
                    self.details().injections.push(injection);
                    self.outcome.decision.raise(Decision::InjectContext);
                }
                ActionKind::InjectContext
            }
            Action::AskUser(approval) => {
                if counts {
                    let hook = self.hook(index).info().name.clone();
                    let (reason, asked_about) = (reason.clone(), self.outcome.data.digest());
                    self.details().approvals.push(HookApproval { hook, approval: *approval, reason, asked_about });
                    self.outcome.decision.raise(Decision::AskUser);
                }
                ActionKind::AskUser
            }
        };
        (answered, suppress_output, reason.map(ReportDetail::Reason))
    }

    fn fail(&mut self, index: usize, error: &HookError) {
        let info = self.hook(index).info();
        // A hook with an invalid action tried to intervene: its failure must not allow the operation.
        let denies = matches!(error, HookError::InvalidAnswer(_)) || info.on_error.at(self.event()) == OnError::Deny;
        if denies && info.role == HookRole::Gate {
            // A denial is always shown with the hook's name before the reason.
            self.deny(index, Some(format!("the hook failed: {error}")));
        }
    }

    fn deny(&mut self, index: usize, reason: Option<String>) {
        if self.outcome.progress.collecting {
            return;
        }
        let denial = Denial { by: self.hook(index).info().name.clone(), reason };
        self.outcome.decision.raise(Decision::Deny(Box::new(denial)));
        // The remaining gates are skipped; observers see every emission.
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
