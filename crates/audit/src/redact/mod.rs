//! Redaction: secrets become markers before a record is hashed.
//!
//! A marker has the kind of the secret, its length and a keyed hash: readers of the log can compare two secrets without
//! learning them. Most records have none, which [`Redaction::could_match`] detects in a fraction of the time of
//! [`Redaction::apply`].

mod cards;
mod judge;
mod key_names;
mod literal;
mod names;
mod pattern;
mod prefilter;
mod reference;
mod rules;

use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use hmac::{Hmac, KeyInit, Mac};
use regex::Regex;
use serde_json::{Map, Value};
use sha2::Sha256;

use self::cards::CARD;
use self::pattern::Secret;
use self::rules::RuleSet;

/// A set of rules for replacing secrets.
///
/// A rule is a pattern for text, or the name of a field whose values are always secret. A secret becomes
/// `[redacted kind=<kind> len=<bytes> hmac=<16 hexadecimal digits>]`. Where secrets overlap, one marker covers
/// them all; its kind is that of the leftmost, then of the longest, then of the rule that was added first.
///
/// ```
/// use amplifier_audit::Redaction;
/// use serde_json::json;
///
/// let redaction = Redaction::standard().with_field("pin", "pin").with_pattern("badge", r"badge-(?<secret>\d{6})")?;
/// let mut body = json!({"card_pin": 1234, "text": "he showed badge-301422"});
/// redaction.apply(&[7; 32], &mut body);
///
/// assert_eq!(body["card_pin"], "[redacted kind=pin len=4 hmac=155a2ecba5e05a53]");
/// assert_eq!(body["text"], "he showed badge-[redacted kind=badge len=6 hmac=6e47af302a7c9c15]");
/// # Ok::<(), amplifier_audit::InvalidRule>(())
/// ```
#[derive(Clone)]
pub struct Redaction(Arc<RuleSet>);

/// A pattern that is not a valid regular expression.
#[derive(Debug, thiserror::Error)]
#[error("the pattern of rule `{kind}` is not a regular expression: {source}")]
pub struct InvalidRule {
    kind: String,
    source: Box<regex::Error>,
}

impl Redaction {
    /// Returns the built-in rules: keys and tokens of well-known services, private keys, passwords in URLs and assignments,
    /// card numbers, and fields with names such as `password`.
    #[must_use]
    pub fn standard() -> Self {
        static STANDARD: LazyLock<Redaction> = LazyLock::new(|| Redaction(Arc::new(RuleSet::standard())));
        STANDARD.clone()
    }

