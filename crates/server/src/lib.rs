#![doc = include_str!("../README.md")]

pub mod access;
mod api;
pub mod client;
pub mod feed;
pub mod hub;
mod late;
mod listener;
mod masked;
mod server;
pub mod trial;
mod turns;
pub mod wire;

use std::sync::Arc;

use amplifier_audit::Log;
pub use api::description;
pub use hub::{Answering, Change, Command, Connected, Hub, Refused};
pub use listener::{Door, DoorError};
pub use server::{Running, ServeError, Server, ServerOptions, TlsFiles};

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
    /// What the command provides.
    pub host: Arc<dyn Host>,
}

/// A future that can be kept in a box.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the program that runs the server provides: it knows how sessions and bundles are configured.
pub trait Host: Send + Sync + 'static {
    /// Starts a session inside the server, in that folder (its own if none is given), and gives its id. It connects to the hub like
    /// any other session, and lives until it is told to end.
    ///
    /// # Errors
    /// If it cannot be started; in words for the person who asked for it.
    fn start_session(
        &self,
        hub: Hub,
        workspace: Option<String>,
        prompt: Option<String>,
    ) -> BoxFuture<'_, Result<String, String>>;

    /// Runs the tests of a bundle, given as text or as the one of the server's folder: what `amplifier hooks test --json` prints.
    ///
    /// # Errors
    /// If the bundle cannot be read.
    fn test_bundle(&self, bundle: Option<String>) -> BoxFuture<'_, Result<serde_json::Value, String>>;

    /// Says what would come of an event, hook by hook: what `amplifier hooks try --json` prints.
    ///
    /// # Errors
    /// If it is no event, or a bundle cannot be read.
    fn try_event(&self, trial: trial::Trial) -> BoxFuture<'_, Result<trial::Tried, String>>;
}
