//! SHA-256 for records and Merkle trees.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A SHA-256 hash; its text form is 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl Hash {
    /// The predecessor of the first record.
    pub const ZERO: Self = Self([0; 32]);

    /// Returns the SHA-256 hash of bytes.
    pub fn sha256(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the hash of a Merkle tree leaf (RFC 6962) and of a record: over 0x00 and the bytes.
    pub fn leaf(bytes: &[u8]) -> Self {
        Self(Sha256::new_with_prefix([0]).chain_update(bytes).finalize().into())
    }

    /// Returns the hash of a Merkle tree node (RFC 6962): over 0x01 and the two child hashes.
    pub fn node(left: &Self, right: &Self) -> Self {
        Self(Sha256::new_with_prefix([1]).chain_update(left.0).chain_update(right.0).finalize().into())
    }

    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Creates the hash with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses 64 lower-case hexadecimal digits, the only text form of a hash.
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        let digits: &[u8; 64] = text.try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// Returns the 64 digits.
    pub fn to_hex(self) -> [u8; 64] {
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_hex(text.as_bytes()).ok_or_else(|| serde::de::Error::custom("not 64 hexadecimal digits"))
    }
}
