//! Key rotation, by this and by other processes.

use super::Appender;
use crate::error::AuditError;
use crate::keys::{PublicKey, SigningKey};
use crate::note::{Checkpoint, Note, rotation_text};
use crate::record::Kind;
use crate::tail::KeyRotation;

impl Appender {
    pub(crate) fn rotate_key(&mut self, new: SigningKey) -> Result<(), AuditError> {
        let mut result = Ok(());
        self.locked(|log| {
            // The file has both keys until the record of the new one is safe, so that the active one is always there. The old key is
            // deleted, so the record that activated it must be safe, too.
            log.sync()?;
            if let Some(file) = &log.settings.key_file {
                result = log.key.keep_alone(file).and_then(|()| new.keep_behind(file)).map_err(AuditError::from);
            }
            if result.is_err() {
                return Ok(());
            }
            let public_key = new.public();
            if log.tail.uncovered >= log.tail.every {
                log.put_checkpoint();
            }
            let text = rotation_text(&log.tail.log, log.tail.size, &log.tail.head, &public_key);
            let note = Note::sign(text, &Checkpoint::origin(&log.tail.log), &log.key).to_string();
            log.put_own(Kind::KeyRotation, None, &KeyRotation { public_key, note: note.clone() });
            log.tail.rotate(public_key, note);
            // Until the new key has signed all existing records, the old key is enough to rewrite them.
            let old = std::mem::replace(&mut log.key, new);
            log.put_checkpoint();
            log.kept_beside = None;
            if let Err(error) = log.sync() {
                log.key = old;
                return Err(error);
            }
            log.is_new_key = true;
            if let Some(file) = &log.settings.key_file {
                result = log.key.keep_alone(file).map_err(AuditError::OldKeyStays);
            }
            Ok(())
        })?;
        // What failed here has not harmed what was appended.
        result
    }

    pub(super) fn check_key(&mut self) -> Result<(), AuditError> {
        if self.tail.key == self.key.public() {
            return Ok(());
        }
        // Another process may have rotated keys, or was killed while it did.
        if let Some((first, next)) = self.kept_keys()
            && let Some(key) = [Some(first), next].into_iter().flatten().find(|key| key.public() == self.tail.key)
        {
            self.key = key;
            self.is_new_key = true;
            return Ok(());
        }
        let (expected, given) = (self.tail.key.to_string(), self.key.public().to_string());
        Err(AuditError::WrongKey { expected, given })
    }

    /// Removes inactive keys from the key file after an interrupted rotation. The record that activated the key must be safe.
    pub(super) fn settle_key(&self) {
        if let Some(file) = &self.settings.key_file
            && self.kept_keys().is_some_and(|(_, next)| next.is_some())
            && let Err(error) = self.key.keep_alone(file)
        {
            // The active key can still be read.
            tracing::warn!(%error, "an inactive key could not be removed from the key file of the audit log");
        }
    }

    /// Returns `true` if the predecessor of this key may be deleted.
    pub(super) fn is_settled(&self, key: &PublicKey) -> bool {
        self.kept_keys().is_some_and(|(first, _)| first.public() == *key)
    }

    fn kept_keys(&self) -> Option<(SigningKey, Option<SigningKey>)> {
        self.settings.key_file.as_ref().and_then(|file| SigningKey::load_all(file).ok())
    }
}
