//! Waiting for what a session says about something that it was told.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// Who waits for what sessions say, by reference.
pub(super) struct Replies<T> {
    // A std lock: nothing awaits while it is held.
    waiting: Mutex<HashMap<u64, Waiting<T>>>,
}

/// Somebody who waits, and the connection that it is expected from.
struct Waiting<T> {
    connection: u64,
    tell: oneshot::Sender<T>,
}

/// Why a session says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It does not listen, so that it has not been told anything.
    Deaf,
    /// The connection broke.
    Gone,
    /// It takes too long.
    Slow,
}

impl<T> Default for Replies<T> {
    fn default() -> Self {
        Self { waiting: Mutex::default() }
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
    ) -> Result<T, Silence> {
        let (tell, told) = oneshot::channel();
        self.waiting().insert(reference, Waiting { connection, tell });
        // Nobody waits any more when this ends, however it ends.
        let _forget = Forget(|| drop(self.waiting().remove(&reference)));
        link.try_send(message).map_err(|_| Silence::Deaf)?;
        match tokio::time::timeout(limit, told).await {
            Ok(said) => said.map_err(|_| Silence::Gone),
            Err(_) => Err(Silence::Slow),
        }
    }

    /// A session says something. Only the one that was told can.
    pub(super) fn said(&self, connection: u64, reference: u64, said: T) {
        let mut waiting = self.waiting();
        if waiting.get(&reference).is_some_and(|expected| expected.connection == connection) {
            // Whoever asked may have gone.
            drop(waiting.remove(&reference).map(|Waiting { tell, .. }| tell.send(said)));
        }
    }

    /// A connection is gone. Whoever waits for it learns that by the closed channel.
    pub(super) fn leave(&self, connection: u64) {
        self.waiting().retain(|_, expected| expected.connection != connection);
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does something when it is dropped.
struct Forget<F: FnMut()>(F);

impl<F: FnMut()> Drop for Forget<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
