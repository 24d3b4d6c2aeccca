//! Decides if a candidate is a secret, and returns its length.

use super::reference::{closes, is_capitalized, is_reference, is_reference_of_environment, is_tag};

/// Returns the length of the secret at the beginning of a group's match; 0 for a false positive.
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

/// Keys of Azure have more than forty characters of both cases, and digits.
pub(super) fn keep_base64_key(_group: usize, found: &str) -> usize {
    let value = without_closers(found);
    let has = |kind: fn(&u8) -> bool| value.as_bytes().iter().any(kind);
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    if value.len() > 40 && mixed && value.bytes().all(is_base64) { value.len() } else { 0 }
}

/// Keys without a typical form: hexadecimal digits, or letters of both cases and digits in no order.
pub(super) fn keep_random_key(group: usize, found: &str) -> usize {
    // The usual lengths of keys. The ids of commits and the fingerprints of public keys have 40 digits.
    let digits = found.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = matches!(found.len(), 32 | 48 | 64 | 96 | 128) && found.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && (1..found.len()).contains(&digits) { found.len() } else { keep_mixed_key(group, found) }
}

/// Keys in Base64.
pub(super) fn keep_mixed_key(_group: usize, found: &str) -> usize {
    let has = |kind: fn(&u8) -> bool| found.as_bytes().iter().any(kind);
    let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    // Digits and neighbouring capitals are frequent in random text, and rare in `TheKeyOfUserProfile2`.
    let digits = found.bytes().filter(u8::is_ascii_digit).count();
    let capitals = found.as_bytes().windows(2).filter(|pair| pair.iter().all(u8::is_ascii_uppercase)).count();
    // Public keys of SSH, and keys and certificates in DER, whose private ones are found by their form.
    let is_public = found.starts_with("AAAA") || found.starts_with("MII");
    let is_random = found.len() >= 32 && mixed && (digits + capitals) * 8 >= found.len() && !is_public;
    if is_random { found.len() } else { 0 }
}

/// The id of a commit has as many characters as a secret access key.
pub(super) fn keep_unless_hash(_group: usize, found: &str) -> usize {
    if found.bytes().all(|byte| byte.is_ascii_hexdigit()) { 0 } else { found.len() }
}

/// `token=abc` is a secret; `token: abc` is prose, unless its value looks like a secret.
pub(super) fn keep_assigned(group: usize, found: &str) -> usize {
    match group {
        ENVIRONMENT if is_reference_of_environment(found) => 0,
        TIGHT if is_reference(found) && !is_capitalized(without_closers(found)) => 0,
        LOOSE if is_reference(found) => 0,
        LOOSE => keep_if_credible(group, found),
        ENVIRONMENT | TIGHT => keep_unless_placeholder(group, without_closers(found)),
        _ => keep_unless_placeholder(group, found),
    }
}

/// Passwords may be words: `password: swordfish` is a secret, but not `password: String`.
pub(super) fn keep_password(group: usize, found: &str) -> usize {
    match group {
        LOOSE if found.len() <= PLACEHOLDER && found.find('(').is_some_and(|at| closes(&found[at..])) => 0,
        LOOSE if is_reference(found) || is_tag(found) => 0,
        LOOSE => keep_unless_placeholder(group, without_closers(found)),
        _ => keep_assigned(group, found),
    }
}

/// `POSTGRES_PASSWORD: MyPassword` is a secret, but not `DB_PASSWORD: dbPassword`, which names a variable.
pub(super) fn keep_entry(_group: usize, found: &str) -> usize {
    let value = without_closers(found);
    if is_capitalized(value) { keep_unless_placeholder(LOOSE, value) } else { keep_password(LOOSE, found) }
}

// The groups of an assignment without quotes around the value: `NAME=value`, `name=value`, and with spaces or a colon.
const ENVIRONMENT: usize = 1;
const TIGHT: usize = 6;
const LOOSE: usize = 7;

/// Removes the punctuation that closes the sentence or bracket around the value.
fn without_closers(value: &str) -> &str {
    value.trim_end_matches([',', '.', ')', ']', '}', '\\'])
}

fn is_credible(value: &str) -> bool {
    let has_digit = || value.bytes().any(|byte| byte.is_ascii_digit());
    value.len() > PLACEHOLDER || (value.len() >= 6 && !is_placeholder(value) && !value.contains('(') && has_digit())
}

/// The longest placeholder. It bounds the time for text that is full of false positives.
pub(super) const PLACEHOLDER: usize = 64;

/// Returns `true` for text in the position of a secret that only names it, or its type, or already hides it.
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
