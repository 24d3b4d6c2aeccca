//! Event counts, turns and durations of sessions, for expressions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use amplifier_core::{Clock, EventData, Hook, HookError, HookRegistry, HookResult, InvalidEventName, OnError};

use crate::builtin::{PerSession, SessionTree, lock};

/// Name of the hooks that count events.
pub const COUNTER: &str = "session-count";

pub(crate) const BEGIN: &str = "session:start";
const END: &str = "session:end";
pub(crate) const TURN: &str = "prompt:submit";

/// Number of tools with their own count per session. All others share one, so that a tool name invented by a model never has a count of zero.
const MAX_TOOLS: usize = 256;

/// Counts of the events that expressions use, per session.
#[derive(Debug, Default)]
pub(crate) struct EventCounters {
    /// Events that expressions use.
    // Std locks: nothing awaits while they are held.
    tracked: Mutex<BTreeSet<String>>,
    /// Events that registered hooks count.
    counted: Mutex<BTreeSet<String>>,
    /// `true` once a hook drops the counts of sessions that end.
    has_forgetter: AtomicBool,
    /// Per session, including its sub-agents.
    tallies: SessionTree<Tally>,
    /// Turns of a session alone: the prompt of a sub-agent does not come from the user.
    turns: PerSession<u64>,
}

#[derive(Debug, Default)]
struct Tally {
    since: Option<SystemTime>,
    events: BTreeMap<String, Count>,
}

#[derive(Debug, Default)]
struct Count {
    all: u64,
    tools: BTreeMap<String, u64>,
    /// Calls of all tools beyond [`MAX_TOOLS`].
    other_tools: u64,
}

impl EventCounters {
    /// Adds events, which are counted from the next [`register`](Self::register) on.
    pub(crate) fn track<'a>(&self, events: impl IntoIterator<Item = &'a String>) {
        lock(&self.tracked).extend(events.into_iter().cloned());
    }

    pub(crate) fn tracked(&self) -> Vec<String> {
        lock(&self.tracked).iter().cloned().collect()
    }

    /// Registers counting hooks for tracked events that `hooks` does not count yet. They stay registered, so another version of a bundle continues
    /// from the current counts.
    pub(crate) fn register(
        self: &Arc<Self>,
        clock: &Arc<dyn Clock>,
        hooks: &HookRegistry,
    ) -> Result<(), InvalidEventName> {
        let tracked = lock(&self.tracked).clone();
        if tracked.is_empty() {
            return Ok(());
        }
        let registered: Vec<_> = hooks.list_handlers().into_iter().filter(|hook| &*hook.name == COUNTER).collect();
        let mut counted = lock(&self.counted);
        let is_counted = |event: &str| registered.iter().any(|hook| *hook.event == *event && hook.priority == i64::MIN);
        for event in tracked.iter().map(String::as_str).chain([BEGIN]) {
            if !counted.contains(event) || !is_counted(event) {
                // A gate, and the first hook: later hooks must see a count that includes this event.
                let counter = Counter { counts: self.clone(), clock: clock.clone() };
                let hook = hooks.hook(event).named(COUNTER).priority(i64::MIN).on_error(OnError::Deny);
                hook.handler(counter)?;
                counted.insert(event.to_owned());
            }
        }
        // Last, because other hooks may still use the counts.
        let has_forgetter = registered.iter().any(|hook| &*hook.event == END && hook.priority == i64::MAX);
        if !self.has_forgetter.load(Ordering::Relaxed) || !has_forgetter {
            hooks.hook(END).named(COUNTER).observer().priority(i64::MAX).handler(Forgetter(self.clone()))?;
            self.has_forgetter.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn record(&self, event: &str, data: &EventData, now: SystemTime) {
        if event == BEGIN {
            self.tallies.begin(data);
        }
        if event == TURN {
            self.turns.with(data, |turns| *turns = turns.saturating_add(1));
        }
        let tool = data.text("tool_name");
        self.tallies.with(data, |tally| {
            tally.since.get_or_insert(now);
            let count = tally.events.entry(event.to_owned()).or_default();
            count.all = count.all.saturating_add(1);
            let Some(tool) = tool else { return };
            let is_full = count.tools.len() >= MAX_TOOLS;
            let tool_count = match count.tools.get_mut(tool) {
                Some(known) => known,
                None if is_full => &mut count.other_tools,
                None => count.tools.entry(tool.to_owned()).or_default(),
            };
            *tool_count = tool_count.saturating_add(1);
        });
    }

    pub(crate) fn forget(&self, data: &EventData) {
        self.tallies.end(data);
        self.turns.forget(data);
    }

    pub(crate) fn is_counted(&self, event: &str) -> bool {
        lock(&self.counted).contains(event)
    }

    /// Returns the number of times an event has happened in the session of `data`, with any tool.
    pub(crate) fn count(&self, data: &EventData, event: &str) -> u64 {
        self.tallies.with(data, |tally| tally.events.get(event).map_or(0, |count| count.all))
    }

    /// Returns the number of times an event has happened in the session of `data` with a tool.
    pub(crate) fn tool_count(&self, data: &EventData, event: &str, tool: &str) -> u64 {
        self.tallies.with(data, |tally| {
            tally.events.get(event).map_or(0, |count| count.tools.get(tool).copied().unwrap_or(count.other_tools))
        })
    }

    /// Returns the turn of the session, counted from 1; 0 before the first.
    pub(crate) fn turn(&self, data: &EventData) -> u64 {
        self.turns.with(data, |turns| *turns)
    }

    /// Returns the number of whole minutes since the session began.
    pub(crate) fn minutes(&self, data: &EventData, now: SystemTime) -> u64 {
        let since = self.tallies.with(data, |tally| tally.since);
        since.and_then(|since| now.duration_since(since).ok()).map_or(0, |lasts| lasts.as_secs() / 60)
    }
}

struct Counter {
    counts: Arc<EventCounters>,
    clock: Arc<dyn Clock>,
}

impl Hook for Counter {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        self.counts.record(event, data, self.clock.wall());
        Ok(HookResult::proceed())
    }
}

struct Forgetter(Arc<EventCounters>);

impl Hook for Forgetter {
    async fn handle(&self, _event: &str, data: &EventData) -> Result<HookResult, HookError> {
        self.0.forget(data);
        Ok(HookResult::proceed())
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use amplifier_core::data;

    use super::{EventCounters, MAX_TOOLS};

    #[test]
    fn tools_beyond_those_that_are_told_apart_count_together() {
        let counts = EventCounters::default();
        for number in 0..MAX_TOOLS + 3 {
            let data = data! { "session_id": "s", "tool_name": format!("made-up-{number}") };
            counts.record("tool:pre", &data, SystemTime::UNIX_EPOCH);
        }
        let data = data! { "session_id": "s" };
        let of = |tool: &str| counts.tool_count(&data, "tool:pre", tool);
        assert_eq!((of("made-up-0"), of("made-up-258"), of("never-used")), (1, 3, 3));
        assert_eq!(counts.count(&data, "tool:pre"), 259);
    }
}
