//! A folder with a bundle as one content-addressed text.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Component, Path};

use amplifier_audit::Hash;
use amplifier_process::files::{AtomicFile, Durability, create_private_folder, is_executable, read_regular};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::PolicyError;

/// The bundle in the folder.
const BUNDLE: &str = "bundle.yaml";
const MAX_FILES: usize = 1000;
const MAX_BYTES: usize = 16 << 20;

/// A folder with a bundle and its files. Equal content has an equal text, and so an equal hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleArchive {
    text: Vec<u8>,
    files: BTreeMap<String, ArchivedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchivedFile {
    #[serde(with = "base64_text")]
    content: Vec<u8>,
    is_executable: bool,
}

impl BundleArchive {
    /// Reads all files in a folder, except below `.git`.
    ///
    /// # Errors
    /// If there is no `bundle.yaml`, a file is unreadable, a link or not regular, or there are too many.
    pub fn pack(folder: &Path) -> Result<Self, PolicyError> {
        let mut files = BTreeMap::new();
        add_folder(folder, "", &mut files)?;
        if !files.contains_key(BUNDLE) {
            let cause = format!("it has no file `{BUNDLE}`");
            return Err(PolicyError::Unpublishable { path: folder.to_owned(), cause });
        }
        let text = serde_json::to_vec(&files).map_err(PolicyError::malformed)?;
        Ok(Self { text, files })
    }

    /// Reads an archive from its text, which must have this hash.
    ///
    /// # Errors
    /// If the hash differs, or the text is not an archive.
    pub fn from_text(text: Vec<u8>, expected: Hash) -> Result<Self, PolicyError> {
        let found = Hash::sha256(&text);
        if found != expected {
            return Err(PolicyError::OtherContent { found, expected });
        }
        let files: BTreeMap<String, ArchivedFile> = serde_json::from_slice(&text).map_err(PolicyError::malformed)?;
        match files.keys().find(|path| !is_inside(path)) {
            Some(path) => Err(PolicyError::malformed(format!("`{path}` is not a path in the archive"))),
            None if !files.contains_key(BUNDLE) => Err(PolicyError::malformed(format!("no file `{BUNDLE}`"))),
            None => Ok(Self { text, files }),
        }
    }

    /// Returns the text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the hash of the text.
    pub fn hash(&self) -> Hash {
        Hash::sha256(&self.text)
    }

    /// Writes the files to a folder.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn unpack(&self, folder: &Path) -> Result<(), PolicyError> {
        for (path, ArchivedFile { content, is_executable }) in &self.files {
            let file = folder.join(path);
            let parent = file.parent().unwrap_or(folder);
            create_private_folder(parent).map_err(PolicyError::file(parent))?;
            let mode = if *is_executable { 0o700 } else { 0o600 };
            let written = AtomicFile::create_with_mode(&file, mode).and_then(|mut new| {
                new.write_all(content)?;
                new.replace(Durability::Synced)
            });
            written.map_err(PolicyError::file(&file))?;
        }
        Ok(())
    }

    /// Returns the path of the bundle in an unpacked archive.
    pub(super) fn bundle(folder: &Path) -> std::path::PathBuf {
        folder.join(BUNDLE)
    }
}

/// `true` for a relative path that stays in its folder.
fn is_inside(path: &str) -> bool {
    let parts = Path::new(path).components();
    !path.is_empty()
        && !path.contains(['\\', '\0'])
        && parts.into_iter().all(|part| matches!(part, Component::Normal(_)))
}

fn add_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, ArchivedFile>) -> Result<(), PolicyError> {
    let unpublishable =
        |path: &Path, cause: &str| PolicyError::Unpublishable { path: path.to_owned(), cause: cause.to_owned() };
    for entry in fs::read_dir(folder).map_err(PolicyError::file(folder))? {
        let entry = entry.map_err(PolicyError::file(folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(PolicyError::file(&path))?;
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else {
            return Err(unpublishable(&path, "its name is not UTF-8"));
        };
        if kind.is_dir() && name == ".git" {
            continue;
        }
        if kind.is_dir() {
            add_folder(&path, &format!("{name}/"), files)?;
            continue;
        }
        if !kind.is_file() || !is_inside(&name) {
            return Err(unpublishable(&path, "it is a link or a special file; a policy has files and folders"));
        }
        let content = read_regular(&path, MAX_BYTES as u64).map_err(PolicyError::file(&path))?;
        let is_executable = is_executable(&entry.metadata().map_err(PolicyError::file(&path))?);
        files.insert(name, ArchivedFile { content, is_executable });
        let bytes: usize = files.values().map(|file| file.content.len()).sum();
        if files.len() > MAX_FILES || bytes > MAX_BYTES {
            let cause = format!("a policy has at most {MAX_FILES} files with {} MiB", MAX_BYTES >> 20);
            return Err(unpublishable(folder, &cause));
        }
    }
    Ok(())
}

mod base64_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::{BASE64_STANDARD, Engine};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(de::Error::custom)
    }
}
