//! The last analyses. Several hooks ask about the same command, and an analysis needs a thread.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::walk::WalkResult;

/// Number of analyses, and the longest command, so that they need little memory.
const ENTRIES: usize = 8;
const BYTES: usize = 4 << 10;

// A std lock: nothing awaits while it is held.
static RECENT: Mutex<VecDeque<(String, WalkResult)>> = Mutex::new(VecDeque::new());

pub(super) fn find(command: &str) -> Option<WalkResult> {
    lock().iter().find(|(known, _)| known == command).map(|(_, result)| result.clone())
}

pub(super) fn remember(command: &str, result: &WalkResult) {
    let mut recent = lock();
    if command.len() > BYTES || recent.iter().any(|(known, _)| known == command) {
        return;
    }
    if recent.len() == ENTRIES {
        recent.pop_front();
    }
    recent.push_back((command.to_owned(), result.clone()));
}

fn lock() -> MutexGuard<'static, VecDeque<(String, WalkResult)>> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner)
}
