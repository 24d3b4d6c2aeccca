//! Pinned files, whose content is compared with a hash before a program starts.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{ErrorContext, LaunchError, PinnedFile, SandboxError};
use crate::files::{self, OpenOptionsExt};

pub(super) struct CheckedFile {
    /// The path as it was given.
    pub(super) name: PathBuf,
    /// The path without links.
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
}

/// Reads each file once, and compares its hash.
pub(super) fn check(files: &[PinnedFile]) -> Result<Vec<CheckedFile>, LaunchError> {
    files.iter().map(check_file).collect()
}

fn check_file(file: &PinnedFile) -> Result<CheckedFile, LaunchError> {
    // A missing file has changed as well.
    let (path, opened) = open(&file.path).map_err(|_| LaunchError::PinMismatch(file.path.clone()))?;
    let metadata = opened.metadata().context(format!("`{}`", path.display()))?;
    if !metadata.is_file() {
        return Err(SandboxError(format!("the pinned `{}` is not a regular file", path.display())).into());
    }
    let mut bytes = Vec::new();
    (&opened).read_to_end(&mut bytes).context(format!("`{}`", path.display()))?;
    if Sha256::digest(&bytes)[..] != file.sha256 {
        return Err(LaunchError::PinMismatch(file.path.clone()));
    }
    Ok(CheckedFile { name: file.path.clone(), path, mode: files::mode(&metadata), bytes })
}

/// Opens the file without blocking on a pipe.
fn open(path: &Path) -> std::io::Result<(PathBuf, File)> {
    let path = path.canonicalize()?;
    let opened = OpenOptions::new().read(true).no_follow().open(&path)?;
    Ok((path, opened))
}
