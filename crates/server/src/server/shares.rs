//! A fair limit of connections per user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A limit of connections for several users. One user holds at most half of them, and an eighth is reserved for the
/// owner of the server: neither one user nor all the others together can lock the owner out.
#[derive(Debug)]
pub(crate) struct ConnectionShares {
    most: usize,
    for_one: usize,
    for_guests: usize,
    // A std lock: nothing awaits while it is held.
    counts: Mutex<ShareCounts>,
}

#[derive(Debug, Default)]
struct ShareCounts {
    all: usize,
    by_guests: usize,
    by_person: HashMap<String, usize>,
}

/// The user of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Key of the user: role and name.
    pub(crate) person: String,
    pub(crate) is_owner: bool,
}

/// One connection, released on drop.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<ConnectionShares>,
    holder: Holder,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// The limit per user.
    ForPerson,
    /// The limit of all connections that this user may have.
    ForAll,
}

impl ConnectionShares {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let most = most.max(1);
        // With few connections, one is reserved for the owner all the same.
        let kept_for_owner = (most / 8).max(1).min(most - 1);
        let (for_one, for_guests) = ((most / 2).max(1), most - kept_for_owner);
        Arc::new(Self { most, for_one, for_guests, counts: Mutex::default() })
    }

    /// Reserves a connection.
    ///
    /// # Errors
    /// If no connection is left for this user.
    pub(crate) fn take(self: &Arc<Self>, holder: Holder) -> Result<Share, NoSlot> {
        let mut held = self.counts();
        let own = held.by_person.get(&holder.person).copied().unwrap_or(0);
        if held.all >= self.most {
            return Err(NoSlot::ForAll);
        }
        if own >= self.for_one {
            return Err(NoSlot::ForPerson);
        }
        if !holder.is_owner && held.by_guests >= self.for_guests {
            return Err(NoSlot::ForAll);
        }
        held.all += 1;
        held.by_guests += usize::from(!holder.is_owner);
        held.by_person.insert(holder.person.clone(), own + 1);
        drop(held);
        Ok(Share { shares: self.clone(), holder })
    }

    fn counts(&self) -> MutexGuard<'_, ShareCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.shares.counts();
        held.all -= 1;
        held.by_guests -= usize::from(!self.holder.is_owner);
        if let Some(own) = held.by_person.get_mut(&self.holder.person) {
            *own -= 1;
            if *own == 0 {
                held.by_person.remove(&self.holder.person);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::server) fn guest(name: &str) -> Holder {
        Holder { person: name.to_owned(), is_owner: false }
    }

    fn owner() -> Holder {
        Holder { person: "owner".to_owned(), is_owner: true }
    }

    #[test]
    fn one_person_holds_at_most_half_and_all_others_together_leave_some_to_the_owner() {
        let shares = ConnectionShares::new(16);
        let mut held: Vec<Share> = (0..8).map(|_| shares.take(guest("ann")).unwrap()).collect();
        assert_eq!(shares.take(guest("ann")).unwrap_err(), NoSlot::ForPerson);
        held.extend((0..6).map(|_| shares.take(guest("bob")).unwrap()));
        assert_eq!(shares.take(guest("bob")).unwrap_err(), NoSlot::ForAll);
        assert_eq!(shares.take(guest("eve")).unwrap_err(), NoSlot::ForAll);
        held.extend((0..2).map(|_| shares.take(owner()).unwrap()));
        assert_eq!(shares.take(owner()).unwrap_err(), NoSlot::ForAll);
        // A released connection can be reserved again, and users without connections leave no entries.
        drop(held.remove(0));
        assert!(shares.take(guest("eve")).is_ok());
        drop(held);
        let left = shares.counts();
        assert_eq!((left.all, left.by_guests, left.by_person.len()), (0, 0, 0));
    }

    #[test]
    fn few_connections_are_shared_too() {
        for (most, for_one, for_guests) in [(0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 1, 2), (4, 2, 3)] {
            let shares = ConnectionShares::new(most);
            assert_eq!((shares.for_one, shares.for_guests), (for_one, for_guests), "{most}");
        }
    }
}
