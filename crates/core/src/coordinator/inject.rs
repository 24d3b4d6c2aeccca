//! Limits on injections, and their conversion to messages, without I/O.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::SystemTime;

use super::config::{OverBudget, SessionConfig};
use crate::event::EventName;
use crate::ports::context::InjectedMessage;
use crate::registry::Attributed;
use crate::result::{HookError, Injection, InjectionStatus};
use crate::text::is_readable;

/// Counts the tokens of a text, for the injection budget.
pub trait TokenCounter: Send + Sync + 'static {
    /// Returns the number of tokens of the text.
    fn count(&self, text: &str) -> usize;
}

impl<T: TokenCounter + ?Sized> TokenCounter for Arc<T> {
    fn count(&self, text: &str) -> usize {
        (**self).count(text)
    }
}

/// An estimate for sessions without a tokenizer: four characters a token.
#[derive(Clone, Copy, Debug, Default)]
pub struct EstimatedTokens;

impl TokenCounter for EstimatedTokens {
    fn count(&self, text: &str) -> usize {
        text.chars().count() / 4
    }
}

/// A foreign counter; if it panics, the estimate is used.
pub(super) struct ContainedCounter<'a>(pub(super) &'a dyn TokenCounter);

impl ContainedCounter<'_> {
    fn count(&self, text: &str) -> usize {
        catch_unwind(AssertUnwindSafe(|| self.0.count(text))).unwrap_or_else(|panic| {
            let error = HookError::from_panic(panic);
            tracing::error!(%error, "the token counter failed");
            EstimatedTokens.count(text)
        })
    }
}

/// An injection that is longer than the session allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the injection of hook `{hook}` exceeds the limit: {size} characters, {limit} are allowed")]
pub struct InjectionTooLarge {
    /// The hook.
    pub hook: String,
    /// The size in characters.
    pub size: usize,
    /// The limit in characters.
    pub limit: usize,
}

/// The result of the session's limits on an injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InjectionCheck {
    Injected,
    /// Injected although the budget is used up.
    OverBudget,
    Truncated,
    Dropped,
    Refused(InjectionTooLarge),
}

impl InjectionCheck {
    pub(super) fn status(&self) -> InjectionStatus {
        match self {
            Self::Injected => InjectionStatus::Injected,
            Self::OverBudget => InjectionStatus::OverBudget,
            Self::Truncated => InjectionStatus::Truncated,
            Self::Dropped => InjectionStatus::Dropped,
            Self::Refused(_) => InjectionStatus::Refused,
        }
    }

    pub(super) fn is_injected(&self) -> bool {
        !matches!(self, Self::Dropped | Self::Refused(_))
    }

    pub(super) fn warning(&self) -> Option<String> {
        Some(match self {
            Self::Injected => return None,
            Self::OverBudget => "the injection exceeds the budget of this turn".to_owned(),
            Self::Truncated => "the injection was truncated: the budget of this turn is exceeded".to_owned(),
            Self::Dropped => "the injection was dropped: the budget of this turn is used up".to_owned(),
            Self::Refused(too_large) => too_large.to_string(),
        })
    }
}

#[derive(Debug)]
pub(super) struct CheckedInjection {
    pub(super) injection: Attributed<Injection>,
    pub(super) tokens: usize,
    pub(super) check: InjectionCheck,
}

/// The tokens that were injected in the current turn.
#[derive(Debug, Default)]
pub(super) struct InjectionBudget {
    turn: u64,
    used: usize,
}

impl InjectionBudget {
    pub(super) fn used_in(&self, turn: u64) -> usize {
        if self.turn == turn { self.used } else { 0 }
    }

    /// Returns the budget, reset if another turn has begun.
    pub(super) fn of_turn(&mut self, turn: u64) -> &mut Self {
        if self.turn != turn {
            *self = Self { turn, used: 0 };
        }
        self
    }

    pub(super) fn admit(
        &mut self,
        mut injection: Attributed<Injection>,
        config: &SessionConfig,
        counter: &ContainedCounter<'_>,
    ) -> CheckedInjection {
        let text = &mut injection.value.text;
        text.retain(is_readable);
        let mut tokens = counter.count(text);
        let size = text.chars().count();
        let left = config.injection_budget_per_turn.map(|budget| budget.saturating_sub(self.used));
        let check = if let Some(limit) = config.injection_size_limit.filter(|limit| size > *limit) {
            InjectionCheck::Refused(InjectionTooLarge { hook: injection.hook.to_string(), size, limit })
        } else if let Some(left) = left.filter(|left| tokens > *left) {
            match config.over_budget {
                OverBudget::Warn => InjectionCheck::OverBudget,
                OverBudget::Truncate if left > 0 => {
                    truncate(text, left, counter);
                    tokens = counter.count(text);
                    InjectionCheck::Truncated
                }
                OverBudget::Truncate | OverBudget::Drop => InjectionCheck::Dropped,
            }
        } else {
            InjectionCheck::Injected
        };
        if check.is_injected() {
            self.used = self.used.saturating_add(tokens);
        }
        CheckedInjection { injection, tokens, check }
    }
}

/// Truncates the text to the shortest beginning with that many tokens.
fn truncate(text: &mut String, tokens: usize, counter: &ContainedCounter<'_>) {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    // With any sensible tokenizer more characters never take fewer tokens, so a binary search finds the cut.
    let mut cut = ends.partition_point(|end| counter.count(&text[..*end]) < tokens);
    while cut > 0 && ends.get(cut).is_none_or(|end| counter.count(&text[..*end]) > tokens) {
        cut -= 1;
    }
    text.truncate(ends.get(cut).copied().unwrap_or_default());
}

pub(super) struct Origin<'a> {
    pub(super) event: &'a EventName,
    pub(super) tool_call_id: Option<&'a str>,
    pub(super) at: SystemTime,
}

/// Joins the accepted injections into messages, one for each role and placement.
pub(super) fn messages(admitted: &[CheckedInjection], origin: &Origin<'_>) -> Vec<InjectedMessage> {
    let injected = admitted.iter().filter(|one| one.check.is_injected() && !one.injection.text.is_empty());
    let mut groups: Vec<Vec<&Attributed<Injection>>> = Vec::new();
    for injection in injected.map(|one| &one.injection) {
        let same = |group: &&mut Vec<&Attributed<Injection>>| {
            group.iter().all(|other| (other.role, other.placement) == (injection.role, injection.placement))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(injection),
            None => groups.push(vec![injection]),
        }
    }
    groups.into_iter().filter_map(|group| message(&group, origin)).collect()
}

fn message(group: &[&Attributed<Injection>], origin: &Origin<'_>) -> Option<InjectedMessage> {
    let first = group.first()?;
    let content = match group {
        [one] => one.text.clone(),
        several => {
            let headed =
                |one: &&Attributed<Injection>| format!("From {} ({} bytes):\n{}", one.hook, one.text.len(), one.text);
            several.iter().map(headed).collect::<Vec<_>>().join("\n\n")
        }
    };
    let hooks: Vec<Arc<str>> = group.iter().map(|one| one.hook.clone()).collect();
    Some(InjectedMessage {
        role: first.role,
        content,
        placement: first.placement,
        hooks,
        event: origin.event.clone(),
        tool_call_id: origin.tool_call_id.map(str::to_owned),
        at: origin.at,
    })
}
