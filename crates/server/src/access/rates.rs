//! Rate limits per caller.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use amplifier_core::{Rate, TokenBucket};

/// Limit of callers with a bucket of their own; beyond it, idle ones are dropped.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(crate) struct CallerRates {
    rate: Rate,
    // A std lock: nothing awaits while it is held.
    callers: Mutex<HashMap<String, TokenBucket>>,
}

impl CallerRates {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, callers: Mutex::default() }
    }

    /// Counts a request at a time in nanoseconds.
    ///
    /// # Errors
    /// If there are too many requests: the time to wait.
    pub(crate) fn count(&self, caller: &str, now: u64) -> Result<(), Duration> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = callers.get_mut(caller) {
            return bucket.take(self.rate, now);
        }
        if callers.len() >= MOST {
            callers.retain(|_, bucket| !bucket.is_full(now));
            if callers.len() >= MOST {
                return Err(self.rate.every * self.rate.burst.max(1));
            }
        }
        callers.entry(caller.to_owned()).or_default().take(self.rate, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_do_not_slow_each_other() {
        let rates = CallerRates::new(Rate { burst: 2, every: Duration::from_millis(500) });
        let after = |millis| rates.count("ada", Duration::from_millis(millis).as_nanos() as u64);
        assert_eq!([after(0), after(0)], [Ok(()); 2]);
        assert_eq!(after(400), Err(Duration::from_millis(100)));
        assert_eq!(rates.count("bob", 0), Ok(()));
    }

    #[test]
    fn callers_that_are_quiet_are_forgotten() {
        let rates = CallerRates::new(Rate { burst: 1, every: Duration::from_secs(1) });
        for caller in 0..MOST {
            rates.count(&caller.to_string(), 0).unwrap();
        }
        assert_eq!(rates.count("another", 999_999_999), Err(Duration::from_secs(1)));
        assert_eq!(rates.count("another", 1_000_000_000), Ok(()));
    }
}
