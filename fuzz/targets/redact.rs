//! Redaction, with the standard rules and with those of a user: it does not panic, doing it twice changes nothing more,
//! and the fast look never says that there is nothing where there is something.
//!
//! The first line of an input is a pattern, the second the name of a field (both may be empty), the rest JSON or text.
#![no_main]

use std::fmt::Write;

use amplifier_audit::Redaction;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const KEY: &[u8; 32] = &[7; 32];

fuzz_target!(|input: &[u8]| {
    let input = String::from_utf8_lossy(input);
    let mut parts = input.splitn(3, '\n');
    let [pattern, field, text] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let Some(redaction) = redaction(pattern, field) else { return };
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());

    let mut once = value.clone();
    redaction.apply(KEY, &mut once);
    let mut twice = once.clone();
    redaction.apply(KEY, &mut twice);
    assert_eq!(once, twice, "doing it twice changed more");
    if once != value {
        let json = ascii(&value);
        assert!(redaction.could_match(json.as_bytes()), "missed by the fast look: {json}");
    }
});

/// The standard rules, with those of the user.
fn redaction(pattern: &str, field: &str) -> Option<Redaction> {
    let mut redaction = Redaction::standard();
    if !pattern.is_empty() {
        redaction = redaction.with_pattern("pattern", pattern).ok()?;
    }
    if !field.is_empty() {
        redaction = redaction.with_field("field", field);
    }
    Some(redaction)
}

/// JSON as the log writes it.
fn ascii(value: &Value) -> String {
    let mut ascii = String::new();
    for character in value.to_string().chars() {
        if (' '..='~').contains(&character) {
            ascii.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(ascii, "\\u{unit:04x}").unwrap();
            }
        }
    }
    ascii
}
