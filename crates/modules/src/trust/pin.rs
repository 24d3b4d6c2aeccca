//! The pin of one file.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use amplifier_audit::Hash;
use amplifier_process::files::{FileStatus, mode, open_regular};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Maximum size of a hashed file. Also ends the reading of endless system files.
const MAX_SIZE: u64 = 4 << 30;
pub(crate) const MAX_BUNDLE_SIZE: u64 = 4 << 20;

/// The state of a file at the time of a trust decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// SHA-256 of the content.
    pub sha256: Hash,
    /// Permissions.
    pub mode: u32,
    /// Target, if the file is a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<PathBuf>,
}

/// Returns the path of a file for pinning: all folders resolved, but not the file itself, which may be a link.
pub(super) fn resolve_parent(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(folder.canonicalize()?.join(name))
}

/// Pins a file by its [resolved path](resolve_parent), with its status before reading.
pub(super) fn pin(location: &Path) -> io::Result<(Pin, FileStatus)> {
    let (mut file, _) = open(location)?;
    let status = FileStatus::from_file(&file)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 128 * 1024];
    let mut size = 0;
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        size += read as u64;
        if size > MAX_SIZE {
            return Err(too_large(MAX_SIZE));
        }
        hash.update(&chunk[..read]);
    }
    let sha256 = Hash::from_bytes(hash.finalize().into());
    Ok((Pin { sha256, mode: status.mode, leads_to: leads_to(location)? }, status))
}

/// Reads and pins a bundle: the returned text is the text that was hashed.
pub(crate) fn read_pinned(path: &Path) -> io::Result<(String, PathBuf, Pin)> {
    let location = resolve_parent(path)?;
    let (file, metadata) = open(&location)?;
    let mut bytes = Vec::new();
    file.take(MAX_BUNDLE_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BUNDLE_SIZE {
        return Err(too_large(MAX_BUNDLE_SIZE));
    }
    let pin = Pin { sha256: Hash::sha256(&bytes), mode: mode(&metadata), leads_to: leads_to(&location)? };
    let text =
        String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "the file is not UTF-8 text"))?;
    Ok((text, location, pin))
}

pub(super) fn leads_to(location: &Path) -> io::Result<Option<PathBuf>> {
    let real = location.canonicalize()?;
    Ok((real != location).then_some(real))
}

fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let (file, metadata) = open_regular(path)?;
    if metadata.len() > MAX_SIZE {
        return Err(too_large(MAX_SIZE));
    }
    Ok((file, metadata))
}

fn too_large(limit: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("the file is larger than {} MiB", limit >> 20))
}
