//! Encryption of push messages: RFC 8291, with the content encoding `aes128gcm` of RFC 8188.
//!
//! Only the browser of the subscription can read a message. Messages are padded, so that the push service does not learn
//! their length either.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// Size of every message before encryption, in bytes. A push service must accept 4,096 bytes with header and tag.
pub(super) const PADDED: usize = 2048;

/// Size of a record as the header states it. A message is one record, and shorter.
const RECORD: u32 = 4096;

/// The keys of a subscription, which the browser made.
#[derive(Clone, Copy)]
pub(super) struct SubscriberKeys {
    /// The uncompressed point of P-256.
    pub(super) public: [u8; 65],
    pub(super) auth: [u8; 16],
}

/// Encrypts a message, padded to [`PADDED`] bytes, for one subscription.
///
/// # Errors
/// If the message is too long, the public key is no point of the curve, or the system has no randomness.
pub(super) fn encrypt(keys: &SubscriberKeys, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let random = SystemRandom::new();
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &random)?;
    let own_public = own.compute_public_key()?;
    let mut salt = [0; 16];
    random.fill(&mut salt)?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, keys.public);
    let padding = PADDED.checked_sub(message.len()).ok_or(Unspecified)?;
    agree_ephemeral(own, &theirs, |secret| seal(secret, keys, own_public.as_ref(), &salt, message, padding))?
}

/// Encrypts a message with the shared secret of both keys.
fn seal(
    secret: &[u8],
    keys: &SubscriberKeys,
    own_public: &[u8],
    salt: &[u8; 16],
    message: &[u8],
    padding: usize,
) -> Result<Vec<u8>, Unspecified> {
    let mut input = [0; 32];
    derive(&keys.auth, secret, &[b"WebPush: info\0", &keys.public, own_public], &mut input)?;
    let (mut key, mut nonce) = ([0; 16], [0; 12]);
    derive(salt, &input, &[b"Content-Encoding: aes128gcm\0"], &mut key)?;
    derive(salt, &input, &[b"Content-Encoding: nonce\0"], &mut nonce)?;

    let id_length = u8::try_from(own_public.len()).map_err(|_| Unspecified)?;
    let header = [salt, RECORD.to_be_bytes().as_slice(), &[id_length], own_public].concat();
    // The byte 2 marks the end of the last record; zeros follow it.
    let mut record = [message, &[2]].concat();
    record.resize(record.len() + padding, 0);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)?;
    Ok([header, record].concat())
}

/// Derives a key of the output's length by HKDF with SHA-256.
fn derive(salt: &[u8], input: &[u8], info: &[&[u8]], output: &mut [u8]) -> Result<(), Unspecified> {
    let key = Salt::new(HKDF_SHA256, salt).extract(input);
    key.expand(info, OutputLength(output.len()))?.fill(output)
}

struct OutputLength(usize);

impl KeyType for OutputLength {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes<const N: usize>(text: &str) -> [u8; N] {
        URL_SAFE_NO_PAD.decode(text).unwrap().try_into().unwrap()
    }

    #[test]
    fn the_example_of_rfc_8291_is_encrypted_as_its_appendix_a_has_it() {
        let keys = SubscriberKeys {
            public: bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
            auth: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
        };
        let secret: [u8; 32] = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let own: [u8; 65] =
            bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8");
        let message = b"When I grow up, I want to be a watermelon";
        let sealed = seal(&secret, &keys, &own, &bytes("DGv6ra1nlYgDCS1FRnbzlw"), message, 0).unwrap();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(sealed),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK\
             6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn messages_of_all_lengths_look_alike() {
        let keys = SubscriberKeys {
            public: bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
            auth: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
        };
        let [empty, long] = [0, PADDED].map(|length| encrypt(&keys, &vec![b'x'; length]).unwrap());
        assert_eq!((empty.len(), long.len()), (2151, 2151));
        assert!(encrypt(&keys, &[b'x'; PADDED + 1]).is_err());
        assert!(encrypt(&SubscriberKeys { public: [4; 65], ..keys }, b"").is_err(), "no point of the curve");
    }
}
