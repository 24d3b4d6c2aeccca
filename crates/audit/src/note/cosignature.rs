//! Signatures of witnesses (<https://c2sp.org/tlog-cosignature>): the time at which they saw a checkpoint.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Note, Signature};
use crate::{PublicKey, SigningKey};

/// The type of timestamped Ed25519 signatures in signed notes.
const COSIGNATURE: u8 = 4;

impl Note {
    /// Adds a witness's signature, with the time at which it saw the note.
    #[must_use]
    pub fn cosign(mut self, name: &str, key: &SigningKey, at: SystemTime) -> Self {
        let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let signature = key.sign(cosigned_text(&self.text, seconds).as_bytes());
        let bytes = [seconds.to_be_bytes().as_slice(), &signature].concat();
        let key_hash = key.public().typed_hash_for(name, COSIGNATURE);
        self.signatures.push(Signature { name: name.to_owned(), key_hash, bytes });
        self
    }

    /// Returns the time at which this witness saw the note; `None` unless it has signed that.
    ///
    /// A forged signature of this key invalidates the note, even if another one is valid.
    pub fn cosigned_at(&self, name: &str, key: &PublicKey) -> Option<SystemTime> {
        let key_hash = key.typed_hash_for(name, COSIGNATURE);
        let mut earliest: Option<u64> = None;
        for claim in self.signatures.iter().filter(|claim| claim.name == name && claim.key_hash == key_hash) {
            let (seconds, signature) = claim.bytes.split_first_chunk()?;
            let seconds = u64::from_be_bytes(*seconds);
            if !key.verify(cosigned_text(&self.text, seconds).as_bytes(), signature.try_into().ok()?) {
                return None;
            }
            earliest = Some(earliest.map_or(seconds, |earlier| earlier.min(seconds)));
        }
        UNIX_EPOCH.checked_add(Duration::from_secs(earliest?))
    }
}

fn cosigned_text(text: &str, seconds: u64) -> String {
    format!("cosignature/v1\ntime {seconds}\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed([seed; 32])
    }

    #[test]
    fn a_cosignature_says_who_saw_the_note_and_when() {
        let at = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let note = Note::sign("text\n".to_owned(), "log", &key(1)).cosign("witness", &key(2), at);
        let note = Note::parse(note.to_string()).unwrap();
        assert_eq!(note.cosigned_at("witness", &key(2).public()), Some(at));
        assert!(note.is_signed_by("log", &key(1).public()), "the log's own signature stays");
        assert_eq!(note.cosigned_at("witness", &key(3).public()), None);
        assert_eq!(note.cosigned_at("other", &key(2).public()), None);
        assert_eq!(note.cosigned_at("log", &key(1).public()), None, "another type of signature");
    }

    #[test]
    fn no_byte_of_a_cosigned_note_can_be_changed() {
        let note = Note::sign("text\n".to_owned(), "log", &key(1)).cosign("witness", &key(2), UNIX_EPOCH);
        let bytes = note.to_string().into_bytes();
        let is_good = |bytes: &[u8]| {
            Note::parse(bytes).is_ok_and(|note| {
                note.is_signed_by("log", &key(1).public()) && note.cosigned_at("witness", &key(2).public()).is_some()
            })
        };
        assert!(is_good(&bytes));
        for place in 0..bytes.len() {
            for bit in [0x20, 0x01, 0x80] {
                let mut changed = bytes.clone();
                changed[place] ^= bit;
                assert!(!is_good(&changed), "{}", String::from_utf8_lossy(&changed));
            }
        }
    }

    #[test]
    fn a_forged_cosignature_beside_a_good_one_is_not_forgiven() {
        let note = Note::sign("text\n".to_owned(), "log", &key(1)).cosign("witness", &key(2), UNIX_EPOCH);
        let forged = Note::sign("other\n".to_owned(), "log", &key(1)).cosign("witness", &key(2), UNIX_EPOCH);
        let both = Note { signatures: [note.signatures.clone(), forged.signatures].concat(), ..note };
        assert_eq!(both.cosigned_at("witness", &key(2).public()), None);
    }
}
