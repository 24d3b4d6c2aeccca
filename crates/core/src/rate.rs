//! Rate limits.

use std::time::Duration;

const SECOND: u128 = 1_000_000_000;

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Uses that are allowed at once, after a pause. Zero counts as one.
    pub burst: u32,
    /// Time after which one more use is allowed.
    pub every: Duration,
}

/// A token bucket: the remaining part of a [`Rate`] for one caller.
///
/// Times are nanoseconds of any monotonic clock. They are added as whole numbers, so that nothing drifts.
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
    // The only state: each use moves it later, and elapsed time needs no counting.
    full_at: u128,
}

impl TokenBucket {
    /// Returns the time until one more use is allowed.
    pub fn wait(&self, rate: Rate, now: u64) -> Duration {
        let every = rate.every.as_nanos();
        let room = every * u128::from(rate.burst.max(1));
        let wait = (self.full_at.max(now.into()) + every).saturating_sub(room + u128::from(now));
        let seconds = u64::try_from(wait / SECOND);
        seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, (wait % SECOND) as u32))
    }

    /// Takes one use.
    ///
    /// # Errors
    /// If no use is left; the error is the time to wait.
    pub fn take(&mut self, rate: Rate, now: u64) -> Result<(), Duration> {
        let wait = self.wait(rate, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.reserve(rate, now);
        Ok(())
    }

    /// Takes one use even if none is left yet: for callers that [wait](Self::wait) for it.
    pub fn reserve(&mut self, rate: Rate, now: u64) {
        self.full_at = self.full_at.max(now.into()) + rate.every.as_nanos();
    }

    /// Returns `true` if all uses are left.
    pub fn is_full(&self, now: u64) -> bool {
        self.full_at <= now.into()
    }
}
