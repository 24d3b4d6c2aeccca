//! Errors of a centre.

use std::time::Duration;

/// A failure of the connection to a centre, or a refusal by it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// No server can be reached.
    #[error("cannot connect to the centre `{servers}`: {cause}")]
    Unreachable {
        /// The addresses.
        servers: String,
        /// The cause.
        cause: String,
    },
    /// The server is too old.
    #[error(
        "the server at the centre has version {found}; expected {least} or newer, because older ones can lose records"
    )]
    OldServer {
        /// The version of the server.
        found: String,
        /// The oldest supported version.
        least: &'static str,
    },
    /// The identity is unusable.
    #[error("the identity `{name}` is unusable: {cause}")]
    Identity {
        /// The name.
        name: String,
        /// The cause.
        cause: String,
    },
    /// Nothing serves a request: no stream, no election winner yet, or no service.
    #[error(
        "nothing at the centre serves `{subject}`; the stream or service is missing, or its server is not ready yet"
    )]
    NoResponders {
        /// The subject.
        subject: String,
    },
    /// No reply. A missing permission looks the same.
    #[error("no reply from the centre to `{subject}` within {limit:?}{}", after_semicolon(.server_error.as_deref()))]
    TimedOut {
        /// The subject.
        subject: String,
        /// The time limit.
        limit: Duration,
        /// The server's last error, which usually names a missing permission.
        server_error: Option<String>,
    },
    /// Another message of the subject was stored first.
    #[error("another message was stored first at `{subject}`")]
    Conflict {
        /// The subject.
        subject: String,
    },
    /// The server refused a request.
    #[error("the centre refused `{subject}`: {description} (code {code})")]
    Refused {
        /// The subject.
        subject: String,
        /// The server's error code.
        code: u64,
        /// The server's description.
        description: String,
    },
    /// A message of the centre is invalid.
    #[error("invalid message of the centre at `{subject}`: {cause}")]
    Invalid {
        /// The subject.
        subject: String,
        /// The cause.
        cause: String,
    },
}

fn after_semicolon(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("; the server says: {text}"))
}
