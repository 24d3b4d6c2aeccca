//! Which sessions were connected, and since when they are not any more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// So many are kept before those are forgotten that were lost long ago.
const MOST: usize = 4096;
const LONG_AGO: SignedDuration = SignedDuration::from_hours(1);

/// What was seen of the connections of sessions, by whoever looked.
///
/// A session that lives comes back within seconds, so one that was there and stays away has ended without saying so.
#[derive(Debug)]
pub(crate) struct Presence {
    // A std lock: nothing awaits while it is held.
    sightings: Mutex<Sightings>,
}

#[derive(Debug)]
struct Sightings {
    /// Since when sessions can connect.
    open: Timestamp,
    /// Those that were connected, and since when they are not.
    lost: HashMap<String, Option<Timestamp>>,
}

impl Presence {
    /// Sessions can connect from then on.
    pub(crate) fn new(open: Timestamp) -> Self {
        Self { sightings: Mutex::new(Sightings { open, lost: HashMap::new() }) }
    }

    /// The same, from later on.
    pub(crate) fn set_opened_at(&self, now: Timestamp) {
        self.sightings().open = now;
    }

    /// Since when sessions can connect: those that another server saw before come back then.
    pub(crate) fn opened_at(&self) -> Timestamp {
        self.sightings().open
    }

    /// Takes notice of whether a session is connected, and says since when it is not; none if it is, or was never seen.
    pub(crate) fn update(&self, session: &str, is_connected: bool, now: Timestamp) -> Option<Timestamp> {
        let lost = &mut self.sightings().lost;
        if is_connected {
            if lost.len() >= MOST {
                lost.retain(|_, since| since.is_none_or(|since| now.duration_since(since) < LONG_AGO));
            }
            lost.insert(session.to_owned(), None);
            return None;
        }
        lost.get_mut(session).map(|since| *since.get_or_insert(now))
    }

    fn sightings(&self) -> MutexGuard<'_, Sightings> {
        self.sightings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_there_is_missed_from_the_first_look_without_it() {
        let at = |second: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        let presence = Presence::new(at(0));
        assert_eq!(presence.update("s", false, at(0)), None, "it was never there");
        assert_eq!(presence.update("s", true, at(1)), None);
        assert_eq!(presence.update("s", false, at(2)), Some(at(2)));
        assert_eq!(presence.update("s", false, at(9)), Some(at(2)));
        assert_eq!(presence.update("s", true, at(10)), None, "it is back");
        assert_eq!(presence.update("s", false, at(11)), Some(at(11)));
    }
}
