//! The digest of the data that an approver agreed to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The nesting that JSON parsers accept; deeper data has no digest.
const DEEPEST: usize = 128;

/// SHA-256 over JSON with sorted keys and no spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// Data that is nested deeper than 128 levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data is nested deeper than {DEEPEST} levels")]
pub struct NestingError;

impl Digest {
    pub(crate) fn from_fields<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>) -> Result<Self, NestingError> {
        let mut text = Vec::new();
        write_object(fields, DEEPEST, &mut text)?;
        Ok(Self(Sha256::digest(&text).into()))
    }

    /// Returns the 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

// Written by hand, because the order of keys in `serde_json` depends on a feature that any crate may enable.
fn write_value(value: &Value, depth: usize, text: &mut Vec<u8>) -> Result<(), NestingError> {
    let depth = depth.checked_sub(1).ok_or(NestingError)?;
    match value {
        Value::Array(items) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write_value(item, depth, text)?;
            }
            text.push(b']');
        }
        Value::Object(map) => {
            write_object(map.iter().map(|(key, value)| (key.as_str(), value)), depth, text)?;
        }
        Value::String(string) => write_string(string, text),
        plain => text.extend_from_slice(plain.to_string().as_bytes()),
    }
    Ok(())
}

fn write_object<'a>(
    fields: impl Iterator<Item = (&'a str, &'a Value)>,
    depth: usize,
    text: &mut Vec<u8>,
) -> Result<(), NestingError> {
    let mut fields: Vec<_> = fields.collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    text.push(b'{');
    for (index, (key, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_string(key, text);
        text.push(b':');
        write_value(value, depth, text)?;
    }
    text.push(b'}');
    Ok(())
}

fn write_string(string: &str, text: &mut Vec<u8>) {
    // Writing JSON text into memory cannot fail.
    let _ = serde_json::to_writer(text, string);
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Text that is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid digest `{0}`; expected 64 hexadecimal digits")]
pub struct InvalidDigest(String);

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidDigest(text.to_owned());
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| invalid())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
