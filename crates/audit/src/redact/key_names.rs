//! Names of keys as regular expressions.

/// The value of a key: a group, and the end of the word.
pub(super) const KEY_VALUE: &str = r"([A-Za-z0-9+/_-]{32,}={0,2})(?:\.?(?:[^A-Za-z0-9+/=_.(-]|$)|\.$)";

/// Characters of a name before the part that counts.
const ANY: &str = "[A-Za-z0-9_-]*";

/// Returns the pattern of a name in which `*` matches any part of a name, and `_` also a dash or nothing.
pub(super) fn pattern_of_name(name: &str) -> String {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return format!("(?-u:{})", name.replace('*', "[A-Z0-9_]*"));
    }
    format!("{ANY}(?i-u:{})", name.replace('_', "[_-]?").replace('*', ANY))
}

/// Returns the pattern of names whose values are not secret.
pub(super) fn pattern_of_public_names(names: &[&str]) -> String {
    // Lazy: the regular expression would share a greedy beginning with the other names, and prefer their longer one.
    format!("{ANY}?(?i-u:{})", names.join("|").replace('_', "[_-]?"))
}
