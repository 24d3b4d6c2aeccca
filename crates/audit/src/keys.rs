//! The keys that sign checkpoints, and the key file.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{borrow::Cow, fmt};

use amplifier_process::files::{OpenOptionsExt, create_private_folder, exposed_mode, sync_folder};
use base64::{Engine, prelude::BASE64_STANDARD};
use ed25519_dalek::{Signature, Signer, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const FILE_PREFIX: &str = "amplifier-audit-key 1 ";
const FILE_BYTES: u64 = FILE_PREFIX.len() as u64 + 44 + 1;

/// The type of Ed25519 keys in signed notes.
const ED25519: u8 = 1;

/// An Ed25519 key that verifies signatures; its text form is base64.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Returns `true` if this key's owner signed the message.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        // Strict: a signature that only some verifiers accept is no evidence.
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }

    /// Returns the 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Returns the four bytes that identify this key under this name in signed notes.
    pub fn hash_for(&self, name: &str) -> [u8; 4] {
        self.typed_hash_for(name, ED25519)
    }

    /// Does the same for another type of signature.
    pub(crate) fn typed_hash_for(&self, name: &str, signature_type: u8) -> [u8; 4] {
        let hash = Sha256::new_with_prefix(name).chain_update([b'\n', signature_type]).chain_update(self.as_bytes());
        let [first, second, third, fourth, ..] = <[u8; 32]>::from(hash.finalize());
        [first, second, third, fourth]
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = bytes_of(text).ok_or(KeyError::NotPublic)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::NotPublic)?;
        // Anyone can sign for a weak key.
        if key.is_weak() { Err(KeyError::NotPublic) } else { Ok(Self(key)) }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_STANDARD.encode(self.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An Ed25519 key that signs.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Generates a key from the system's random numbers.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut_slice())?;
        Ok(Self::from_seed(*seed))
    }

    /// Creates the key of this seed.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// Returns the key for the hashes in redaction markers.
    pub fn redaction_key(&self) -> [u8; 32] {
        // HMAC pads a short key with zeros; a whole block cannot have a wrong length.
        let mut block = [0; 64];
        block[..32].copy_from_slice(self.0.as_bytes());
        let mac = Hmac::<Sha256>::new(&block.into()).chain_update(b"amplifier-audit redaction");
        mac.finalize().into_bytes().into()
    }

    /// Reads the key from its file; after an interrupted rotation, the old key.
    ///
    /// # Errors
    /// If the file is missing, accessible to other users, or invalid.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        Self::load_all(path).map(|(first, _)| first)
    }

    /// Does the same, and also returns the new key of an interrupted rotation.
    pub(crate) fn load_all(path: &Path) -> Result<(Self, Option<Self>), KeyError> {
        let file = File::open(path).map_err(KeyError::opening(path))?;
        // Of the open file, not of the path: the checked file is the one that is read.
        let metadata = file.metadata().map_err(KeyError::io(path))?;
        let malformed = || KeyError::Malformed { path: path.to_owned() };
        if !metadata.is_file() {
            return Err(malformed());
        }
        refuse_exposed(&metadata, path)?;
        // One byte more than two keys, to detect a longer file and to limit an endless one. Allocated at once: a growing buffer leaves copies
        // behind.
        let mut text = Zeroizing::new(Vec::with_capacity(4 * FILE_BYTES as usize));
        file.take(2 * FILE_BYTES + 1).read_to_end(&mut text).map_err(KeyError::io(path))?;
        if text.len() as u64 > 2 * FILE_BYTES {
            return Err(malformed());
        }
        // A crash may have torn one of the two keys. Then the other one is active.
        let mut keys = text.chunks(FILE_BYTES as usize).filter_map(Self::from_line);
        let first = keys.next().ok_or_else(malformed)?;
        Ok((first, keys.next()))
    }

    fn from_line(line: &[u8]) -> Option<Self> {
        let base64 = str::from_utf8(line).ok()?.strip_prefix(FILE_PREFIX)?.strip_suffix('\n')?;
        bytes_of(base64).map(Self::from_seed)
    }

    /// Creates a new key with its file and folders.
    ///
    /// # Errors
    /// If the file exists already (it stays unchanged) or cannot be written.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let key = Self::generate()?;
        make_folder(folder_of(path)).map_err(KeyError::io(path))?;
        let written = key.write_beside(path)?;
        // A link, because a rename would replace the key of a concurrent process.
        fs::hard_link(&written.0, path).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
            _ => KeyError::io(path)(source),
        })?;
        sync_folder(folder_of(path)).map_err(KeyError::io(path))?;
        Ok(key)
    }

    /// Reads the key from its file, or creates both; concurrent processes get the same key.
    ///
    /// # Errors
    /// If the file cannot be used or written.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyError> {
        match Self::load(path) {
            Err(KeyError::Missing { .. }) => match Self::create(path) {
                // Another process was faster. The file appears atomically, so its key can be read at once.
                Err(KeyError::Exists { .. }) => Self::load(path),
                created => created,
            },
            loaded => loaded,
        }
    }

    /// Removes all other keys from the file. The key can be read at every moment, if it could before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn keep_alone(&self, path: &Path) -> Result<(), KeyError> {
        change(path, |mut file| {
            file.write_all(self.line().as_bytes())?;
            // Durable before the other copy is removed.
            file.sync_all()?;
            file.set_len(FILE_BYTES)?;
            file.sync_all()
        })
    }

    /// Adds this key after the only one in the file, so that both can be read during a rotation.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn keep_behind(&self, path: &Path) -> Result<(), KeyError> {
        change(path, |mut file| {
            file.seek(SeekFrom::Start(FILE_BYTES))?;
            file.write_all(self.line().as_bytes())?;
            file.sync_all()
        })
    }

    fn line(&self) -> Zeroizing<String> {
        let base64 = Zeroizing::new(BASE64_STANDARD.encode(self.0.as_bytes()));
        Zeroizing::new(format!("{FILE_PREFIX}{}\n", *base64))
    }

    fn write_beside(&self, path: &Path) -> Result<Temporary, KeyError> {
        let temporary = Temporary::beside(path)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).owner_only();
        let write = |mut file: File| file.write_all(self.line().as_bytes()).and_then(|()| file.sync_all());
        options.open(&temporary.0).and_then(write).map_err(KeyError::io(path))?;
        Ok(temporary)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public()).finish_non_exhaustive()
    }
}

