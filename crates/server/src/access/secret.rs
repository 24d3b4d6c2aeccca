//! Secrets: creation, storage and comparison.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Returns 256 random bits as text for a URL, a header or a cookie.
pub(super) fn secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// SHA-256 of a secret, stored in its place. Secrets are random, so a slow hash is not needed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn from_secret(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Proves knowledge of the secret's digest to a client that has the secret, about a message.
    pub(super) fn prove(&self, message: &str) -> String {
        // HMAC pads a short key with zeros to the block size. Padding here leaves no case that could fail.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(message.as_bytes());
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    }

    /// Compares in constant time.
    pub(super) fn matches(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl From<Digest> for String {
    fn from(Digest(bytes): Digest) -> Self {
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("invalid SHA-256")
    }
}
