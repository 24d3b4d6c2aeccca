//! Whether what stands in the place of a secret is one, and how much of it.

/// How many bytes at the beginning of what a group has matched are the secret; none: it was a false alarm.
pub(super) type Judge = fn(group: usize, found: &str) -> usize;

pub(super) fn keep_all(_group: usize, found: &str) -> usize {
    found.len()
}

pub(super) fn keep_unless_placeholder(_group: usize, found: &str) -> usize {
    if is_placeholder(found) { 0 } else { found.len() }
}

pub(super) fn keep_if_credible(_group: usize, found: &str) -> usize {
    let value = without_closers(found);
    if is_credible(value) { value.len() } else { 0 }
}

/// `token=abc` is a secret and `token: abc` is prose, unless it looks like a secret.
pub(super) fn keep_assigned(group: usize, found: &str) -> usize {
    match group {
        LOOSE => keep_if_credible(group, found),
        TIGHT => keep_unless_placeholder(group, without_closers(found)),
        _ => keep_unless_placeholder(group, found),
    }
}

/// People choose words as passwords: `password: swordfish` is a secret too, but not `password: String`.
pub(super) fn keep_password(group: usize, found: &str) -> usize {
    match group {
        LOOSE if found.len() <= PLACEHOLDER && found.contains('(') => 0,
        LOOSE => keep_unless_placeholder(group, without_closers(found)),
        _ => keep_assigned(group, found),
    }
}

// The groups of an assignment that have no quotes around the value: `name=value`, and with spaces or a colon.
const TIGHT: usize = 5;
const LOOSE: usize = 6;

/// Without what closes the sentence or the bracket that the value stands in.
fn without_closers(value: &str) -> &str {
    value.trim_end_matches([',', '.', ')', ']', '}', '\\'])
}

fn is_credible(value: &str) -> bool {
    let has_digit = || value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() > PLACEHOLDER || (value.len() >= 6 && !is_placeholder(value) && !value.contains('(') && has_digit())
}

/// No placeholder is longer than this. It bounds the time for text that is full of false alarms.
pub(super) const PLACEHOLDER: usize = 64;

/// Stands where a secret would, but names it, or its type, or hides it already.
fn is_placeholder(value: &str) -> bool {
    const WORDS: &str =
        "any bytes false hidden impl nil none null option optional redacted required str string true undefined";
    if value.len() > PLACEHOLDER {
        return false;
    }
    let is_variable = |name: &str| name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    match value.as_bytes() {
        [b'$', b'{' | b'(', ..] | [b'{' | b'<', ..] | [b'/', b'/', ..] | [b'%', b's'] => true,
        [b'$', ..] => is_variable(&value[1..]),
        [b'%', .., b'%'] => is_variable(&value[1..value.len() - 1]),
        bytes => {
            bytes.iter().all(|byte| b"*.-_xX".contains(byte))
                || WORDS.split(' ').any(|word| value.eq_ignore_ascii_case(word))
        }
    }
}
