#![doc = include_str!("../README.md")]

pub mod access;
mod answers;
mod api;
pub mod api_types;
pub mod client;
mod fair_semaphore;
pub mod feed;
pub mod hub;
mod link_listener;
mod push;
mod redact;
mod server;

use amplifier_audit::Log;
pub use api::description;
pub use hub::{Command, ConnectedSession, Hub, HubError, HubEvent, SubmittedAnswer};
pub use link_listener::{LinkListener, LinkListenerError};
pub use push::{NotifyError, Webhook, WebhookService};
pub use server::{RunningServer, ServeError, Server, ServerOptions, TlsFiles};

/// The parts of a running server. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct App {
    /// Connected sessions and their open approval requests.
    pub hub: Hub,
    /// The audit log.
    pub feed: feed::Feed,
    /// Tokens, signed-in browsers and roles.
    pub access: access::Access,
    /// The log for the server's own records.
    pub log: Log,
}
