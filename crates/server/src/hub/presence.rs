//! Sessions that were connected, and since when they are missing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Number of stored sessions at which those missing for an hour are dropped.
const MOST: usize = 4096;
const LONG_AGO: SignedDuration = SignedDuration::from_hours(1);

/// The last known connection state of sessions.
///
/// A live session reconnects within seconds, so a session that was connected and stays away has crashed.
#[derive(Debug)]
pub(crate) struct Presence {
    // A std lock: nothing awaits while it is held.
    sightings: Mutex<Sightings>,
}

#[derive(Debug)]
struct Sightings {
    /// Time from which sessions can connect.
    open: Timestamp,
    /// Sessions that were connected, with the time since when they are not.
    lost: HashMap<String, Option<Timestamp>>,
}

impl Presence {
    pub(crate) fn new(open: Timestamp) -> Self {
        Self { sightings: Mutex::new(Sightings { open, lost: HashMap::new() }) }
    }

    pub(crate) fn set_opened_at(&self, now: Timestamp) {
        self.sightings().open = now;
    }

    /// Returns the time from which sessions can connect: sessions of an earlier server reconnect then.
    pub(crate) fn opened_at(&self) -> Timestamp {
        self.sightings().open
    }

    /// Records the connection state of a session. Returns the time since when it is missing; `None` if it is connected
    /// or was never seen.
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
