//! Path patterns.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::Scope;

/// Maximum length of a pattern from the event, in bytes.
pub(super) const MAX_PATTERN: usize = 2048;

/// Compiles patterns in which `*` stays within one folder and `**` does not. A pattern without wildcards also matches everything in a folder of that
/// name, as it does in `changes`.
pub(crate) fn globs<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    let mut add = |pattern: &str| {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        set.add(glob.map_err(|error| format!("invalid path pattern `{pattern}`: {}", error.kind()))?);
        Ok::<_, String>(())
    };
    for pattern in patterns {
        if pattern.len() > MAX_PATTERN {
            return Err(format!("the pattern has {} bytes, {MAX_PATTERN} are allowed", pattern.len()));
        }
        add(pattern)?;
        if !pattern.is_empty() && !pattern.ends_with('/') && !pattern.contains(['*', '?', '[', '{', '\\']) {
            add(&format!("{pattern}/**"))?;
        }
    }
    set.build().map_err(|error| format!("the patterns for paths are too large: {}", error.kind()))
}

/// `true` if a resolved path matches, relative to the workspace or absolute.
pub(super) fn matches(scope: &Scope, path: &str, globs: &GlobSet) -> Result<bool, String> {
    let resolved = scope.resolve(path).map_err(unresolvable)?;
    let inside = resolved.strip_prefix(scope.workspace());
    Ok(globs.is_match(&resolved) || inside.is_ok_and(|inside| globs.is_match(inside)))
}

pub(super) fn is_inside(scope: &Scope, path: &str) -> Result<bool, String> {
    Ok(scope.resolve(path).map_err(unresolvable)?.starts_with(scope.workspace()))
}

fn unresolvable(error: std::io::Error) -> String {
    format!("the path cannot be resolved: {}", error.kind())
}
