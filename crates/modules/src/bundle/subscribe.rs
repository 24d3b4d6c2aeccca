//! Registration of a hook for several patterns: each event is handled once.

use std::sync::Arc;

use amplifier_core::{EventData, EventPattern, Hook, HookError, HookResult};

use super::register::BundleHook;

pub(super) struct PatternHook {
    hook: Arc<BundleHook>,
    /// Earlier patterns, under which the hook handles the event already.
    earlier: Vec<EventPattern>,
}

impl PatternHook {
    /// Returns the hook for each pattern that no other pattern contains.
    pub(super) fn all<'a>(patterns: &'a [String], hook: &Arc<BundleHook>) -> Vec<(&'a str, Self)> {
        let parsed = |pattern: &String| pattern.parse::<EventPattern>().ok();
        let is_wide = |pattern: &String| pattern.contains('*');
        let distinct = patterns.iter().enumerate().filter(|(at, pattern)| {
            let mut others = patterns.iter().enumerate().filter(|(one, other)| one < at || one > at && is_wide(other));
            // An invalid pattern is kept, because its registration fails with the reason.
            is_wide(pattern) || !others.any(|(_, other)| parsed(other).is_some_and(|other| other.matches(pattern)))
        });
        let pattern_hook = distinct.map(|(at, pattern)| {
            let earlier = patterns[..at].iter().filter(|other| is_wide(pattern) && is_wide(other));
            let earlier = earlier.filter_map(parsed).collect();
            (pattern.as_str(), Self { hook: hook.clone(), earlier })
        });
        pattern_hook.collect()
    }
}

impl Hook for PatternHook {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if self.earlier.iter().any(|earlier| earlier.matches(event)) {
            return Ok(HookResult::proceed());
        }
        self.hook.handle(event, data).await
    }
}
