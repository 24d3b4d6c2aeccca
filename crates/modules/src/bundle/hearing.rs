//! A hook under several patterns hears each event once.

use std::sync::Arc;

use amplifier_core::{EventData, Hook, HookError, HookResult};

use super::register::BundleHook;
use crate::patterns::Patterns;

/// A hook as it is registered under one of its patterns.
pub(super) struct Hearing {
    hook: Arc<BundleHook>,
    /// The patterns under which it hears the event already.
    earlier: Option<Patterns>,
}

impl Hearing {
    /// The hook under each of its patterns, but for those that others among them contain.
    pub(super) fn all<'a>(patterns: &'a [String], hook: &Arc<BundleHook>) -> Vec<(&'a str, Self)> {
        let is_wide = |pattern: &String| pattern.contains('*');
        let heard = patterns.iter().enumerate().filter(|(at, pattern)| {
            let others = patterns.iter().enumerate().filter(|(other, one)| other < at || other > at && is_wide(one));
            // What is no pattern is told where it is registered.
            let is_heard = || Patterns::new(others.map(|(_, other)| other)).is_ok_and(|others| others.hears(pattern));
            is_wide(pattern) || !is_heard()
        });
        let hearing = heard.map(|(at, pattern)| {
            let earlier: Vec<_> = patterns[..at].iter().filter(|other| is_wide(pattern) && is_wide(other)).collect();
            let earlier = if earlier.is_empty() { None } else { Patterns::new(earlier).ok() };
            (pattern.as_str(), Self { hook: hook.clone(), earlier })
        });
        hearing.collect()
    }
}

impl Hook for Hearing {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        if self.earlier.as_ref().is_some_and(|earlier| earlier.hears(event)) {
            return Ok(HookResult::proceed());
        }
        self.hook.handle(event, data).await
    }
}
