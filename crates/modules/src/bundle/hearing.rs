//! A hook under several patterns hears each event once.

use std::sync::Arc;

use amplifier_core::{EventData, Hook, HookError, HookRegistry, HookResult};

use super::register::BundleHook;

/// A hook as it is registered under one of its patterns.
pub(super) struct Hearing {
    hook: Arc<BundleHook>,
    /// The patterns under which it hears the event already.
    earlier: Option<HookRegistry>,
}

impl Hearing {
    /// The hook under each of its patterns, but for those that others among them contain.
    pub(super) fn all<'a>(patterns: &'a [String], hook: &Arc<BundleHook>) -> Vec<(&'a str, Self)> {
        let is_wide = |pattern: &String| pattern.contains('*');
        let heard = patterns.iter().enumerate().filter(|(at, pattern)| {
            let others = patterns.iter().enumerate().filter(|(other, one)| other < at || other > at && is_wide(one));
            is_wide(pattern) || !hears(others.map(|(_, other)| other), pattern)
        });
        let hearing = heard.map(|(at, pattern)| {
            let earlier: Vec<_> = patterns[..at].iter().filter(|other| is_wide(pattern) && is_wide(other)).collect();
            let earlier = (!earlier.is_empty()).then(|| listening(earlier));
            (pattern.as_str(), Self { hook: hook.clone(), earlier })
        });
        hearing.collect()
    }
}

impl Hook for Hearing {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if self.earlier.as_ref().is_some_and(|earlier| is_heard(earlier, event)) {
            return Ok(HookResult::proceed());
        }
        self.hook.handle(event, data).await
    }
}

/// Whether an event is heard under one of these patterns, by whatever name.
fn hears<'a>(patterns: impl IntoIterator<Item = &'a String>, event: &str) -> bool {
    is_heard(&listening(patterns), event)
}

/// A registry in which nothing happens: it knows which patterns hear an event, aliases included. What is no pattern hears nothing, and is told where it is
/// registered.
fn listening<'a>(patterns: impl IntoIterator<Item = &'a String>) -> HookRegistry {
    let hooks = HookRegistry::new();
    for pattern in patterns {
        let _ = hooks.hook(pattern.as_str()).run(|_| ());
    }
    hooks
}

fn is_heard(hooks: &HookRegistry, event: &str) -> bool {
    hooks.list_handlers_of(event).is_ok_and(|hooks| !hooks.is_empty())
}
