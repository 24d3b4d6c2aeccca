//! Personal data in text: what looks like it, and is it on a second look.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::Range;

use amplifier_audit::Redaction;
use regex::Regex;
use serde_json::{Map, Value};

use crate::condition::Scope;

/// A marker: what is inside it has been replaced already.
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
    /// What markers call it.
    fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Iban => "iban",
            Self::Card => "card_number",
            Self::IpAddress => "ip_address",
        }
    }

    /// What looks like it.
    fn pattern(self) -> &'static str {
        match self {
            Self::Email => r"[\w.%+'-]+@(?:[\w-]+\.)+[\w-]{2,}",
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

    /// Where what it is after all ends, if what looks like it at this place of the text is it.
    fn confirm(self, text: &str, found: Range<usize>) -> Option<usize> {
        let Range { start, end } = found.clone();
        let looks = &text[found];
        let digits = looks.bytes().filter(u8::is_ascii_digit).count();
        let end = match self {
            // Whatever stands around it, it is one.
            Self::Email => return Some(end),
            Self::Phone => (8..=15).contains(&digits).then_some(end),
            // The next words may have come along, because an account is written in groups.
            Self::Iban => (start + 15..=end).rev().find(|&end| is_iban(&text[start..end])),
            Self::Card => is_card(looks).then_some(end),
            // Without a digit it is rather code, such as `dead::beef`.
            Self::IpAddress => (digits > 0 && looks.parse().is_ok_and(is_remote)).then_some(end),
        };
        end.filter(|&end| stands_alone(text, start, end))
    }
}

/// Replaces the chosen kinds.
pub(super) struct PersonalDataRedactor {
    marker: Regex,
    finders: Vec<Finder>,
}

struct Finder {
    kind: PersonalDataKind,
    regex: Regex,
    /// Makes the markers, which are those of the audit log.
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

    /// Replaces them in texts at any depth, and in the names of fields.
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

    /// The text with markers, if something was found.
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
    /// Adds the text with markers to what there is; false if nothing was found.
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
                // What is behind the first character may still be one. That is ASCII.
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

/// Whether no longer word or number holds it: neither `x1.2.3.4` nor `1.2.3.4.5` is an address.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let is_free = |side: &mut dyn Iterator<Item = char>| match side.next() {
        Some('.') => !side.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => !c.is_alphanumeric() && c != '_',
        None => true,
    };
    is_free(&mut text[..start].chars().rev()) && is_free(&mut text[end..].chars())
}

/// Whether an address says where somebody is: the machine itself is nowhere else.
fn is_remote(address: IpAddr) -> bool {
    !address.is_loopback() && !address.is_unspecified()
}

/// ISO 13616: the first four characters go to the end, letters become numbers, and 97 leaves 1.
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

/// ISO 7812: every second digit from the right is doubled, and ten divides the sum of all digits.
fn is_card(text: &str) -> bool {
    let digits = text.bytes().rev().filter(u8::is_ascii_digit).map(|byte| u32::from(byte - b'0'));
    let sum: u32 =
        digits.enumerate().map(|(at, digit)| if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }).sum();
    sum > 0 && sum.is_multiple_of(10)
}
