//! Stopping an agent, in two steps.

use std::sync::Arc;

use amplifier_core::words;
use tokio::sync::watch;

words! {
    /// The level of a request to stop an agent.
    #[derive(Default, PartialOrd, Ord)]
    pub enum CancelLevel("level") {
        /// No stop is requested.
        #[default]
        No = "no",
        /// The running tool finishes; nothing new starts.
        Graceful = "graceful",
        /// Everything stops now.
        Immediate = "immediate",
    }
}

/// Stops the turn of a session and of all its sub-agents. Cheap to clone; clones share state.
#[derive(Clone, Debug)]
pub struct Cancel {
    level: Arc<watch::Sender<CancelLevel>>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self { level: Arc::new(watch::Sender::new(CancelLevel::No)) }
    }
}

impl Cancel {
    /// Requests a stop: graceful at first, immediate on the second request. Returns the requested level.
    pub fn request(&self) -> CancelLevel {
        let mut requested = CancelLevel::Graceful;
        self.level.send_modify(|level| {
            if *level != CancelLevel::No {
                requested = CancelLevel::Immediate;
            }
            *level = requested;
        });
        requested
    }

    /// Returns the requested level.
    pub fn level(&self) -> CancelLevel {
        *self.level.borrow()
    }

    pub(crate) fn clear(&self) {
        self.level.send_replace(CancelLevel::No);
    }

    /// Returns as soon as a stop of at least this level is requested.
    pub async fn reached(&self, wanted: CancelLevel) {
        let mut level = self.level.subscribe();
        // The sender lives as long as this handle, so waiting cannot fail.
        let _ = level.wait_for(|level| *level >= wanted).await;
    }
}