    /// Returns an empty set of rules.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::default())
    }

    /// Adds a regular expression. If it has a group named `secret`, only that part is replaced, else the whole match.
    ///
    /// Markers are never searched: the texts before and after one are searched separately. Every match should contain a
    /// literal of three or more characters, such as `badge-`; otherwise [`could_match`](Self::could_match) always returns
    /// `true`.
    ///
    /// # Errors
    /// If the pattern is not a regular expression.
    pub fn with_pattern(self, kind: &str, pattern: &str) -> Result<Self, InvalidRule> {
        let kind = marker_kind(kind);
        match Regex::new(pattern) {
            Ok(regex) => Ok(self.with(|rules| rules.add_regex(kind, regex))),
            Err(source) => Err(InvalidRule { kind, source: Box::new(source) }),
        }
    }

    /// Adds a field name. Strings and numbers below it are replaced completely, at any depth; `null`, booleans and empty
    /// strings stay.
    ///
    /// Comparison ignores the case of ASCII letters, `_` and `-`. The name also matches the last words of a longer one:
    /// `password` matches `db_password` and `dbPassword`, `token` does not match `tokens`. The longest name decides the
    /// kind. A name of only `_` and `-` has no effect.
    #[must_use]
    pub fn with_field(self, kind: &str, name: &str) -> Self {
        self.with(|rules| rules.add_field(marker_kind(kind), name))
    }

    /// Removes the rules of a kind. Rules of other kinds may still find the same text: the value of `token=…` is a `token`, whatever its form.
    #[must_use]
    pub fn without_kind(self, kind: &str) -> Self {
        self.with(|rules| rules.remove(kind))
    }

    /// Replaces the secrets in a value: in strings, in the keys of objects, and below the names of fields.
    ///
    /// Markers stay unchanged, so a second call has no effect. The time is linear in the length of the text.
    pub fn apply(&self, key: &[u8; 32], value: &mut Value) {
        // HMAC pads a short key with zeros to the size of a block. Done here, it cannot fail.
        let mut block = [0; 64];
        block[..32].copy_from_slice(key);
        Redactor { rules: &self.0, mac: Hmac::new(&block.into()) }.value(value, None);
    }

    /// Returns `true` if [`apply`](Self::apply) could change the value of this JSON; a fast check.
    ///
    /// `false` is always right, `true` nearly always. This holds for JSON in the form of the log: all bytes are between 0x20
    /// and 0x7E, printable ASCII other than `"` and `\` is never escaped, and the colon immediately follows a key.
    #[must_use]
    pub fn could_match(&self, ascii_json: &[u8]) -> bool {
        self.0.could_match(ascii_json)
    }

    /// Returns the kinds of secrets that the rules find, sorted.
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        let patterns = self.0.patterns.iter().map(|pattern| pattern.kind.as_str());
        let fields = self.0.fields.iter().map(|field| field.kind.as_str());
        let mut kinds: Vec<String> =
            patterns.chain(fields).chain(self.0.cards.then_some(CARD)).map(str::to_owned).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    fn with(self, change: impl FnOnce(&mut RuleSet)) -> Self {
        let mut rules = Arc::unwrap_or_clone(self.0);
        change(&mut rules);
        rules.index();
        Self(Arc::new(rules))
    }
}

// Patterns of users may contain secrets: only kinds are shown.
impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").field("kinds", &self.kinds()).finish_non_exhaustive()
    }
}

/// Returns the names that make their values secret by the standard rules: a kind, the values that count, and the names. Without a kind, a
/// value is no secret.
pub fn secret_names() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
    rules::secret_names()
}

/// Returns `true` if a text, or the JSON of a value, has a marker.
#[must_use]
pub fn has_marker(text: &str) -> bool {
    !find_marker(text).is_empty()
}

const MARKER: &str = "[redacted kind=";

/// The number of repeated searches between secrets, because a remaining part may match on its own.
const ROUNDS: usize = 8;

struct Redactor<'a> {
    rules: &'a RuleSet,
    mac: Hmac<Sha256>,
}

impl<'a> Redactor<'a> {
    /// `named` is the kind of the surrounding field, if its name marks it as secret.
    fn value(&self, value: &mut Value, named: Option<&str>) {
        match value {
            Value::String(text) => {
                if let Some(redacted) = self.text(text, named) {
                    *text = redacted;
                }
            }
            Value::Number(number) => {
                if let Some(redacted) = named.and_then(|kind| self.text(&number.to_string(), Some(kind))) {
                    *value = Value::String(redacted);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, named)),
            Value::Object(fields) => self.object(fields, named),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn object(&self, fields: &mut Map<String, Value>, named: Option<&str>) {
        let pair = self.pair(fields);
        let of_pair = |key: &str| pair.filter(|_| is_value(key));
        if !fields.keys().any(|key| self.text(key, None).is_some()) {
            fields.iter_mut().for_each(|(key, value)| {
                let kind = self.field(key, value).or(of_pair(key)).or(named);
                self.value(value, kind);
            });
            return;
        }
        for (key, mut value) in std::mem::take(fields) {
            let mut redacted = self.text(&key, None).unwrap_or_else(|| key.clone());
            // The new key counts, too, because a second run would use it.
            let kind = self.field(&key, &value).or_else(|| self.field(&redacted, &value));
            let kind = kind.or(of_pair(&key)).or(named);
            self.value(&mut value, kind);
            // The marker may exist already as a key. No value may be lost.
            while fields.contains_key(&redacted) {
                self.mark("duplicate", "", &mut redacted);
            }
            fields.insert(redacted, value);
        }
    }

    /// Returns the kind of the value in a pair such as `{"name": "DB_PASSWORD", "value": "…"}`.
    fn pair(&self, fields: &Map<String, Value>) -> Option<&'a str> {
        let value = fields.iter().find_map(|(key, value)| is_value(key).then_some(value))?;
        let mut names = fields.iter().filter(|(key, _)| key.to_ascii_lowercase().ends_with("name"));
        names.find_map(|(_, name)| self.field(name.as_str()?, value))
    }

    fn field(&self, key: &str, value: &Value) -> Option<&'a str> {
        let rules = self.rules;
        rules.field(key).or_else(|| rules.assigned_field(key, value.as_str()?))
    }

