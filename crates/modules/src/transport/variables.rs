//! `${NAME}` in values, so that configuration files need not hold secrets.

use super::TransportError;

/// Puts the values of environment variables in the places of their names.
pub(super) fn expand(hook: &str, place: &str, value: &str) -> Result<String, TransportError> {
    let mut expanded = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (variable, after) = after
            .split_once('}')
            .filter(|(name, _)| is_name(name))
            .ok_or_else(|| TransportError::NoName { hook: hook.to_owned(), place: place.to_owned() })?;
        expanded.push_str(before);
        expanded.push_str(&std::env::var(variable).map_err(|_| TransportError::NoVariable {
            hook: hook.to_owned(),
            place: place.to_owned(),
            variable: variable.to_owned(),
        })?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
