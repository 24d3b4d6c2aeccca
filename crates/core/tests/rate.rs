//! The laws of a token bucket, for any rate and any calls.

use std::time::Duration;

use amplifier_core::{Rate, TokenBucket};
use proptest::collection::vec;
use proptest::prelude::*;

fn rate() -> impl Strategy<Value = Rate> {
    (0..20_u32, 1..1000_u64).prop_map(|(burst, every)| Rate { burst, every: Duration::from_nanos(every) })
}

/// The times of calls, which may come at once or after a long while.
fn calls() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![3 => Just(0), 3 => 0..1000_u64, 1 => 0..50_000_u64], 1..200).prop_map(|pauses| {
        let later = |now: &mut u64, pause| {
            *now += pause;
            Some(*now)
        };
        pauses.into_iter().scan(0, later).collect()
    })
}

proptest! {
    #[test]
    fn no_stretch_of_time_holds_more_than_the_burst_and_what_the_rate_adds(rate in rate(), calls in calls()) {
        let mut bucket = TokenBucket::default();
        let taken: Vec<u64> = calls.into_iter().filter(|now| bucket.take(rate, *now).is_ok()).collect();
        let every = rate.every.as_nanos() as u64;
        for (first, begin) in taken.iter().enumerate() {
            for (last, end) in taken.iter().enumerate().skip(first) {
                let most = u64::from(rate.burst.max(1)) + (end - begin) / every;
                prop_assert!((last - first + 1) as u64 <= most, "{} from {begin} to {end}", last - first + 1);
            }
        }
    }

    #[test]
    fn whoever_waits_as_long_as_told_has_room_and_not_a_nanosecond_before(rate in rate(), calls in calls()) {
        let mut bucket = TokenBucket::default();
        for now in calls {
            if let Err(wait) = bucket.clone().take(rate, now) {
                let then = now + wait.as_nanos() as u64;
                prop_assert_eq!(bucket.wait(rate, then - 1), Duration::from_nanos(1));
                prop_assert_eq!(bucket.wait(rate, then), Duration::ZERO);
                // Room that is set aside makes the next one wait for longer, by one call.
                let mut reserved = bucket;
                reserved.reserve(rate, now);
                prop_assert_eq!(reserved.wait(rate, now), wait + rate.every);
            }
            let _ = bucket.take(rate, now);
        }
    }

    #[test]
    fn one_call_each_time_is_never_too_much(rate in rate(), start in any::<u32>()) {
        let (mut bucket, every) = (TokenBucket::default(), rate.every.as_nanos() as u64);
        for call in 0..1000 {
            prop_assert_eq!(bucket.take(rate, u64::from(start) + call * every), Ok(()));
        }
        prop_assert!(bucket.is_full(u64::from(start) + 1000 * every));
        prop_assert!(!bucket.is_full(u64::from(start) + 999 * every));
    }
}

#[test]
fn the_longest_rate_and_the_last_moment_are_counted_too() {
    let (rate, mut bucket) = (Rate { burst: u32::MAX, every: Duration::MAX }, TokenBucket::default());
    assert_eq!(bucket.take(rate, u64::MAX), Ok(()));
    let (rate, mut bucket) = (Rate { burst: 1, every: Duration::MAX }, TokenBucket::default());
    assert_eq!(bucket.take(rate, u64::MAX), Ok(()));
    assert_eq!(bucket.take(rate, u64::MAX), Err(Duration::MAX));
    bucket.reserve(rate, u64::MAX);
    assert_eq!(bucket.take(rate, u64::MAX), Err(Duration::MAX));
}
