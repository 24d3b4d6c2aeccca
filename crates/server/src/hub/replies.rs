//! Waiting for what a session says about something that it was told.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// Who waits for what sessions say, by reference.
pub(super) struct Replies<T> {
    // A std lock: nothing awaits while it is held.
    pending: Mutex<HashMap<u64, PendingReply<T>>>,
}

/// Somebody who waits, and the connection that it is expected from.
struct PendingReply<T> {
    connection: u64,
    sender: oneshot::Sender<T>,
}

/// Why a session says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoReply {
    /// It does not listen, so that it has not been told anything.
    NotSent,
    /// The connection broke.
    Disconnected,
    /// It takes too long.
    TimedOut,
}

impl<T> Default for Replies<T> {
    fn default() -> Self {
        Self { pending: Mutex::default() }
    }
}

impl<T> Replies<T> {
    /// Tells a session something, and waits for what it says about it.
    ///
    /// # Cancel safety
    /// When the future is dropped, the session may have been told all the same; what it says is thrown away.
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
        // Nobody waits any more when this ends, however it ends.
        let _remove = RemoveGuard(|| drop(self.pending().remove(&reference)));
        link.try_send(message).map_err(|_| NoReply::NotSent)?;
        match tokio::time::timeout(limit, receiver).await {
            Ok(reply) => reply.map_err(|_| NoReply::Disconnected),
            Err(_) => Err(NoReply::TimedOut),
        }
    }

    /// A session says something. Only the one that was told can.
    pub(super) fn complete(&self, connection: u64, reference: u64, reply: T) {
        let mut pending = self.pending();
        if pending.get(&reference).is_some_and(|expected| expected.connection == connection) {
            // Whoever asked may have gone.
            drop(pending.remove(&reference).map(|PendingReply { sender, .. }| sender.send(reply)));
        }
    }

    /// A connection is gone. Whoever waits for it learns that by the closed channel.
    pub(super) fn leave(&self, connection: u64) {
        self.pending().retain(|_, expected| expected.connection != connection);
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, PendingReply<T>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does something when it is dropped.
struct RemoveGuard<F: FnMut()>(F);

impl<F: FnMut()> Drop for RemoveGuard<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
