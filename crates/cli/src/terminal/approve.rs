//! Approval requests at the terminal.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, EventData, OpenRequest, RuleOffer};
use serde_json::Value;
use tokio::sync::oneshot;

use super::key_filter::Key;
use super::keys::Keys;
use super::prompt;
use super::reason::{ReasonEnd, ReasonInput};
use super::rule_menu::{RuleMenu, SCOPE_KEY};
use super::screen::Screen;
use crate::user::terminal_actor;

/// The interval at which an open prompt checks for keys and for its own end.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// The terminal stops waiting this much earlier than the kernel, so that an answer shown on the screen still arrives in time.
const MARGIN: Duration = Duration::from_millis(50);

/// Approvals at the terminal: shows the operation and waits for a key.
///
/// Only one prompt is on the screen at a time; other requests wait, and their time limits run.
pub struct TerminalApprovals {
    screen: Screen,
    stop: Arc<dyn Fn() + Send + Sync>,
}

impl TerminalApprovals {
    /// Creates approvals that prompt on `screen`.
    pub fn new(screen: Screen) -> Self {
        Self { screen, stop: Arc::new(|| ()) }
    }

    /// Sets a function that Ctrl-C at a prompt calls in addition to denying.
    #[must_use]
    pub fn stopping(mut self, stop: impl Fn() + Send + Sync + 'static) -> Self {
        self.stop = Arc::new(stop);
        self
    }
}

impl ApprovalSystem for TerminalApprovals {
    /// # Cancel safety
    /// Dropping the future removes the prompt and releases the keyboard before it returns, at most one poll interval later.
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        self.request_beside(request, std::future::pending()).await
    }

    /// # Cancel safety
    /// As for [`request_approval`](Self::request_approval).
    async fn request_beside(
        &self,
        request: Arc<OpenRequest>,
        elsewhere: impl Future<Output = ApprovalAnswer> + Send,
    ) -> Result<ApprovalAnswer, ApprovalError> {
        let mut elsewhere = pin!(elsewhere);
        let deadline = Instant::now().checked_add(request.timeout.saturating_sub(MARGIN));
        let asking = self.screen.prompt_lock();
        let _turn = tokio::select! {
            turn = asking.lock() => turn,
            answer = &mut elsewhere => {
                let text = format!("approval request of hook {}: {}", request.hook, prompt::describe_answer(&request.options, &answer));
                self.screen.note(&text);
                return Ok(answer);
            }
            _ = request.closed() => {
                let hook = &request.hook;
                self.screen.note(&format!("approval request of hook {hook} timed out while another one was open"));
                return Err(ApprovalError::TimedOut);
            }
        };
        let (answer, answered) = oneshot::channel();
        let ended = Arc::new(OnceLock::new());
        let asking = PromptTask {
            screen: self.screen.clone(),
            stop: self.stop.clone(),
            request: request.clone(),
            deadline,
            ended: ended.clone(),
        };
        // A dedicated thread starts at once, so joining it never waits for it to start.
        let thread = std::thread::Builder::new().name("question".into()).spawn(move || {
            // The receiver is gone if the request was withdrawn.
            let _ = answer.send(asking.run());
        })?;
        let shown = PromptGuard { ended, thread: Some(thread) };
        tokio::select! {
            answered = answered => answered.unwrap_or(Err(ApprovalError::Closed)),
            answer = &mut elsewhere => {
                let _ = shown.ended.set(EndReason::Elsewhere(answer.clone()));
                Ok(answer)
            }
            _ = request.closed() => {
                // A cancelled caller drops this future, so only the time limit closes the request here.
                let _ = shown.ended.set(EndReason::OutOfTime);
                Err(ApprovalError::TimedOut)
            }
        }
    }
}

/// The reason for removing a prompt without an answer.
pub(super) enum EndReason {
    OutOfTime,
    /// Answered in another channel.
    Elsewhere(ApprovalAnswer),
    Withdrawn,
}

/// A prompt on the screen. Dropping the guard removes the prompt and waits until the keyboard is released.
pub(super) struct PromptGuard {
    pub(super) ended: Arc<OnceLock<EndReason>>,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Drop for PromptGuard {
    fn drop(&mut self) {
        // The first reason stays.
        let _ = self.ended.set(EndReason::Withdrawn);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread already shows as a missing answer.
            let _ = thread.join();
        }
    }
}

/// The work of the thread that shows a prompt and reads keys.
struct PromptTask {
    screen: Screen,
    request: Arc<OpenRequest>,
    stop: Arc<dyn Fn() + Send + Sync>,
    /// `None` if the deadline is beyond the range of the clock.
    deadline: Option<Instant>,
    ended: Arc<OnceLock<EndReason>>,
}

