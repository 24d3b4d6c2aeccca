//! The timestamp of an event.

use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::Value;

/// The time of an event. Its text is made on first use.
#[derive(Debug)]
pub(super) struct Stamp {
    at: SystemTime,
    /// `true` if the data's own timestamp is shown instead.
    pub(super) hidden: bool,
    text: OnceLock<Box<Value>>,
}

impl Stamp {
    pub(super) fn new(at: SystemTime) -> Self {
        Self { at, hidden: false, text: OnceLock::new() }
    }

    pub(super) fn value(&self) -> &Value {
        self.text.get_or_init(|| Box::new(Value::String(rfc3339(self.at))))
    }
}

impl Clone for Stamp {
    fn clone(&self) -> Self {
        Self { at: self.at, hidden: self.hidden, text: OnceLock::new() }
    }
}

/// Formats a time as in events: UTC, RFC 3339, microseconds.
pub fn rfc3339(at: SystemTime) -> String {
    // Times outside the years -9999 to 9999 have no such text; the nearest limit is used.
    let at = jiff::Timestamp::try_from(at).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.6}")
}

/// Returns `true` if the text is a timestamp that may replace the kernel's: UTC, RFC 3339.
pub fn is_timestamp(text: &str) -> bool {
    text.ends_with(['Z', 'z']) && text.parse::<jiff::Timestamp>().is_ok()
}
