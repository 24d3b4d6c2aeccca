//! Remembers the payload type that data was checked for, so that ten hooks on one event check it once.

use std::any::TypeId;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The payload type that the fields were last checked for; the hooks of one event mostly use the same.
#[derive(Default)]
pub(super) struct CheckedPayload(AtomicU64);

impl Clone for CheckedPayload {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Relaxed)))
    }
}

impl CheckedPayload {
    #[inline]
    pub(super) fn is_for<P: 'static>(&self) -> bool {
        self.0.load(Relaxed) == mark::<P>()
    }

    pub(super) fn set_for<P: 'static>(&self) {
        self.0.store(mark::<P>(), Relaxed);
    }
}

/// Returns a nonzero number for a type.
fn mark<T: 'static>() -> u64 {
    struct Number(u64);
    impl Hasher for Number {
        fn finish(&self) -> u64 {
            self.0
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
            }
        }
        fn write_u64(&mut self, number: u64) {
            self.0 ^= number;
        }
    }
    let mut number = Number(0);
    TypeId::of::<T>().hash(&mut number);
    number.finish() | 1
}
