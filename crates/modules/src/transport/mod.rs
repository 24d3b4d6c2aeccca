//! Hooks in any language: a command per event, a program that is kept alive, a server, or (with the feature `wasm`) a WebAssembly component.
//!
//! All speak the one protocol of `docs/reference/protocol.md`. Whatever is at the other end cannot hurt the agent: every call has a limit of
//! time and of size, and every failure becomes a [`HookError`], so that the hook's `on_error` decides.

mod command;
mod expand;
mod grant;
mod http;
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
pub(crate) use post::Post;
pub use program::Program;
pub use protocol::{HookRequest, PROTOCOL};
#[cfg(feature = "wasm")]
pub use wasm::{WasmHook, WasmOptions};
pub use worker::{WorkerHook, WorkerOptions};

/// How long one call may take, if nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes an answer may have, if nothing else is said.
const MAX_OUTPUT: usize = 1024 * 1024;

/// How many characters of stderr are a reason, or part of the transcript.
const MAX_OUTPUT_CHARS: usize = 10_240;

/// Why a hook cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// There is nothing to run.
    #[error("hook `{hook}` has no command; name a program")]
    NoCommand {
        /// The hook.
        hook: String,
    },
    /// A value names variables in a way that cannot be used.
    #[error("`{place}` of hook `{hook}` {why}")]
    Expansion {
        /// The hook.
        hook: String,
        /// The header or the variable whose value it is.
        place: String,
        /// What is wrong.
        why: ExpansionError,
    },
    /// A header that cannot be sent.
    #[error(
        "header `{header}` of hook `{hook}` cannot be sent; its name or its value has characters that headers do not have"
    )]
    Header {
        /// The hook.
        hook: String,
        /// Its name; the value may be a secret.
        header: String,
    },
    /// An address that is none.
    #[error("the address of hook `{hook}` is not usable: {why}; write `https://HOST/PATH`")]
    Address {
        /// The hook.
        hook: String,
        /// What is wrong with it.
        why: String,
    },
    /// This machine cannot make secure connections.
    #[error("hook `{hook}` cannot make connections")]
    Client {
        /// The hook.
        hook: String,
        /// What is wrong.
        source: reqwest::Error,
    },
    /// A file that is no component, or none that is a hook.
    #[error("the component `{path}` of hook `{hook}` is not usable: {why}")]
    Component {
        /// The hook.
        hook: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A limit of memory that cannot be kept.
    #[error("the memory of hook `{hook}` has no usable limit; choose 1 to {most} MiB")]
    Memory {
        /// The hook.
        hook: String,
        /// How many MiB are possible.
        most: usize,
    },
    /// A folder is granted that is not there.
    #[error("`{path}`, which is granted to hook `{hook}`, is no folder; name one that is there")]
    Folder {
        /// The hook.
        hook: String,
        /// The folder.
        path: PathBuf,
    },
}

/// The runtime that waits for processes and connections.
fn runtime() -> Result<Handle, HookError> {
    Handle::try_current()
        .map_err(|_| HookError::failed("commands and servers can be asked within a tokio runtime only"))
}

/// The first characters of a text that others wrote, without what could steer a terminal.
pub(crate) fn head(text: &[u8], most: usize) -> String {
    let mut head: String = String::from_utf8_lossy(text).chars().filter(|c| is_readable(*c)).take(most).collect();
    head.truncate(head.trim_end().len());
    head
}

/// The last characters of it.
fn tail(text: &[u8], most: usize) -> String {
    // No character has more than four bytes.
    let from = text.len().saturating_sub(most.saturating_mul(4));
    let readable = String::from_utf8_lossy(&text[from..]);
    let readable: Vec<char> = readable.trim_end().chars().filter(|c| is_readable(*c)).collect();
    readable[readable.len().saturating_sub(most)..].iter().collect()
}
