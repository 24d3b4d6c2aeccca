//! Text patterns in which `*` stands for any text, also the empty one.

pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    // The earliest match of each middle part leaves the most room for the next ones.
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("tool:*", "tool:pre", true),
            ("tool:*", "tool:", true),
            ("tool:*", "tools:pre", false),
            ("*", "anything:else", true),
            ("*:pre", "tool:pre", true),
            ("*:pre", "tool:post", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ba", "aba", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("**", "", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} ~ {text}");
        }
    }
}
