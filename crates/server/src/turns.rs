//! Turns at what only a few may do at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use amplifier_core::Actor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How many turns one person has at a time: whoever asks for much waits for themselves.
const OF_ONE: usize = 2;
/// How long is waited for one.
const PATIENCE: Duration = Duration::from_secs(5);

/// Turns, so many at a time. A handle: clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    all: Arc<Semaphore>,
    // A std lock: nothing awaits while it is held.
    people: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Somebody who waits for their turn.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    turns: Turns,
    own: Arc<Semaphore>,
}

/// While it is kept, it is somebody's turn.
pub(crate) type Turn = (Arc<Semaphore>, OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Turns {
    /// So many at a time.
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Shared { all: Arc::new(Semaphore::new(at_once)), people: Mutex::default() }))
    }

    /// Those of a person. Strangers are one person.
    pub(crate) fn of(&self, who: Option<Actor>) -> Waiting {
        let person = who.map(|who| format!("{}:{}", who.via, who.name)).unwrap_or_default();
        let mut people = self.0.people.lock().unwrap_or_else(PoisonError::into_inner);
        let own = people.get(&person).and_then(Weak::upgrade).unwrap_or_else(|| {
            people.retain(|_, known| known.strong_count() > 0);
            let own = Arc::new(Semaphore::new(OF_ONE));
            people.insert(person, Arc::downgrade(&own));
            own
        });
        Waiting { turns: self.clone(), own }
    }
}

impl Waiting {
    /// Waits for a turn; none if that takes too long.
    pub(crate) async fn turn(&self) -> Option<Turn> {
        let waiting = async {
            let own = self.own.clone().acquire_owned().await.ok()?;
            let any = self.turns.0.all.clone().acquire_owned().await.ok()?;
            Some((self.own.clone(), own, any))
        };
        timeout(PATIENCE, waiting).await.ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str) -> Option<Actor> {
        Some(Actor { name: name.to_owned(), via: "api".to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_much_waits_for_themselves_and_not_for_long() {
        let turns = Turns::new(8);
        let (eve, ada) = (turns.of(person("eve")), turns.of(person("ada")));
        let held = (eve.turn().await.unwrap(), turns.of(person("eve")).turn().await.unwrap());
        assert!(eve.turn().await.is_none());
        let one = ada.turn().await.unwrap();
        let waiting = tokio::spawn(async move { eve.turn().await.is_some() });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap());
        drop(one);
        assert_eq!(turns.0.all.available_permits(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_have_their_turn_at_a_time() {
        let turns = Turns::new(3);
        let mut held = Vec::new();
        for name in ["eve", "bob", "cid"] {
            held.push(turns.of(person(name)).turn().await.unwrap());
        }
        assert!(turns.of(person("ada")).turn().await.is_none());
        held.pop();
        assert!(turns.of(person("ada")).turn().await.is_some());
    }
}
