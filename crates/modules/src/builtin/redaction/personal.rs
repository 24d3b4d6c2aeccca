//! Personal data in text: candidates found by pattern, then confirmed by checks.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::Range;

use amplifier_audit::Redaction;
use regex::Regex;
use serde_json::{Map, Value};

use crate::condition::Scope;

/// A marker of an earlier replacement, which is left unchanged.
const MARKER: &str = r"\[redacted kind=[A-Za-z0-9_.-]* len=[0-9]* hmac=[0-9a-f]{16}\]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PersonalDataKind {
    Email,
    Phone,
    Iban,
    Card,
    IpAddress,
}

impl PersonalDataKind {
    pub(super) const ALL: [Self; 5] = [Self::Email, Self::Phone, Self::Iban, Self::Card, Self::IpAddress];

    /// Returns the name in markers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Iban => "iban",
            Self::Card => "card_number",
            Self::IpAddress => "ip_address",
        }
    }

    /// Returns the pattern of candidates.
    fn pattern(self) -> &'static str {
        match self {
            // A quote before an address belongs to the text around it.
            Self::Email => r"[\w.%+-][\w.%+'-]*@(?:[\w-]+\.)+[\w-]{2,}",
            Self::Phone => concat!(
                r"(?-u)\+[1-9][0-9]{0,2}(?:[ ./-]?\(?[0-9]{1,5}\)?){2,7}",
                r"|\([0-9]{2,5}\)[ ./-]?[0-9]{3,4}[ .-]?[0-9]{3,5}",
                r"|(?:1[ .-])?[0-9]{3}[ .-][0-9]{3}[ .-][0-9]{4}",
                r"|0[1-9][0-9]{1,4}[ ./-]{1,3}[0-9]{3,9}(?:[ -][0-9]{1,5}){0,3}",
            ),
            Self::Iban => r"(?-u)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}",
            Self::Card => r"(?-u)[0-9](?:[ -]?[0-9]){12,18}",
            Self::IpAddress => r"(?-u)(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}",
        }
    }

    /// Returns the end of the data if the candidate at this range is confirmed.
    fn confirm(self, text: &str, found: Range<usize>) -> Option<usize> {
        let Range { start, end } = found.clone();
        let looks = &text[found];
        let digits = looks.bytes().filter(u8::is_ascii_digit).count();
        let end = match self {
            // An email address needs no separator around it.
            Self::Email => return Some(end),
            Self::Phone => (8..=15).contains(&digits).then_some(end),
            // The candidate may include the next words, because account numbers are written in groups.
            Self::Iban => (start + 15..=end).rev().find(|&end| is_iban(&text[start..end])),
            Self::Card => is_card(looks).then_some(end),
            // Without a digit it is more likely code, such as `dead::beef`.
            Self::IpAddress => (digits > 0 && looks.parse().is_ok_and(is_remote)).then_some(end),
        };
        end.filter(|&end| stands_alone(text, start, end))
    }
}

/// Redacts the selected kinds of personal data.
pub(super) struct PersonalDataRedactor {
    marker: Regex,
    finders: Vec<Finder>,
}

struct Finder {
    kind: PersonalDataKind,
    regex: Regex,
    /// Creates markers like those of the audit log.
    mark: Redaction,
}

impl PersonalDataRedactor {
    pub(super) fn new(kinds: &[PersonalDataKind]) -> Result<Self, regex::Error> {
        let finders = kinds.iter().map(|&kind| {
            let mark = Redaction::none().with_field(kind.name(), kind.name());
            Ok(Finder { kind, regex: Regex::new(kind.pattern())?, mark })
        });
        Ok(Self { marker: Regex::new(MARKER)?, finders: finders.collect::<Result<_, _>>()? })
    }

    /// Redacts texts at any depth, and the names of fields.
    pub(super) fn redact(&self, value: &mut Value, scope: &Scope) {
        match value {
            Value::String(text) => {
                if let Some(redacted) = self.text(text, scope) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item, scope)),
            Value::Object(fields) => {
                for (name, mut value) in std::mem::take(fields) {
                    self.redact(&mut value, scope);
                    let name = self.text(&name, scope).unwrap_or(name);
                    fields.insert(name, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the redacted text; `None` if nothing was found.
    fn text(&self, text: &str, scope: &Scope) -> Option<String> {
        let mut text = Cow::Borrowed(text);
        for finder in &self.finders {
            let mut redacted = String::new();
            let (mut done, mut is_changed) = (0, false);
            for marker in self.marker.find_iter(&text) {
                is_changed |= finder.redact(&text[done..marker.start()], scope, &mut redacted);
                redacted.push_str(marker.as_str());
                done = marker.end();
            }
            is_changed |= finder.redact(&text[done..], scope, &mut redacted);
            if is_changed {
                text = redacted.into();
            }
        }
        match text {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        }
    }
}

impl Finder {
    /// Appends the redacted text to `redacted`; returns `false` if nothing was found.
    fn redact(&self, text: &str, scope: &Scope, redacted: &mut String) -> bool {
        let (mut done, mut from) = (0, 0);
        while let Some(found) = self.regex.find_at(text, from) {
            let start = found.start();
            match self.kind.confirm(text, found.range()) {
                Some(end) => {
                    redacted.push_str(&text[done..start]);
                    redacted.push_str(&self.marker(&text[start..end], scope));
                    (done, from) = (end, end);
                }
                // The text after the first character may be a candidate, too. The first character is ASCII.
                None => from = start + 1,
            }
        }
        redacted.push_str(&text[done..]);
        done > 0
    }

    fn marker(&self, found: &str, scope: &Scope) -> String {
        let name = self.kind.name();
        let mut marked = Value::Object(Map::from_iter([(name.to_owned(), Value::from(found))]));
        scope.redact_by(&self.mark, &mut marked);
        marked[name].as_str().unwrap_or("[redacted]").to_owned()
    }
}

/// Returns `true` if the range is not part of a longer word or number: neither `x1.2.3.4` nor `1.2.3.4.5` contains an address.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let is_free = |side: &mut dyn Iterator<Item = char>| match side.next() {
        Some('.') => !side.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => !c.is_alphanumeric() && c != '_',
        None => true,
    };
    is_free(&mut text[..start].chars().rev()) && is_free(&mut text[end..].chars())
}

/// Returns `true` if an address may identify a person's location; the local machine's does not.
fn is_remote(address: IpAddr) -> bool {
    !address.is_loopback() && !address.is_unspecified()
}

/// ISO 13616: the first four characters move to the end, letters become numbers, and the remainder modulo 97 is 1.
fn is_iban(text: &str) -> bool {
    let plain: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    if text.ends_with(' ') || !(15..=34).contains(&plain.len()) {
        return false;
    }
    let rest = plain[4..].iter().chain(&plain[..4]).fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte.to_ascii_uppercase() - b'A') + 10) % 97,
    });
    rest == 1
}

/// ISO 7812 (Luhn): every second digit from the right is doubled, and the sum of all digits is a multiple of ten.
fn is_card(text: &str) -> bool {
    let digits = text.bytes().rev().filter(u8::is_ascii_digit).map(|byte| u32::from(byte - b'0'));
    let sum: u32 =
        digits.enumerate().map(|(at, digit)| if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }).sum();
    sum > 0 && sum.is_multiple_of(10)
}
