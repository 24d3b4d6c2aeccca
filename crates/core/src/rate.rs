//! How often something may happen.

use std::time::Duration;

const SECOND: u128 = 1_000_000_000;

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At once, after some quiet. Zero counts as one.
    pub burst: u32,
    /// Once more after each such time, in the long run.
    pub every: Duration,
}

/// A token bucket: what is left of a [`Rate`] for one caller.
///
/// Times are nanoseconds of any clock that does not go back. They are added as whole numbers, so that nothing drifts.
///
/// ```
/// use std::time::Duration;
///
/// use amplifier_core::{Rate, TokenBucket};
///
/// let (rate, mut bucket) = (Rate { burst: 2, every: Duration::from_nanos(10) }, TokenBucket::default());
/// assert_eq!([bucket.take(rate, 0), bucket.take(rate, 0)], [Ok(()); 2]);
/// assert_eq!(bucket.take(rate, 4), Err(Duration::from_nanos(6)));
/// assert_eq!(bucket.take(rate, 10), Ok(()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    // All there is to keep: every call makes it later, and the time that passes needs no counting.
    full_at: u128,
}

impl TokenBucket {
    /// Returns how long it takes until there is room for one more.
    pub fn wait(&self, rate: Rate, now: u64) -> Duration {
        let every = rate.every.as_nanos();
        let room = every * u128::from(rate.burst.max(1));
        let wait = (self.full_at.max(now.into()) + every).saturating_sub(room + u128::from(now));
        let seconds = u64::try_from(wait / SECOND);
        seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, (wait % SECOND) as u32))
    }

    /// Takes the room for one.
    ///
    /// # Errors
    /// How long to wait, if there is none.
    pub fn take(&mut self, rate: Rate, now: u64) -> Result<(), Duration> {
        let wait = self.wait(rate, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.reserve(rate, now);
        Ok(())
    }

    /// Takes the room for one, also if there is none yet: for callers that [wait](Self::wait) for it.
    pub fn reserve(&mut self, rate: Rate, now: u64) {
        self.full_at = self.full_at.max(now.into()) + rate.every.as_nanos();
    }

    /// `true` if nothing was taken, or it was so long ago that it does not count.
    pub fn is_full(&self, now: u64) -> bool {
        self.full_at <= now.into()
    }
}