/// A key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file is missing.
    #[error("signing key `{}` not found; put the key of this log there, or create a new one", path.display())]
    Missing {
        /// The expected file.
        path: PathBuf,
    },
    /// Other users can read or write the file.
    #[error(
        "other users can read or write the signing key `{0}` (mode {mode:03o}); run `chmod 600 {0}`, \
         and then `amplifier audit rotate-key` if others may have read the key",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The permissions.
        mode: u32,
    },
    /// The file is not a key.
    #[error(
        "invalid signing key `{}`; expected one line of `amplifier-audit-key 1` and 44 characters of base64; \
         restore the file from a copy, or move the file away and create a new key",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The file for a new key exists already.
    #[error("`{}` already exists; load the key, or move the file away first", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("the signing key `{}` cannot be read or written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers for a key: {0}")]
    Random(#[from] getrandom::Error),
    /// The text is not a public key.
    #[error("invalid public key; expected the 44 characters of base64 of an Ed25519 key")]
    NotPublic,
}

impl KeyError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { path: path.to_owned(), source }
    }

    fn opening(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| match source.kind() {
            ErrorKind::NotFound => Self::Missing { path: path.to_owned() },
            _ => Self::io(path)(source),
        }
    }
}

/// A temporary file in the same folder as another; removed on drop.
struct Temporary(PathBuf);

