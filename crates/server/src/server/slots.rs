//! Slots for connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::shares::{ConnectionShares, Holder, NoSlot, Share};

/// Connection slots. Authenticated users share theirs; anonymous connections have few, and a new one replaces the
/// oldest: opening many connections cannot lock the owner out.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    known: Arc<ConnectionShares>,
    most_strangers: usize,
    // A std lock: nothing awaits while it is held.
    strangers: Mutex<AnonymousSlots>,
}

#[derive(Debug, Default)]
struct AnonymousSlots {
    next: u64,
    /// In order of arrival, each with the channel that reports its loss.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
}

/// One connection's slot, released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    known: Mutex<Option<Share>>,
}

impl ConnectionSlots {
    pub(crate) fn new(connections: usize, strangers: usize) -> Arc<Self> {
        let most_strangers = strangers.clamp(1, connections.max(1));
        let known = ConnectionShares::new(connections.saturating_sub(most_strangers));
        Arc::new(Self { known, most_strangers, strangers: Mutex::default() })
    }

    /// Returns a slot for an anonymous connection, and a channel that reports its loss.
    pub(crate) fn admit(self: &Arc<Self>) -> (ConnectionSlot, oneshot::Receiver<()>) {
        let (lose, lost) = oneshot::channel();
        let mut strangers = self.strangers();
        strangers.next += 1;
        let number = strangers.next;
        strangers.waiting.insert(number, lose);
        if strangers.waiting.len() > self.most_strangers
            && let Some((_, lose)) = strangers.waiting.pop_first()
        {
            // A connection that has just ended does not receive this.
            let _ = lose.send(());
        }
        (ConnectionSlot { slots: self.clone(), number, known: Mutex::default() }, lost)
    }

    fn strangers(&self) -> std::sync::MutexGuard<'_, AnonymousSlots> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Assigns the slot to the authenticated user.
    ///
    /// # Errors
    /// If no slot is left for this user.
    pub(crate) fn assign(&self, holder: Holder) -> Result<(), NoSlot> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some() {
            return Ok(());
        }
        let share = self.slots.known.take(holder)?;
        // A connection that has lost its slot meanwhile ends all the same.
        self.slots.strangers().waiting.remove(&self.number);
        *known = Some(share);
        Ok(())
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.strangers().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::shares::tests::guest;
    use super::*;

    #[test]
    fn strangers_lose_their_places_to_those_who_come_later_and_the_known_do_not() {
        let slots = ConnectionSlots::new(5, 2);
        let (first, mut first_lost) = slots.admit();
        assert_eq!((first.assign(guest("ann")), first.assign(guest("ann"))), (Ok(()), Ok(())));
        let (second, mut second_lost) = slots.admit();
        let (_third, mut third_lost) = slots.admit();
        let (fourth, _fourth_lost) = slots.admit();
        assert!(second_lost.try_recv().is_ok());
        assert!(third_lost.try_recv().is_err());
        // The connection ends without a signal.
        assert!(first_lost.try_recv().is_err());
        drop(second);
        let (fifth, _) = slots.admit();
        assert!(third_lost.try_recv().is_ok());
        // At most two authenticated connections, besides the owner's.
        assert_eq!((fourth.assign(guest("bob")), fifth.assign(guest("eve"))), (Ok(()), Err(NoSlot::ForAll)));
        drop(first);
        assert_eq!(fifth.assign(guest("eve")), Ok(()));
    }
}