    /// Returns the text with markers, if it has secrets. In a named field the whole text is secret.
    fn text(&self, text: &str, named: Option<&str>) -> Option<String> {
        if named.is_none() && !self.rules.could_match(text.as_bytes()) {
            return None;
        }
        let (mut redacted, mut changed) = (String::new(), false);
        let mut rest = text;
        while !rest.is_empty() {
            let marker = find_marker(rest);
            let before = &rest[..marker.start];
            changed |= match named {
                Some(kind) if !before.is_empty() => {
                    self.mark(kind, before, &mut redacted);
                    true
                }
                _ => self.between_markers(before, 0, &mut redacted),
            };
            redacted.push_str(&rest[marker.clone()]);
            rest = &rest[marker.end..];
        }
        changed.then_some(redacted)
    }

    fn between_markers(&self, text: &str, round: usize, redacted: &mut String) -> bool {
        let secrets = self.rules.secrets(text);
        let Some(first) = secrets.first() else {
            redacted.push_str(text);
            return false;
        };
        if round == ROUNDS {
            self.mark(first.kind, text, redacted);
            return true;
        }
        let mut end = 0;
        for Secret { range, kind } in secrets {
            self.between_markers(&text[end..range.start], round + 1, redacted);
            self.mark(kind, &text[range.clone()], redacted);
            end = range.end;
        }
        self.between_markers(&text[end..], round + 1, redacted);
        true
    }

    fn mark(&self, kind: &str, secret: &str, text: &mut String) {
        let hash: [u8; 32] = self.mac.clone().chain_update(secret).finalize().into_bytes().into();
        let [a, b, c, d, e, f, g, h, ..] = hash;
        let digits = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        // Writing to a string cannot fail.
        let _ = write!(text, "{MARKER}{kind} len={} hmac={digits:016x}]", secret.len());
    }
}

/// The prefilter has the same rule.
fn is_value(key: &str) -> bool {
    key.eq_ignore_ascii_case("value")
}

/// Returns the range of the first marker, or the empty range at the end.
fn find_marker(text: &str) -> Range<usize> {
    let mut candidates = text.match_indices(MARKER);
    let found = candidates.find_map(|(at, _)| Some(at..text.len() - after_marker(&text[at..])?.len()));
    found.unwrap_or(text.len()..text.len())
}

fn after_marker(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(MARKER)?;
    let rest = rest.trim_start_matches(is_kind).strip_prefix(" len=")?;
    let rest = rest.trim_start_matches(|character: char| character.is_ascii_digit()).strip_prefix(" hmac=")?;
    let (digits, rest) = rest.split_at_checked(16)?;
    let hexadecimal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hexadecimal { rest.strip_prefix(']') } else { None }
}

fn is_kind(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}

/// Replaces the characters that are invalid in a marker's kind.
fn marker_kind(kind: &str) -> String {
    kind.chars().map(|character| if is_kind(character) { character } else { '_' }).collect()
}
