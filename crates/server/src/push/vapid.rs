//! The key that identifies this server to push services: VAPID, RFC 8292.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use amplifier_process::files::{AtomicFile, Durability};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use crate::access::{AccessError, check_private};

/// Lifetime of a signed token, in seconds; at most a day.
const LIFETIME: i64 = 12 * 60 * 60;

/// A signing key on P-256. Browsers accept messages only from the key that they subscribed with.
pub(super) struct VapidKey {
    pair: EcdsaKeyPair,
}

impl VapidKey {
    /// Reads the key from the server's folder, and creates it if it is missing.
    ///
    /// # Errors
    /// If the file cannot be read or created, other users can read it, or its content is invalid.
    pub(super) fn open(folder: &Path) -> Result<Self, AccessError> {
        let file = folder.join("push-key");
        let problem = |source| AccessError::File { file: file.clone(), source };
        if !file.try_exists().map_err(problem)? {
            let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
            let key = key.map_err(|_| problem(io::Error::other("no randomness available")))?;
            let mut new = AtomicFile::create(&file).map_err(problem)?;
            new.write_all(key.as_ref()).map_err(problem)?;
            match new.create_new(Durability::Synced) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(problem(error)),
                _ => {}
            }
        }
        check_private(&file)?;
        let key = fs::read(&file).map_err(problem)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &SystemRandom::new());
        let invalid = |error| {
            problem(io::Error::other(format!("invalid key: {error}; delete the file, and a new one is created")))
        };
        pair.map(|pair| Self { pair }).map_err(invalid)
    }

    /// Returns the public key as browsers expect it: the uncompressed point, as base64url.
    pub(super) fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref())
    }

    /// Returns the value of the header `Authorization` for a push service.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(super) fn authorization(&self, service: &str, contact: Option<&str>, now: Timestamp) -> io::Result<String> {
        let mut claims = json!({ "aud": service, "exp": now.as_second() + LIFETIME });
        if let Some(contact) = contact {
            claims["sub"] = contact.into();
        }
        let [header, claims] =
            [json!({ "typ": "JWT", "alg": "ES256" }), claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_| io::Error::other("no randomness available"))?;
        Ok(format!("vapid t={signed}.{}, k={}", URL_SAFE_NO_PAD.encode(signature), self.public()))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_only_the_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = VapidKey::open(folder.path()).unwrap().public();
        assert_eq!(VapidKey::open(folder.path()).unwrap().public(), first);
        let file = folder.path().join("push-key");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(VapidKey::open(folder.path()), Err(AccessError::Exposed(_))));
    }

    #[test]
    fn the_token_names_the_service_its_end_and_the_contact_and_is_signed() {
        let folder = tempfile::tempdir().unwrap();
        let key = VapidKey::open(folder.path()).unwrap();
        let now = Timestamp::from_second(1_000_000).unwrap();
        let authorization = key.authorization("https://push.example", Some("https://box.example"), now).unwrap();
        let (token, public) = authorization.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let claims: Value = serde_json::from_slice(&decode(signed.split_once('.').unwrap().1)).unwrap();
        let expected = json!({ "aud": "https://push.example", "exp": 1_043_200, "sub": "https://box.example" });
        assert_eq!(claims, expected);
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, decode(public));
        public.verify(signed.as_bytes(), &decode(signature)).unwrap();
    }

    #[test]
    fn a_broken_key_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("push-key");
        fs::write(&file, "no key").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let error = VapidKey::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("delete the file, and a new one is created"), "{error}");
    }
}
