//! Subscripts in text: arithmetic that evaluates `name[$(command)]` runs the command, regardless of quotes.

/// Returns `true` if a command may occur in brackets of a text, or in brackets that another text closes. `[0-9]` and
/// `[[:alpha:]]` are closed and contain none; quoted text may contain an unclosed bracket.
pub(super) fn opens(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('[') {
        let Some((inner, after)) = after.split_once(']') else { return true };
        let inner = inner.strip_prefix("[:").unwrap_or(inner);
        if inner.contains(['$', '`', '\'', '"', '\\', '[']) {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns `true` if a text contains a shell command. Arithmetic and fields of `awk` do not count.
pub(super) fn has_command(text: &str) -> bool {
    let is_command = |rest: &str| match rest.strip_prefix('(') {
        Some(inner) => !is_sum(inner),
        None => !rest.starts_with("NF"),
    };
    text.contains('`') || text.split("$(").skip(1).any(is_command)
}

/// Returns `true` if another text may complete the end of this one to a command. Patterns for whole lines have the same end.
pub(super) fn ends_in_dollar(text: &str) -> bool {
    text.ends_with('$') && !text.starts_with('^')
}

/// Returns `true` if `inner))` is plain arithmetic.
fn is_sum(inner: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '*' | '/' | '%' | ' ' | '$');
    inner.trim_start_matches(is_plain).starts_with("))")
}

#[cfg(test)]
mod tests {
    use super::{has_command, opens};

    #[test]
    fn a_command_in_a_subscript_is_distinguished_from_patterns_and_sums() {
        for hidden in ["a[$(id)]", "a[`id`]", "a[b[1]+$(id)]", "a[\"]\"$(id)]", "[$(id)]", "a[$((id) )]", "[ $(id)]"] {
            assert!(opens(hidden) && has_command(hidden), "{hidden}");
        }
        for plain in
            ["^[0-9]+$(x)", "v[0-9]", "[[:alpha:]]+$(x)", "a[$((i+1))]", "{a[$(NF-1)]++}", "arr[$i]", "[ -f x ]"]
        {
            assert!(!(opens(plain) && has_command(plain)), "{plain}");
        }
    }
}