impl Temporary {
    fn beside(path: &Path) -> Result<Self, KeyError> {
        Ok(Self(with_suffix(path, &format!(".{:016x}.new", getrandom::u64()?))))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A leftover is harmless: only its owner can read it, and nothing uses it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes to a key file in place: a sandbox mounts a cover over the file, and a new file would not have it.
fn change(path: &Path, write: impl FnOnce(File) -> io::Result<()>) -> Result<(), KeyError> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(KeyError::opening(path))
        .and_then(|file| write(file).map_err(KeyError::io(path)))
}

fn bytes_of(text: &str) -> Option<[u8; 32]> {
    let bytes = Zeroizing::new(BASE64_STANDARD.decode(text).ok()?);
    bytes.as_slice().try_into().ok()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a folder for its owner only, and its parents, durably.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    make_folder(folder_of(folder))?;
    create_private_folder(folder)?;
    sync_folder(folder_of(folder))
}

fn refuse_exposed(metadata: &Metadata, path: &Path) -> Result<(), KeyError> {
    match exposed_mode(metadata) {
        Some(mode) => Err(KeyError::Exposed { path: path.to_owned(), mode: mode & 0o777 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hash;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed([seed; 32])
    }

    #[cfg(unix)]
    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }

    fn write(path: &Path, content: &[u8]) {
        fs::write(path, content).unwrap();
        #[cfg(unix)]
        set_mode(path, 0o600);
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_first_vector_of_rfc_8032_comes_out() {
        let seed = Hash::from_hex(b"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
        let key = SigningKey::from_seed(*seed.as_bytes());
        let public = Hash::from_hex(b"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a").unwrap();
        assert_eq!(key.public().as_bytes(), public.as_bytes());
        let signature = key.sign(b"");
        assert_eq!(&signature[..4], [0xe5, 0x56, 0x43, 0x00]);
        assert!(key.public().verify(b"", &signature));
        assert!(!key.public().verify(b"other", &signature));
        for place in 0..64 {
            let mut other = signature;
            other[place] ^= 1;
            assert!(!key.public().verify(b"", &other), "byte {place}");
        }
    }

    #[test]
    fn the_key_hash_is_the_one_of_a_log_that_everybody_knows() {
        let type_and_key = BASE64_STANDARD.decode("Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8").unwrap();
        let key: PublicKey = BASE64_STANDARD.encode(&type_and_key[1..]).parse().unwrap();
        assert_eq!(key.hash_for("sum.golang.org"), [0x03, 0x3d, 0xe0, 0xae]);
    }

    #[test]
    fn the_redaction_key_is_an_hmac_of_the_seed() {
        let expected = Hash::from_hex(b"3085843739bc1f274b17e376bc58d9e44b96038930bd0b5d49ac8fa681bc8bdd").unwrap();
        assert_eq!(key(7).redaction_key(), *expected.as_bytes());
    }

    #[test]
    fn a_public_key_has_one_text() {
        let public = key(1).public();
        let text = public.to_string();
        assert_eq!(text.parse::<PublicKey>().unwrap(), public);
        let json = serde_json::to_string(&public).unwrap();
        assert_eq!(json, format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<PublicKey>(&json).unwrap(), public);

        let no_point = BASE64_STANDARD.encode([2; 32]);
        let weak = BASE64_STANDARD.encode({
            let mut one = [0; 32];
            one[0] = 1;
            one
        });
        let one_more = BASE64_STANDARD.encode([1; 33]);
        // The last character before the `=` has two bits that stand for nothing.
        let last = text.chars().nth(42).unwrap();
        let other_bits = text.replace(&format!("{last}="), &format!("{}=", char::from(last as u8 + 1)));
        let bad = [
            "",
            "AAAA",
            &text[..43],
            &format!("{text}\n"),
            &format!(" {text}"),
            &no_point,
            &weak,
            &one_more,
            &other_bits,
        ];
        for text in bad {
            assert!(matches!(text.parse::<PublicKey>(), Err(KeyError::NotPublic)), "{text:?}");
            assert!(serde_json::from_str::<PublicKey>(&format!("{text:?}")).is_err());
        }
    }

    #[test]
    fn the_secret_is_not_shown() {
        let shown = format!("{:?}", key(1));
        assert_eq!(shown, format!("SigningKey {{ public: {}, .. }}", key(1).public()));
    }

    #[test]
    fn a_created_key_can_be_loaded_and_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some/folder/audit.key");
        let created = SigningKey::create(&path).unwrap();
        assert_eq!(SigningKey::load(&path).unwrap().public(), created.public());
        assert!(matches!(SigningKey::create(&path), Err(KeyError::Exists { .. })));
        assert_eq!(SigningKey::load_or_create(&path).unwrap().public(), created.public());
        assert_eq!(names(path.parent().unwrap()), ["audit.key"]);
        assert_ne!(SigningKey::generate().unwrap().public(), created.public());
        #[cfg(unix)]
        for (path, expected) in [(path.as_path(), 0o600), (path.parent().unwrap(), 0o700)] {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
            assert_eq!(mode & 0o777, expected);
        }
    }

    #[test]
    fn the_file_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, key(0).line().as_bytes());
        let line = "amplifier-audit-key 1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), line);
        assert_eq!(line.len() as u64, FILE_BYTES);
    }

    #[test]
    fn a_malformed_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let line = format!("{FILE_PREFIX}{}\n", BASE64_STANDARD.encode([0; 32]));
        let cases = [
            String::new(),
            "\n".into(),
            line.trim_end().into(),
            format!("{line}{line}{line}"),
            format!("{line}{line}\n"),
            format!(" {line}"),
            line.replace('\n', "\r\n"),
            line.replace("key 1", "key 2"),
            line.replace("key 1 ", "key 1  "),
            line.replace("A=", "B="),
            line.replace("A=", "="),
            line.replace("AAAA", ""),
        ];
        for content in cases {
            write(&path, content.as_bytes());
            assert!(matches!(SigningKey::load(&path), Err(KeyError::Malformed { .. })), "{content:?}");
            assert!(matches!(SigningKey::load_or_create(&path), Err(KeyError::Malformed { .. })), "{content:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        write(&path, b"amplifier-audit-key 1 \xff\n");
        assert!(matches!(SigningKey::load(&path), Err(KeyError::Malformed { .. })));
        #[cfg(unix)]
        assert!(matches!(SigningKey::load(folder.path()), Err(KeyError::Malformed { .. })));
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_others_can_use_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        SigningKey::create(&path).unwrap();
        for mode in [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o666, 0o777] {
            set_mode(&path, mode);
            let error = SigningKey::load(&path).unwrap_err();
            assert!(matches!(error, KeyError::Exposed { mode: found, .. } if found == mode), "{mode:o}: {error}");
        }
        for mode in [0o400, 0o600, 0o700] {
            set_mode(&path, mode);
            SigningKey::load(&path).unwrap();
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let path = || PathBuf::from("/keys/a");
        let cases = [
            (
                KeyError::Missing { path: path() },
                "signing key `/keys/a` not found; put the key of this log there, or create a new one",
            ),
            (
                KeyError::Exposed { path: path(), mode: 0o44 },
                "other users can read or write the signing key `/keys/a` (mode 044); run `chmod 600 /keys/a`, \
                 and then `amplifier audit rotate-key` if others may have read the key",
            ),
            (KeyError::Exists { path: path() }, "`/keys/a` already exists; load the key, or move the file away first"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(SigningKey::load(&folder.path().join("none")), Err(KeyError::Missing { .. })));
    }

    #[test]
    fn those_who_race_get_the_same_key() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("keys/key");
            let start = std::sync::Barrier::new(8);
            let race = || {
                start.wait();
                SigningKey::load_or_create(&path).unwrap().public()
            };
            let keys: Vec<_> = std::thread::scope(|scope| {
                let racers: Vec<_> = (0..8).map(|_| scope.spawn(race)).collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect()
            });
            assert_eq!(keys, [SigningKey::load(&path).unwrap().public(); 8]);
            assert_eq!(names(path.parent().unwrap()), ["key"]);
        }
    }

    #[test]
    fn a_rotation_has_a_key_in_the_file_wherever_it_stops() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let load = || {
            let (first, next) = SigningKey::load_all(&path).unwrap();
            (first.public(), next.map(|key| key.public()))
        };
        let (old, new) = (key(1), key(2));
        write(&path, old.line().as_bytes());
        old.keep_alone(&path).unwrap();
        assert_eq!(load(), (old.public(), None));
        new.keep_behind(&path).unwrap();
        assert_eq!(load(), (old.public(), Some(new.public())));
        let both = fs::read(&path).unwrap();
        new.keep_alone(&path).unwrap();
        assert_eq!(load(), (new.public(), None));
        assert_eq!(fs::read_to_string(&path).unwrap(), *new.line());

        // The new key is on its way; then the old one is.
        for end in FILE_BYTES as usize..both.len() {
            write(&path, &both[..end]);
            assert_eq!(load(), (old.public(), None), "{end}");
        }
        for end in 0..FILE_BYTES as usize {
            write(&path, &[&new.line().as_bytes()[..end], &both[end..]].concat());
            let (first, next) = load();
            assert!(first == new.public() || next == Some(new.public()), "{end}");
            new.keep_alone(&path).unwrap();
            assert_eq!(load(), (new.public(), None), "{end}");
        }
        write(&path, &[&[0; FILE_BYTES as usize], &both[FILE_BYTES as usize..]].concat());
        assert_eq!(load(), (new.public(), None));
        assert_eq!(names(folder.path()), ["key"]);
    }
}
