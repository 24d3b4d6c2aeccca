//! A screen that a test can read.

use std::sync::Arc;

use crate::ports::PortError;
use crate::ports::display::{Display, DisplayMessage};
use crate::sync::{Mutex, lock};

/// A display that keeps what it was shown. A handle: clones share the same messages.
#[derive(Clone, Debug, Default)]
pub struct CollectingDisplay {
    messages: Arc<Mutex<Vec<DisplayMessage>>>,
    outputs: Arc<Mutex<Vec<(String, String)>>>,
}

impl CollectingDisplay {
    /// A display that was shown nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The messages so far.
    pub fn messages(&self) -> Vec<DisplayMessage> {
        lock(&self.messages).clone()
    }

    /// What hooks printed so far, each with its source.
    pub fn outputs(&self) -> Vec<(String, String)> {
        lock(&self.outputs).clone()
    }
}

impl Display for CollectingDisplay {
    async fn show_message(&self, message: &DisplayMessage) -> Result<(), PortError> {
        lock(&self.messages).push(message.clone());
        Ok(())
    }

    async fn show_output(&self, source: &str, output: &str) -> Result<(), PortError> {
        lock(&self.outputs).push((source.to_owned(), output.to_owned()));
        Ok(())
    }
}
