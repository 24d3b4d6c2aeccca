//! Messages of this crate for the user.

use std::fmt;
use std::sync::Arc;

use amplifier_core::Level;

/// One message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The importance.
    pub level: Level,
    /// The part of the program; none for a remark about the session.
    pub source: Option<&'static str>,
    /// The text.
    pub text: String,
}

/// A receiver of messages. It is called on any thread and must not block.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(Notice) + Send + Sync>);

impl Notices {
    /// A receiver that calls a function.
    pub fn new(receive: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// A receiver that ignores all messages.
    pub fn none() -> Self {
        Self::new(|_| ())
    }

    /// Sends a remark about the session.
    pub fn note(&self, text: impl Into<String>) {
        (self.0)(Notice { level: Level::Info, source: None, text: text.into() });
    }

    /// Sends a message about a part of the program.
    pub fn message(&self, level: Level, source: &'static str, text: impl Into<String>) {
        (self.0)(Notice { level, source: Some(source), text: text.into() });
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
