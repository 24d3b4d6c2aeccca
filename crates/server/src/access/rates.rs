//! How many requests there may be in a time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many callers are told apart; beyond that, those who are quiet are forgotten.
const MOST: usize = 10_000;

/// How many requests a caller may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At once, after some quiet.
    pub burst: u32,
    /// One more after each such time, in the long run.
    pub every: Duration,
}

/// A leaky bucket for each caller: the time at which it would be empty.
#[derive(Debug)]
pub(super) struct Rates {
    /// What one request adds to the bucket.
    each: Duration,
    /// What the bucket holds.
    room: Duration,
    // A std lock: nothing awaits while it is held.
    callers: Mutex<HashMap<String, Instant>>,
}

impl Rates {
    pub(super) fn new(Rate { burst, every }: Rate) -> Self {
        Self { each: every, room: every * burst.max(1), callers: Mutex::default() }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// How long to wait, if there are too many.
    pub(super) fn count(&self, caller: &str, now: Instant) -> Result<(), Duration> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= MOST && !callers.contains_key(caller) {
            callers.retain(|_, empty| *empty > now);
            if callers.len() >= MOST {
                return Err(self.room);
            }
        }
        let empty = callers.get(caller).copied().unwrap_or(now).max(now) + self.each;
        let beyond = empty.saturating_duration_since(now + self.room);
        if !beyond.is_zero() {
            return Err(beyond);
        }
        callers.insert(caller.to_owned(), empty);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_a_steady_rate() {
        let (rates, now) = (Rates::new(Rate { burst: 3, every: Duration::from_millis(500) }), Instant::now());
        let after = |millis| rates.count("ada", now + Duration::from_millis(millis));
        assert_eq!([after(0), after(0), after(0)], [Ok(()); 3]);
        assert_eq!(after(0), Err(Duration::from_millis(500)));
        assert_eq!(after(400), Err(Duration::from_millis(100)));
        assert_eq!([after(500), after(1000)], [Ok(()); 2]);
        assert_eq!(after(1000), Err(Duration::from_millis(500)));
        assert_eq!(rates.count("bob", now), Ok(()), "callers do not slow each other");
    }

    #[test]
    fn callers_that_are_quiet_are_forgotten() {
        let (rates, now) = (Rates::new(Rate { burst: 1, every: Duration::from_secs(1) }), Instant::now());
        for caller in 0..MOST {
            rates.count(&caller.to_string(), now).unwrap();
        }
        assert!(rates.count("another", now).is_err());
        assert_eq!(rates.count("another", now + Duration::from_secs(2)), Ok(()));
    }
}
