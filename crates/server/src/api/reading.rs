//! Who reads the log: a few at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::error::ApiError;
use crate::access::guard::{Caller, Refusal};
use crate::feed::FeedError;

/// How many read at a time, and how many of those for one person: whoever asks for much waits for themselves.
const AT_ONCE: usize = 8;
const OF_ONE: usize = 2;

/// How long is waited for a turn, and how soon to come back.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_secs(1);

/// Turns at reading the log. It may be long, and reading it keeps a disk and a processor busy.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    all: Arc<Semaphore>,
    // A std lock: nothing awaits while it is held.
    people: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Somebody who may read the log when it is their turn.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    turns: Turns,
    own: Arc<Semaphore>,
}

/// While it is kept, it is somebody's turn.
pub(super) type Turn = (Arc<Semaphore>, OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Turns {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared { all: Arc::new(Semaphore::new(AT_ONCE)), people: Mutex::default() }))
    }

    fn of(&self, person: String) -> Reading {
        let mut people = self.0.people.lock().unwrap_or_else(PoisonError::into_inner);
        let own = people.get(&person).and_then(Weak::upgrade).unwrap_or_else(|| {
            people.retain(|_, known| known.strong_count() > 0);
            let own = Arc::new(Semaphore::new(OF_ONE));
            people.insert(person, Arc::downgrade(&own));
            own
        });
        Reading { turns: self.clone(), own }
    }
}

impl Reading {
    /// Waits for a turn.
    pub(super) async fn turn(&self) -> Result<Turn, Refusal> {
        let waiting = async {
            let own = self.own.clone().acquire_owned().await?;
            let any = self.turns.0.all.clone().acquire_owned().await?;
            Ok((self.own.clone(), own, any))
        };
        match timeout(PATIENCE, waiting).await {
            Ok(turn) => turn.map_err(|error: tokio::sync::AcquireError| ApiError::internal(error).into()),
            Err(_) => Err(Refusal::too_many("too much is read from the audit log at a time", AGAIN)),
        }
    }

    /// Reads the log where that may block, when it is this person's turn. It is theirs until it is read, also if they leave.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, FeedError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = self.turn().await?;
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            read()
        });
        match reading.await {
            Ok(read) => Ok(read.map_err(ApiError::from)?),
            Err(error) => Err(ApiError::internal(error).into()),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Reading {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let turns = parts.extensions.get::<Turns>();
        let who = parts.extensions.get::<Caller>().and_then(|caller| caller.who.as_ref().ok());
        let turns = turns.ok_or_else(|| ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR, None))?;
        // Strangers are one person.
        Ok(turns.of(who.map(|who| format!("{}:{}", who.via, who.name)).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_reads_much_waits_for_themselves_and_not_for_long() {
        let turns = Turns::new();
        let (eve, ada) = (turns.of("eve".to_owned()), turns.of("ada".to_owned()));
        let held = (eve.turn().await.unwrap(), turns.of("eve".to_owned()).turn().await.unwrap());
        assert!(eve.turn().await.is_err());
        let one = ada.turn().await.unwrap();
        let waiting = tokio::spawn(async move { eve.turn().await.is_ok() });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap());
        drop(one);
        assert_eq!(turns.0.all.available_permits(), AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_read_at_a_time() {
        let turns = Turns::new();
        let mut held = Vec::new();
        for person in 0..AT_ONCE {
            held.push(turns.of(person.to_string()).turn().await.unwrap());
        }
        assert!(turns.of("ada".to_owned()).turn().await.is_err());
        held.pop();
        assert!(turns.of("ada".to_owned()).turn().await.is_ok());
    }
}
