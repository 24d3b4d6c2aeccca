//! Locks and a shared value, replaceable by those of `shuttle`, so that the model tests run the code that ships.

use std::sync::Arc;

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

/// Locks, also after a panic in another thread: the data behind this crate's locks is valid after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// An immutable value that is read often and replaced rarely.
pub(crate) struct PublishedValue<T> {
    #[cfg(not(shuttle))]
    value: arc_swap::ArcSwap<T>,
    #[cfg(shuttle)]
    value: shuttle::sync::RwLock<Arc<T>>,
}

#[cfg(not(shuttle))]
pub(crate) type LoadedValue<T> = arc_swap::Guard<Arc<T>>;
#[cfg(shuttle)]
pub(crate) type LoadedValue<T> = Arc<T>;

#[cfg(not(shuttle))]
impl<T> PublishedValue<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: arc_swap::ArcSwap::from_pointee(value) }
    }

    // A guard, not an `Arc`: two cores that emit at once do not compete for a reference counter.
    pub(crate) fn load(&self) -> LoadedValue<T> {
        self.value.load()
    }

    pub(crate) fn store(&self, value: T) {
        self.value.store(Arc::new(value));
    }
}

#[cfg(shuttle)]
impl<T> PublishedValue<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: shuttle::sync::RwLock::new(Arc::new(value)) }
    }

    pub(crate) fn load(&self) -> LoadedValue<T> {
        self.value.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(crate) fn store(&self, value: T) {
        *self.value.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(value);
    }
}
