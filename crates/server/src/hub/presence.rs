//! Which sessions were connected, and since when they are not any more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// So many are kept before those are forgotten that were lost long ago.
const MOST: usize = 4096;
const LONG_AGO: SignedDuration = SignedDuration::from_hours(1);

/// What was seen of the connections of sessions, by whoever looked.
///
/// A session that lives comes back within seconds, so one that was there and stays away has ended without saying so.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    // A std lock: nothing awaits while it is held.
    lost: Mutex<HashMap<String, Option<Timestamp>>>,
}

impl Presence {
    /// Takes notice of whether a session is connected, and says since when it is not; none if it is, or was never seen.
    pub(crate) fn see(&self, session: &str, is_connected: bool, now: Timestamp) -> Option<Timestamp> {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if is_connected {
            if lost.len() >= MOST {
                lost.retain(|_, since| since.is_none_or(|since| now.duration_since(since) < LONG_AGO));
            }
            lost.insert(session.to_owned(), None);
            return None;
        }
        lost.get_mut(session).map(|since| *since.get_or_insert(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_there_is_missed_from_the_first_look_without_it() {
        let presence = Presence::default();
        let at = |second: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        assert_eq!(presence.see("s", false, at(0)), None, "it was never there");
        assert_eq!(presence.see("s", true, at(1)), None);
        assert_eq!(presence.see("s", false, at(2)), Some(at(2)));
        assert_eq!(presence.see("s", false, at(9)), Some(at(2)));
        assert_eq!(presence.see("s", true, at(10)), None, "it is back");
        assert_eq!(presence.see("s", false, at(11)), Some(at(11)));
    }
}
