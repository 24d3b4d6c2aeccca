//! Expansion of `${NAME}` in values, so that configuration files need no secrets.

use super::TransportError;

/// An error in a value with environment variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpansionError {
    /// A variable that is not set.
    #[error("needs the environment variable `{0}`, which is not set or not text")]
    NoVariable(String),
    /// A `${` without a name.
    #[error("has a `${{` without a name or without the closing `}}`; write `${{NAME}}`")]
    NoName,
}

/// Replaces `${NAME}` by the values of environment variables.
///
/// # Errors
/// If a variable is not set, or a `${` has no name and no `}`.
pub fn expand(value: &str) -> Result<String, ExpansionError> {
    let mut expanded = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (variable, after) =
            after.split_once('}').filter(|(name, _)| is_name(name)).ok_or(ExpansionError::NoName)?;
        expanded.push_str(before);
        expanded.push_str(&std::env::var(variable).map_err(|_| ExpansionError::NoVariable(variable.to_owned()))?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

pub(super) fn expand_for_hook(hook: &str, place: &str, value: &str) -> Result<String, TransportError> {
    expand(value).map_err(|why| TransportError::Expansion { hook: hook.to_owned(), place: place.to_owned(), why })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
