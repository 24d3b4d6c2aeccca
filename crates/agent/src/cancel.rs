//! Stopping an agent, in two steps.

use std::sync::Arc;

use amplifier_core::words;
use tokio::sync::watch;

words! {
    /// How an agent is to stop.
    #[derive(Default, PartialOrd, Ord)]
    pub enum CancelLevel("level") {
        /// It is not to stop.
        #[default]
        No = "no",
        /// The running tool finishes; nothing new is begun.
        Graceful = "graceful",
        /// Everything stops now.
        Immediate = "immediate",
    }
}

/// Stops the turn of a session and of all its sub-agents. A handle: clones share the same state.
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
    /// Asks to stop: gracefully at first, at once when asked again. Says what was asked for.
    pub fn request(&self) -> CancelLevel {
        let mut asked = CancelLevel::Graceful;
        self.level.send_modify(|level| {
            if *level != CancelLevel::No {
                asked = CancelLevel::Immediate;
            }
            *level = asked;
        });
        asked
    }

    /// How the agent is to stop.
    pub fn level(&self) -> CancelLevel {
        *self.level.borrow()
    }

    /// Goes on as if nobody had asked.
    pub(crate) fn clear(&self) {
        self.level.send_replace(CancelLevel::No);
    }

    /// Returns when someone has asked for this much, at least.
    pub async fn reached(&self, wanted: CancelLevel) {
        let mut level = self.level.subscribe();
        // The sender lives as long as this handle.
        let _ = level.wait_for(|level| *level >= wanted).await;
    }
}
