//! A semaphore that is fair between users.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use amplifier_core::Actor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Limit of permits per user, so that a user with many requests waits only for themselves.
const PER_USER: usize = 2;
/// Time limit for a permit.
const PATIENCE: Duration = Duration::from_secs(5);

/// A semaphore with a limit per user. Cheap to clone; clones share the permits.
#[derive(Clone, Debug)]
pub(crate) struct FairSemaphore(Arc<SemaphoreState>);

#[derive(Debug)]
struct SemaphoreState {
    all: Arc<Semaphore>,
    // A std lock: nothing awaits while it is held.
    people: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The permits of one user.
#[derive(Clone, Debug)]
pub(crate) struct UserQueue {
    semaphore: FairSemaphore,
    own: Arc<Semaphore>,
}

/// A permit, released on drop.
pub(crate) type Permit = (Arc<Semaphore>, OwnedSemaphorePermit, OwnedSemaphorePermit);

impl FairSemaphore {
    /// Creates a semaphore with this number of permits.
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(SemaphoreState { all: Arc::new(Semaphore::new(at_once)), people: Mutex::default() }))
    }

    /// Returns the permits of a user. All anonymous clients count as one user.
    pub(crate) fn for_user(&self, who: Option<Actor>) -> UserQueue {
        let person = who.map(|who| format!("{}:{}", who.via, who.name)).unwrap_or_default();
        let mut people = self.0.people.lock().unwrap_or_else(PoisonError::into_inner);
        let own = people.get(&person).and_then(Weak::upgrade).unwrap_or_else(|| {
            people.retain(|_, known| known.strong_count() > 0);
            let own = Arc::new(Semaphore::new(PER_USER));
            people.insert(person, Arc::downgrade(&own));
            own
        });
        UserQueue { semaphore: self.clone(), own }
    }
}

impl UserQueue {
    pub(crate) async fn acquire(&self) -> Option<Permit> {
        let waiting = async {
            let own = self.own.clone().acquire_owned().await.ok()?;
            let any = self.semaphore.0.all.clone().acquire_owned().await.ok()?;
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
        let semaphore = FairSemaphore::new(8);
        let (eve, ada) = (semaphore.for_user(person("eve")), semaphore.for_user(person("ada")));
        let held = (eve.acquire().await.unwrap(), semaphore.for_user(person("eve")).acquire().await.unwrap());
        assert!(eve.acquire().await.is_none());
        let one = ada.acquire().await.unwrap();
        let waiting = tokio::spawn(async move { eve.acquire().await.is_some() });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap());
        drop(one);
        assert_eq!(semaphore.0.all.available_permits(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_have_their_turn_at_a_time() {
        let semaphore = FairSemaphore::new(3);
        let mut held = Vec::new();
        for name in ["eve", "bob", "cid"] {
            held.push(semaphore.for_user(person(name)).acquire().await.unwrap());
        }
        assert!(semaphore.for_user(person("ada")).acquire().await.is_none());
        held.pop();
        assert!(semaphore.for_user(person("ada")).acquire().await.is_some());
    }
}
