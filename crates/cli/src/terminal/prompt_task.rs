//! The thread that shows a prompt and reads keys.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use amplifier_core::{ApprovalAnswer, ApprovalError, ApprovalRequest};

use super::key_filter::Key;
use super::keys::Keys;
use super::line::StyledLine;
use super::open_prompt::{EndReason, PromptEnd, PromptTerminal};
use super::prompt;
use super::reason::{ReasonEnd, ReasonInput};
use super::rule_menu::{RuleMenu, SCOPE_KEY};
use super::screen::Screen;
use crate::user::terminal_actor;

/// The interval at which an open prompt checks for keys and for its own end.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The work of the thread that shows a prompt and reads keys.
pub(super) struct PromptTask<'a> {
    pub(super) screen: Screen,
    pub(super) request: &'a ApprovalRequest,
    pub(super) terminal: PromptTerminal,
    /// `None` if the deadline is beyond the range of the clock.
    pub(super) deadline: Option<Instant>,
    pub(super) ended: Arc<OnceLock<EndReason>>,
}

impl PromptTask<'_> {
    pub(super) fn run(self) -> Result<PromptEnd, ApprovalError> {
        let request = self.request;
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
        let (ending, end) = loop {
            let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let out_of_time = (left == Some(Duration::ZERO)).then_some(&EndReason::OutOfTime);
            match self.ended.get().or(out_of_time) {
                Some(EndReason::OutOfTime) => {
                    break (prompt::timed_out_row(request.default), Err(ApprovalError::TimedOut));
                }
                Some(EndReason::Elsewhere(answer)) => {
                    break (prompt::elsewhere_row(&request.options, answer), Err(ApprovalError::Closed));
                }
                Some(EndReason::Decided(decision)) => {
                    break (prompt::decided_row(decision), Err(ApprovalError::Closed));
                }
                Some(EndReason::Withdrawn) => break (self.withdrawn_row(), Err(ApprovalError::Closed)),
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
                    Some(ReasonEnd::Enter) => break (prompt::denied_row(), Ok(PromptEnd::Denial(input.text()))),
                    Some(ReasonEnd::Escape) => (reason, hint) = (None, ""),
                    Some(ReasonEnd::Interrupt) => break (self.interrupted_row(), Ok(PromptEnd::Interrupt)),
                }
                continue;
            }
            let hint_now = if keys.have_ignored() { prompt::IGNORED_HINT } else { hint };
            let row = match &menu {
                _ if !keys.are_ready() => prompt::settling_row(),
                Some(menu) => menu.waiting_row(left, hint_now),
                None => prompt::with_others(prompt::waiting_row(request, left, hint_now), self.terminal.others()),
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
                            let answer = ApprovalAnswer { by: Some(terminal_actor()), ..answer };
                            break (open.chosen_row(&rule), Ok(PromptEnd::Answer(answer)));
                        }
                    }
                    Some(Key::Escape) => {
                        menu = None;
                        hint = "";
                        lock.rows(&draw(true))?;
                    }
                    Some(Key::Interrupt) => break (self.interrupted_row(), Ok(PromptEnd::Interrupt)),
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
                Some(Key::Escape) if self.terminal.others() > 0 => break (prompt::open_row(), Ok(PromptEnd::Next)),
                Some(Key::Escape) => {
                    hint = prompt::ESCAPE_HINT;
                    None
                }
                Some(Key::Interrupt) => break (self.interrupted_row(), Ok(PromptEnd::Interrupt)),
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
                let answer = ApprovalAnswer { by: Some(terminal_actor()), ..option.label.clone().into() };
                break (prompt::answered_row(option.effect), Ok(PromptEnd::Answer(answer)));
            }
        };
        lock.rows(&[ending])?;
        end
    }

    fn interrupted_row(&self) -> StyledLine {
        match self.terminal {
            PromptTerminal::Own => prompt::denied_row(),
            PromptTerminal::List { .. } => prompt::open_row(),
        }
    }

    fn withdrawn_row(&self) -> StyledLine {
        match self.terminal {
            PromptTerminal::Own => prompt::withdrawn_row(),
            PromptTerminal::List { .. } => prompt::open_row(),
        }
    }
}

/// Returns the answer that denies, with a reason for the model.
pub(crate) fn denial(request: &ApprovalRequest, reason: Option<String>) -> Result<ApprovalAnswer, ApprovalError> {
    match prompt::find_denial(&request.options) {
        Some(option) => Ok(ApprovalAnswer { by: Some(terminal_actor()), reason, ..option.label.clone().into() }),
        None => {
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Err(ApprovalError::Failed(format!("the user denied{reason}")))
        }
    }
}
