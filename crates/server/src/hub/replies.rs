//! Replies of sessions to requests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// Expected replies, by reference.
pub(super) struct Replies<T> {
    // A std lock: nothing awaits while it is held.
    pending: Mutex<HashMap<u64, PendingReply<T>>>,
}

struct PendingReply<T> {
    connection: u64,
    sender: oneshot::Sender<T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoReply {
    /// The session does not read, so the request was not sent.
    NotSent,
    Disconnected,
    TimedOut,
}

impl<T> Default for Replies<T> {
    fn default() -> Self {
        Self { pending: Mutex::default() }
    }
}

impl<T> Replies<T> {
    /// Sends a request to a session and waits for the reply.
    ///
    /// # Cancel safety
    /// When the future is dropped, the session may have received the request; its reply is discarded.
    pub(super) async fn ask<M>(
        &self,
        link: &mpsc::Sender<M>,
        connection: u64,
        reference: u64,
        message: M,
        limit: Duration,
    ) -> Result<T, NoReply> {
        let (sender, receiver) = oneshot::channel();
        self.pending().insert(reference, PendingReply { connection, sender });
        // Removed on every exit, also when the future is dropped.
        let _remove = RemoveGuard(|| drop(self.pending().remove(&reference)));
        link.try_send(message).map_err(|_| NoReply::NotSent)?;
        match tokio::time::timeout(limit, receiver).await {
            Ok(reply) => reply.map_err(|_| NoReply::Disconnected),
            Err(_) => Err(NoReply::TimedOut),
        }
    }

    /// Delivers a reply. Only the connection that received the request can reply.
    pub(super) fn complete(&self, connection: u64, reference: u64, reply: T) {
        let mut pending = self.pending();
        if pending.get(&reference).is_some_and(|expected| expected.connection == connection) {
            // The caller may be gone.
            drop(pending.remove(&reference).map(|PendingReply { sender, .. }| sender.send(reply)));
        }
    }

    /// Drops the expected replies of a connection; their callers see a closed channel.
    pub(super) fn leave(&self, connection: u64) {
        self.pending().retain(|_, expected| expected.connection != connection);
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, PendingReply<T>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct RemoveGuard<F: FnMut()>(F);

impl<F: FnMut()> Drop for RemoveGuard<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
