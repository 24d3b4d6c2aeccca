#![doc = include_str!("../README.md")]

pub mod access;
mod api;
pub mod client;
pub mod feed;
pub mod hub;
mod late_answers;
mod limits;
mod listener;
mod redact;
mod server;
pub mod wire;

use amplifier_audit::Log;
pub use api::description;
pub use hub::{Command, ConnectedSession, Hub, HubError, HubEvent, SubmittedAnswer};
pub use listener::{LinkListener, LinkListenerError};
pub use server::{RunningServer, ServeError, Server, ServerOptions, TlsFiles};

/// What every part of the server works with. A handle: clones share the same state.
#[derive(Clone)]
pub struct App {
    /// Who is connected, and what is asked.
    pub hub: Hub,
    /// What is recorded.
    pub feed: feed::Feed,
    /// Who may do what.
    pub access: access::Access,
    /// What the server records itself.
    pub log: Log,
}
