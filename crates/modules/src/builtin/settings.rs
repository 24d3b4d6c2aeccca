//! What the options of several modules have in common.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};

/// A number of seconds above zero.
pub(super) fn seconds(option: &str, given: f64) -> Result<Duration, String> {
    let duration = Duration::try_from_secs_f64(given).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| format!("`{option}` is {given}: give a number of seconds above zero"))
}

/// A list that names something.
pub(super) fn require_some<T>(option: &str, given: &[T]) -> Result<(), String> {
    if given.is_empty() { Err(format!("`{option}` is empty: name at least one")) } else { Ok(()) }
}

/// Names as they are, at least one: a pattern would be taken for a name that nothing has.
pub(super) fn require_exact_names(option: &str, given: &[String]) -> Result<(), String> {
    require_some(option, given)?;
    match given.iter().find(|name| name.trim().is_empty() || name.contains('*')) {
        Some(name) => {
            Err(format!("`{option}` has `{name}`, which is no name: patterns are not known here, so write each name"))
        }
        None => Ok(()),
    }
}

/// Patterns for names, in which `*` stands for any text.
pub(super) fn name_globs(option: &str, patterns: &[String]) -> Result<GlobSet, String> {
    require_some(option, patterns)?;
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern);
        set.add(glob.map_err(|error| format!("`{option}`: `{pattern}` is not a pattern for names: {}", error.kind()))?);
    }
    set.build().map_err(|error| format!("`{option}`: the patterns are too large: {}", error.kind()))
}

/// Texts of the program as texts of options.
pub(super) fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Locks, also after a panic elsewhere: what the locks of modules hold is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