impl PromptTask {
    fn run(self) -> Result<ApprovalAnswer, ApprovalError> {
        let request = &*self.request;
        let draw = |all| prompt::rows(request, self.screen.size(), all);

        // Dropped in reverse order: the keyboard is released before other output is printed.
        let lock = self.screen.lock_for_prompt()?;
        let mut keys = Keys::take(self.screen.key_filter())?;
        lock.rows(&draw(false))?;
        lock.last_row(&prompt::settling_row())?;
        keys.discard_pending()?;

        // An operation can only be allowed after all of its rows were shown.
        let mut is_all_shown = draw(false).len() == draw(true).len();
        let mut hint = "";
        let mut last_row = prompt::settling_row();
        // The text typed so far, after the key for a reason.
        let mut reason: Option<ReasonInput> = None;
        // The rules to choose from, after an option that always allows.
        let mut menu: Option<RuleMenu<'_>> = None;
        let (ending, answer) = loop {
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let out_of_time = (left == Some(Duration::ZERO)).then_some(&EndReason::OutOfTime);
            match self.ended.get().or(out_of_time) {
                Some(EndReason::OutOfTime) => {
                    break (prompt::timed_out_row(request.default), Err(ApprovalError::TimedOut));
                }
                Some(EndReason::Elsewhere(answer)) => {
                    break (prompt::elsewhere_row(&request.options, answer), Err(ApprovalError::Closed));
                }
                Some(EndReason::Withdrawn) => break (prompt::withdrawn_row(), Err(ApprovalError::Closed)),
                None => {}
            }
            if let Some(input) = &mut reason {
                let row = input.row(self.screen.size().columns);
                if row != last_row {
                    lock.last_row(&row)?;
                    last_row = row;
                }
                match input.add(&keys.next_bytes(POLL_INTERVAL)?) {
                    None => {}
                    Some(ReasonEnd::Enter) => break (prompt::denied_row(), denial(request, Some(input.text()))),
                    Some(ReasonEnd::Escape) => (reason, hint) = (None, ""),
                    Some(ReasonEnd::Interrupt) => {
                        (self.stop)();
                        break (prompt::denied_row(), denial(request, None));
                    }
                }
                continue;
            }
            let hint_now = if keys.have_ignored() { prompt::IGNORED_HINT } else { hint };
            let row = match &menu {
                _ if !keys.are_ready() => prompt::settling_row(),
                Some(menu) => menu.waiting_row(left, hint_now),
                None => prompt::waiting_row(request, left, hint_now),
            };
            if row != last_row {
                lock.last_row(&row)?;
                last_row = row;
            }
            let mut unfolds = None;
            if let Some(open) = &mut menu {
                match keys.next(POLL_INTERVAL)? {
                    Some(Key::Character(key)) if key.eq_ignore_ascii_case(&SCOPE_KEY) => {
                        if open.turn() {
                            lock.rows(&open.rows(self.screen.size().columns))?;
                        }
                    }
                    Some(Key::Character(key)) => {
                        if let Some(rule) = open.choose(key) {
                            let answer = ApprovalAnswer::from(open.option().label.as_str()).with_rule(rule.clone());
                            break (
                                open.chosen_row(&rule),
                                Ok(ApprovalAnswer { by: Some(terminal_actor()), ..answer }),
                            );
                        }
                    }
                    Some(Key::Escape) => {
                        menu = None;
                        hint = "";
                        lock.rows(&draw(true))?;
                    }
                    Some(Key::Interrupt) => {
                        (self.stop)();
                        break (prompt::denied_row(), denial(request, None));
                    }
                    None => continue,
                }
                last_row = prompt::settling_row();
                lock.last_row(&last_row)?;
                continue;
            }
            let option = match keys.next(POLL_INTERVAL)? {
                Some(Key::Character(prompt::REASON_KEY)) => {
                    reason = Some(ReasonInput::default());
                    None
                }
                Some(Key::Character('+')) => {
                    unfolds = Some("");
                    None
                }
                Some(Key::Character(key)) => {
                    let option = prompt::find_option(&request.options, key);
                    if !is_all_shown && option.is_some_and(|option| option.effect.allows()) {
                        unfolds = Some(prompt::UNFOLDED_HINT);
                    }
                    option.filter(|_| unfolds.is_none())
                }
                Some(Key::Escape) => {
                    hint = prompt::ESCAPE_HINT;
                    None
                }
                Some(Key::Interrupt) => {
                    (self.stop)();
                    break (prompt::denied_row(), denial(request, None));
                }
                None => None,
            };
            if let Some(why) = unfolds {
                (is_all_shown, hint, last_row) = (true, why, prompt::settling_row());
                lock.rows(&draw(true))?;
                lock.last_row(&last_row)?;
            }
            if let Some(option) = option {
                menu = RuleMenu::open(request, option);
                if let Some(menu) = &menu {
                    (hint, last_row) = ("", prompt::settling_row());
                    lock.rows(&menu.rows(self.screen.size().columns))?;
                    lock.last_row(&last_row)?;
                    keys.discard_pending()?;
                    continue;
                }
                break (
                    prompt::answered_row(option.effect),
                    Ok(ApprovalAnswer { by: Some(terminal_actor()), ..option.label.clone().into() }),
                );
            }
        };
        lock.rows(&[ending])?;
        answer
    }
}

