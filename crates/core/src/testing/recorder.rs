//! A hook that records events.

use std::sync::Arc;

use crate::event::{EventData, InvalidEventName};
use crate::registry::{Hook, HookRegistry, Registration};
use crate::result::{HookError, HookResult};
use crate::sync::{Mutex, lock};

/// An observer that stores every event. A handle: clones share the same events.
///
/// ```
/// use amplifier_core::{testing::EventRecorder, HookRegistry, Map, ToolPre, TOOL_PRE};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let hooks = HookRegistry::new();
/// let recorder = EventRecorder::watch(&hooks);
/// hooks.emit(TOOL_PRE, ToolPre::new("Bash", Map::new())).await;
/// assert_eq!(recorder.names(), ["tool:pre"]);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventRecorder {
    events: Arc<Mutex<Vec<(String, EventData)>>>,
}

impl EventRecorder {
    /// Creates a recorder without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a recorder of every event of a registry, after the gates.
    pub fn watch(hooks: &HookRegistry) -> Self {
        let recorder = Self::new();
        // `*` is always a valid pattern.
        let _ = recorder.register(hooks, "*");
        recorder
    }

    /// Also records the events of this name or pattern.
    ///
    /// # Errors
    /// If the name is invalid.
    pub fn register(&self, hooks: &HookRegistry, event: &str) -> Result<Registration, InvalidEventName> {
        hooks.hook(event).named("event-recorder").observer().handler(self.clone())
    }

    /// Returns every event so far, with its data.
    pub fn events(&self) -> Vec<(String, EventData)> {
        lock(&self.events).clone()
    }

    /// Returns the names of the events so far.
    pub fn names(&self) -> Vec<String> {
        lock(&self.events).iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Hook for EventRecorder {
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        lock(&self.events).push((event.to_owned(), data.clone()));
        Ok(HookResult::proceed())
    }
}
