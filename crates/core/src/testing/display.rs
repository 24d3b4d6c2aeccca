//! A display that tests can read.

use std::sync::Arc;

use crate::ports::PortError;
use crate::ports::display::{Display, DisplayMessage};
use crate::sync::{Mutex, lock};

/// A display that collects its messages. A handle: clones share the same messages.
#[derive(Clone, Debug, Default)]
pub struct CollectingDisplay {
    messages: Arc<Mutex<Vec<DisplayMessage>>>,
    outputs: Arc<Mutex<Vec<(String, String)>>>,
}

impl CollectingDisplay {
    /// Creates a display without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the messages so far.
    pub fn messages(&self) -> Vec<DisplayMessage> {
        lock(&self.messages).clone()
    }

    /// Returns the output of hooks so far, each with its source.
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