/// Returns the answer that denies, with a reason for the model.
fn denial(request: &OpenRequest, reason: Option<String>) -> Result<ApprovalAnswer, ApprovalError> {
    match prompt::find_denial(&request.options) {
        Some(option) => Ok(ApprovalAnswer { by: Some(terminal_actor()), reason, ..option.label.clone().into() }),
        None => {
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Err(ApprovalError::Failed(format!("the user denied{reason}")))
        }
    }
}

/// Denies every approval request because there is no terminal; the reason says what to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadlessApprovals;

impl ApprovalSystem for HeadlessApprovals {
    async fn request_approval(&self, request: Arc<OpenRequest>) -> Result<ApprovalAnswer, ApprovalError> {
        let hint = match &request.warning {
            // A rule that allows the operation would have no effect.
            Some(warning) => format!(" ({warning})"),
            None => find_rule(&request).map(|rule| format!(", or add the approval rule `{rule}`")).unwrap_or_default(),
        };
        Err(ApprovalError::Unavailable(format!("no terminal to ask on; run in a terminal{hint}")))
    }
}

/// Returns a rule that allows this operation, as in the file of rules: by the prompt if it says what would run, else by the offered operations.
fn find_rule(request: &OpenRequest) -> Option<String> {
    // A `*` in the prompt would match any text in the rule.
    if !request.prompt.contains('*') && names_operation(&request.prompt, &request.data) {
        return Some(format!("{}: \"allow\"", Value::from(format!("{}:{}", request.hook, request.prompt))));
    }
    let RuleOffer { operations, .. } = request.offers.first()?;
    let allowed: Vec<String> =
        operations.iter().map(|operation| format!("{}: \"allow\"", Value::from(operation.as_str()))).collect();
    Some(format!("{}: {{ {} }}", Value::from(request.hook.as_str()), allowed.join(", ")))
}

/// Returns `true` if the prompt has the command or the file of the call, so that a rule for the prompt answers for no other one.
fn names_operation(prompt: &str, data: &EventData) -> bool {
    let input = data.get("tool_input").and_then(Value::as_object);
    let mut texts = input.into_iter().flatten().filter(|(_, value)| !value.is_null()).peekable();
    if texts.peek().is_none() {
        return true;
    }
    let names = |text: &str| {
        let is_apart = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '/' | '-'));
        !text.is_empty()
            && prompt.match_indices(text).any(|(at, _)| {
                let (before, after) = (prompt.get(..at), prompt.get(at + text.len()..));
                is_apart(before.and_then(|before| before.chars().next_back()))
                    && is_apart(after.and_then(|after| after.chars().next()))
            })
    };
    let texts: Vec<(&str, &str)> =
        texts.filter_map(|(key, value)| value.as_str().map(|text| (key.as_str(), text))).collect();
    match texts.iter().find(|(key, _)| matches!(*key, "command" | "file_path")) {
        Some((_, text)) => names(text),
        None => texts.iter().any(|(_, text)| names(text)),
    }
}

#[cfg(test)]
mod tests {
    use amplifier_core::{Coordinator, HookRegistry, HookResult, TOOL_PRE, Verdict, data};

    use super::*;

    #[tokio::test]
    async fn without_a_terminal_a_question_is_denied_and_the_reason_says_what_to_do() {
        let hooks = HookRegistry::new();
        hooks.hook(TOOL_PRE).named("guard").run(|_| HookResult::ask("Run \"ls\"?"));
        let session = Coordinator::builder(hooks).approvals(HeadlessApprovals).build();
        let verdict = session.emit(TOOL_PRE, data! { "tool_name": "Bash", "tool_input": {} }).await;
        let reason = "Approval failed (no terminal to ask on; run in a terminal, or add the approval rule `\"guard:Run \\\"ls\\\"?\": \"allow\"`): Run \"ls\"?";
        assert_eq!(verdict, Verdict::Denied { by: "guard".into(), reason: reason.into() });
    }

    #[tokio::test]
    async fn no_rule_is_named_whose_prompt_would_answer_for_other_operations() {
        let prompts = [
            ("Bash may change infra. Go on?", false),
            ("Bash may change infra: cd infra && rm main.tf. Go on?", true),
            ("Bash may change infra: cd infra && rm main.tfvars. Go on?", false),
        ];
        for (prompt, is_named) in prompts {
            let hooks = HookRegistry::new();
            hooks.hook(TOOL_PRE).named("guard").run(move |_| HookResult::ask(prompt));
            let session = Coordinator::builder(hooks).approvals(HeadlessApprovals).build();
            let data = data! { "tool_name": "Bash", "tool_input": { "command": "cd infra && rm main.tf" } };
            let verdict = session.emit(TOOL_PRE, data).await;
            let Verdict::Denied { reason, .. } = verdict else { panic!("{verdict:?}") };
            assert_eq!(reason.contains("add the approval rule"), is_named, "{reason}");
        }
    }
}
