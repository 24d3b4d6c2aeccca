//! Hooks in any language: a command per event, a long-running worker, a server, a service of the fleet, or (with the feature `wasm`) a WebAssembly
//! component.
//!
//! All use the protocol of `docs/reference/protocol.md`. A faulty peer cannot harm the agent: every call has limits of time and size, and every failure becomes
//! a [`HookError`], to which the hook's `on_error` applies.

mod command;
mod expand;
mod grant;
mod http;
mod nats;
mod post;
mod program;
mod protocol;
#[cfg(feature = "wasm")]
mod wasm;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use amplifier_core::HookError;
use amplifier_core::text::is_readable;
use tokio::runtime::Handle;

pub use command::{CommandHook, CommandOptions};
pub use expand::{ExpansionError, expand};
pub use grant::{FolderGrant, Grant};
pub(crate) use http::shown_address;
pub use http::{HttpHook, HttpOptions};
pub use nats::{NatsHook, NatsOptions, RemoteHooks};
pub(crate) use post::Post;
pub use program::Program;
pub use protocol::{HookRequest, PROTOCOL};
#[cfg(feature = "wasm")]
pub use wasm::{WasmHook, WasmOptions};
pub use worker::{WorkerHook, WorkerOptions};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Default size limit of an answer, in bytes.
const MAX_OUTPUT: usize = 1024 * 1024;

/// Number of characters of stderr in a reason or in the transcript.
const MAX_OUTPUT_CHARS: usize = 10_240;

/// An error while a hook is created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// A hook without a command.
    #[error("hook `{hook}` has no command; name a program")]
    NoCommand {
        /// Name of the hook.
        hook: String,
    },
    /// A value with an invalid environment variable.
    #[error("`{place}` of hook `{hook}` {why}")]
    Expansion {
        /// Name of the hook.
        hook: String,
        /// The header or variable with the value.
        place: String,
        /// The cause.
        why: ExpansionError,
    },
    /// A header that cannot be sent.
    #[error("header `{header}` of hook `{hook}` cannot be sent: invalid characters in the name or the value")]
    Header {
        /// Name of the hook.
        hook: String,
        /// Name of the header; the value may be a secret.
        header: String,
    },
    /// An invalid address.
    #[error("invalid address of hook `{hook}`: {why}; expected `https://HOST/PATH`")]
    Address {
        /// Name of the hook.
        hook: String,
        /// The cause.
        why: String,
    },
    /// An invalid name of a service.
    #[error("invalid service `{service}` of hook `{hook}`; expected 1 to 128 letters, digits, `-` and `_`")]
    Service {
        /// Name of the hook.
        hook: String,
        /// The service.
        service: String,
    },
    /// Connections are not possible on this machine.
    #[error("hook `{hook}` cannot make connections")]
    Client {
        /// Name of the hook.
        hook: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// A file that is not a hook component.
    #[error("invalid WebAssembly component `{path}` of hook `{hook}`: {why}")]
    Component {
        /// Name of the hook.
        hook: String,
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// A memory limit out of range.
    #[error("invalid memory limit of hook `{hook}`; expected 1 to {most} MiB")]
    Memory {
        /// Name of the hook.
        hook: String,
        /// Maximum in MiB.
        most: usize,
    },
    /// A granted folder that does not exist.
    #[error("granted folder `{path}` of hook `{hook}` not found; name an existing folder")]
    Folder {
        /// Name of the hook.
        hook: String,
        /// The folder.
        path: PathBuf,
    },
}

fn runtime() -> Result<Handle, HookError> {
    Handle::try_current().map_err(|_| HookError::failed("commands and servers need a tokio runtime"))
}

/// Returns the first characters of a foreign text, without terminal control characters.
pub(crate) fn head(text: &[u8], most: usize) -> String {
    let mut head: String = String::from_utf8_lossy(text).chars().filter(|c| is_readable(*c)).take(most).collect();
    head.truncate(head.trim_end().len());
    head
}

/// Returns the last characters of a foreign text, without terminal control characters.
fn tail(text: &[u8], most: usize) -> String {
    // No character has more than four bytes.
    let from = text.len().saturating_sub(most.saturating_mul(4));
    let readable = String::from_utf8_lossy(&text[from..]);
    let readable: Vec<char> = readable.trim_end().chars().filter(|c| is_readable(*c)).collect();
    readable[readable.len().saturating_sub(most)..].iter().collect()
}
