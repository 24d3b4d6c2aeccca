//! Receivers of notifications about approval requests, from configuration.

use std::collections::BTreeMap;
use std::fmt;

use amplifier_modules::transport::expand;
use serde::Deserialize;

use crate::error::{Error, Result};

/// A receiver of notifications. `${NAME}` in the URL and in headers stands for an environment variable.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotifyConfig {
    /// The form of the messages: `ntfy`, `slack`, `telegram` or `json`.
    pub service: String,
    /// The URL.
    pub url: String,
    /// The user who receives the links; the server's owner by default.
    pub name: Option<String>,
    /// The chat of a Telegram bot.
    pub chat: Option<String>,
    /// Additional headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl NotifyConfig {
    /// Replaces environment variables by their values.
    ///
    /// # Errors
    /// If a variable is not set.
    pub fn expand(&self) -> Result<Self> {
        let named = |key: &str, value: &str| -> Result<String> {
            expand(value).map_err(|why| Error::Refused(format!("`{key}` of the notification {self} {why}")))
        };
        let headers = self.headers.iter().map(|(name, value)| Ok((name.clone(), named(name, value)?)));
        Ok(Self { url: named("url", &self.url)?, headers: headers.collect::<Result<_>>()?, ..self.clone() })
    }
}

/// The service and the recipient. The URL and the headers may contain secrets.
impl fmt::Display for NotifyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.service)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " of `{name}`"))
    }
}

impl fmt::Debug for NotifyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
