//! A terminal that remembers what it showed.

use std::sync::{Arc, Mutex};

use amplifier_agent::SessionObserver;
use amplifier_agent::provider::TokenUsage;
use amplifier_core::ToolCall;

/// The display of a user. Cheap to clone; clones share the lines.
#[derive(Clone, Default)]
pub(crate) struct Screen {
    lines: Arc<Mutex<Vec<String>>>,
    notes: Arc<Mutex<Vec<String>>>,
    pieces: Arc<Mutex<Vec<String>>>,
}

impl Screen {
    /// The lines so far; streamed text is one line.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    /// The pieces in which text came.
    pub(crate) fn pieces(&self) -> Vec<String> {
        self.pieces.lock().unwrap().clone()
    }
}

impl SessionObserver for Screen {
    fn text(&self, text: &str) {
        self.pieces.lock().unwrap().push(text.to_owned());
        let mut lines = self.lines.lock().unwrap();
        match lines.last_mut().filter(|last| last.starts_with("text ")) {
            Some(last) => last.push_str(text),
            None => lines.push(format!("text {text}")),
        }
    }

    fn response_ended(&self, _usage: &TokenUsage) {
        // Ends the line of text, so that two answers in a row are two lines.
        self.lines.lock().unwrap().push(String::new());
    }

    fn tool_started(&self, call: &ToolCall) {
        self.lines.lock().unwrap().push(format!("begins {} {}", call.id, call.input));
    }

    fn tool_ended(&self, call: &ToolCall, success: bool, output: &str) {
        self.lines.lock().unwrap().push(format!("ended {} {success}: {output}", call.id));
    }

    fn note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}
