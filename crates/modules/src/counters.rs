//! What expressions know about a session: how often something has happened in it, which turn it is at, and how long it lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use amplifier_core::{Clock, EventData, Hook, HookError, HookRegistry, HookResult, InvalidEventName, OnError};

use crate::builtin::{SessionStates, SessionTree, lock};

/// The name of the hooks that count.
pub const COUNTER: &str = "session-count";

/// The event that begins a session, and the one that ends it.
pub(crate) const BEGIN: &str = "session:start";
const END: &str = "session:end";
/// The event that begins a turn.
pub(crate) const TURN: &str = "prompt:submit";

/// So many tools of a session are told apart; all others are counted together, so that a name that a model makes up is never a name that was not counted.
const MAX_TOOLS: usize = 256;

/// What has happened in each session, as far as an expression asks about it.
#[derive(Debug, Default)]
pub(crate) struct EventCounters {
    /// The events that expressions ask about.
    // Std locks: nothing awaits while they are held.
    tracked: Mutex<BTreeSet<String>>,
    /// The events that are counted.
    counted: Mutex<BTreeSet<String>>,
    /// Whether sessions that end are forgotten.
    has_forgetter: AtomicBool,
    tallies: SessionTree<Tally>,
    /// The turns are those of a session alone: what a sub-agent is told is not what a person says.
    turns: SessionStates<u64>,
}

/// What has happened in a session and its sub-agents.
#[derive(Debug, Default)]
struct Tally {
    since: Option<SystemTime>,
    events: BTreeMap<String, Count>,
}

#[derive(Debug, Default)]
struct Count {
    all: u64,
    tools: BTreeMap<String, u64>,
    /// Of tools beyond those that are told apart.
    other_tools: u64,
}

impl EventCounters {
    /// Has events counted, once [`register`](Self::register) is called.
    pub(crate) fn track<'a>(&self, events: impl IntoIterator<Item = &'a String>) {
        lock(&self.tracked).extend(events.into_iter().cloned());
    }

    /// The events that are to be counted.
    pub(crate) fn tracked(&self) -> Vec<String> {
        lock(&self.tracked).iter().cloned().collect()
    }

    /// Counts what is wanted, and is not counted by these hooks already. It goes on for as long as there are these hooks: another version of a bundle goes
    /// on from what has happened so far.
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
                // A gate, though it has nothing to say, and the first: observers come after those who see a count with this event in it.
                let counter = Counter { counts: self.clone(), clock: clock.clone() };
                let hook = hooks.hook(event).named(COUNTER).priority(i64::MIN).on_error(OnError::Deny);
                hook.handler(counter)?;
                counted.insert(event.to_owned());
            }
        }
        // After all others, which may still ask.
        let has_forgetter = registered.iter().any(|hook| &*hook.event == END && hook.priority == i64::MAX);
        if !self.has_forgetter.load(Ordering::Relaxed) || !has_forgetter {
            hooks.hook(END).named(COUNTER).observer().priority(i64::MAX).handler(Forgetter(self.clone()))?;
            self.has_forgetter.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Counts an event that happens at that time.
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

    /// Forgets a session that has ended.
    pub(crate) fn forget(&self, data: &EventData) {
        self.tallies.end(data);
        self.turns.forget(data);
    }

    /// Whether an event is counted at all.
    pub(crate) fn is_counted(&self, event: &str) -> bool {
        lock(&self.counted).contains(event)
    }

    /// How often an event has happened in the session of this one, with whatever tool.
    pub(crate) fn count(&self, data: &EventData, event: &str) -> u64 {
        self.tallies.with(data, |tally| tally.events.get(event).map_or(0, |count| count.all))
    }

    /// How often an event has happened in the session of this one with a tool.
    pub(crate) fn tool_count(&self, data: &EventData, event: &str, tool: &str) -> u64 {
        self.tallies.with(data, |tally| {
            tally.events.get(event).map_or(0, |count| count.tools.get(tool).copied().unwrap_or(count.other_tools))
        })
    }

    /// Which turn the session of this event is at, counted from 1; 0 before the first.
    pub(crate) fn turn(&self, data: &EventData) -> u64 {
        self.turns.with(data, |turns| *turns)
    }

    /// How many whole minutes the session of this event lasts.
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
