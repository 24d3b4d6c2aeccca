//! Checks and helpers shared by the options of several modules.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::condition::pattern_problem;

/// Parses a positive number of seconds.
pub(crate) fn seconds(option: &str, given: f64) -> Result<Duration, String> {
    let duration = Duration::try_from_secs_f64(given).ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| format!("`{option}` is {given}: give a number of seconds above zero"))
}

/// Checks that a list is not empty.
pub(crate) fn require_some<T>(option: &str, given: &[T]) -> Result<(), String> {
    if given.is_empty() { Err(format!("`{option}` is empty: name at least one")) } else { Ok(()) }
}

/// Checks that a list has at least one name and no patterns: a pattern would match no tool here.
pub(crate) fn require_exact_names(option: &str, given: &[String]) -> Result<(), String> {
    require_some(option, given)?;
    match given.iter().find(|name| name.trim().is_empty() || name.contains('*')) {
        Some(name) => Err(format!("invalid name `{name}` in `{option}`: patterns are not supported; write each name")),
        None => Ok(()),
    }
}

/// Checks that each pattern of paths can match.
pub(crate) fn require_possible(option: &str, patterns: &[String]) -> Result<(), String> {
    match patterns.iter().find_map(|pattern| Some((pattern, pattern_problem(pattern)?))) {
        Some((pattern, (problem, help))) => {
            Err(format!("`{option}`: the pattern `{pattern}` never matches: it {problem}; {help}"))
        }
        None => Ok(()),
    }
}

/// Compiles patterns for names, in which `*` matches any text.
pub(crate) fn name_globs(option: &str, patterns: &[String]) -> Result<GlobSet, String> {
    require_some(option, patterns)?;
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern);
        set.add(glob.map_err(|error| format!("`{option}`: invalid pattern `{pattern}`: {}", error.kind()))?);
    }
    set.build().map_err(|error| format!("`{option}`: the patterns are too large: {}", error.kind()))
}

/// Converts string literals to the type of options.
pub(crate) fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Locks a mutex even after a panic: the data behind the locks of modules is consistent after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
