//! Approval requests at the terminal.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalSystem, EventData, OpenRequest, RuleOffer};
use serde_json::Value;

use super::open_prompt::{EndReason, OpenPrompt, PromptEnd, PromptTerminal};
use super::prompt;
use super::prompt_task::denial;
use super::screen::Screen;

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
        let mut prompt = OpenPrompt::show(&self.screen, request.clone(), deadline, PromptTerminal::Own)?;
        tokio::select! {
            end = prompt.end() => match end? {
                PromptEnd::Answer(answer) => Ok(answer),
                PromptEnd::Denial(reason) => denial(&request, Some(reason)),
                PromptEnd::Interrupt => {
                    (self.stop)();
                    denial(&request, None)
                }
                // Only a list of requests has a next one.
                PromptEnd::Next => Err(ApprovalError::Closed),
            },
            answer = &mut elsewhere => {
                prompt.close(EndReason::Elsewhere(answer.clone()));
                Ok(answer)
            }
            _ = request.closed() => {
                // A cancelled caller drops this future, so only the time limit closes the request here.
                prompt.close(EndReason::OutOfTime);
                Err(ApprovalError::TimedOut)
            }
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
