//! The signed pointer to the policy of a group.

use std::collections::BTreeMap;

use amplifier_audit::{Hash, PublicKey, SigningKey};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PolicyError;
use crate::FleetName;

/// The first line of what the organisation signs, so that no other signature of its key counts.
const CONTEXT: &str = "amplifier-fleet policy 1\n";

/// The policy of a group: which bundle applies from when, and whose answers and receipts count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyPointer {
    /// The group.
    pub group: FleetName,
    /// The version, which only increases.
    pub version: u64,
    /// The hash of the bundle's archive.
    pub bundle: Hash,
    /// The time from which the policy applies.
    pub not_before: Timestamp,
    /// The keys of the consoles that may answer.
    pub consoles: BTreeMap<FleetName, PublicKey>,
    /// The keys of the collectors whose receipts count.
    pub collectors: BTreeMap<FleetName, PublicKey>,
}

impl PolicyPointer {
    /// Returns the signed text: the pointer as one line of JSON, and the signature as a line of base64.
    ///
    /// # Errors
    /// Never with the fields of a pointer.
    pub fn sign(&self, key: &SigningKey) -> Result<String, PolicyError> {
        let text = serde_json::to_string(self).map_err(PolicyError::malformed)?;
        let signature = key.sign(format!("{CONTEXT}{text}").as_bytes());
        Ok(format!("{text}\n{}\n", BASE64_STANDARD.encode(signature)))
    }

    /// Reads a signed text.
    ///
    /// # Errors
    /// If the text is malformed, or its signature is not that of `key`.
    pub fn verify(signed: &[u8], key: &PublicKey) -> Result<Self, PolicyError> {
        let text = str::from_utf8(signed).map_err(PolicyError::malformed)?;
        let (text, signature) = text.split_once('\n').ok_or_else(|| PolicyError::malformed("no signature"))?;
        let signature = BASE64_STANDARD.decode(signature.trim_end()).map_err(PolicyError::malformed)?;
        let signature: [u8; 64] = signature.try_into().map_err(|_| PolicyError::malformed("not a signature"))?;
        if !key.verify(format!("{CONTEXT}{text}").as_bytes(), &signature) {
            return Err(PolicyError::BadSignature);
        }
        serde_json::from_str(text).map_err(PolicyError::malformed)
    }
}
