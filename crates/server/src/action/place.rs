//! Files, as a question shows them: what is there now, and where that really is.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Files above this size are not read only to show a difference.
const LARGEST: u64 = 1 << 20;

/// What is at a path now.
pub(super) enum Present {
    Nothing,
    Text(String),
    /// Something whose text cannot be shown, and why.
    Other(String),
}

/// Reads the file, if it is a text file of reasonable size. A pipe or a device is never opened: it could block.
pub(super) fn present(path: &Path) -> Present {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Present::Nothing,
        Err(error) => return Present::Other(format!("it cannot be read: {error}")),
    };
    if !metadata.is_file() {
        return Present::Other("it is not a regular file".into());
    }
    if metadata.len() > LARGEST {
        return Present::Other(format!("it has {} bytes, too many to compare", metadata.len()));
    }
    match fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => Present::Text(text),
        Ok(Err(_)) => Present::Other(format!("it holds {} bytes that are not text", metadata.len())),
        Err(error) => Present::Other(format!("it cannot be read: {error}")),
    }
}

/// Where the path really leads, links followed, if that is outside of the workspace.
pub(super) fn outside(root: &Path, path: &str) -> Option<PathBuf> {
    let real = real(&root.join(path));
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    (!real.starts_with(&root) || real.components().any(|part| part == Component::ParentDir)).then_some(real)
}

/// The real path of what exists, and after it what does not exist yet.
fn real(path: &Path) -> PathBuf {
    let mut missing: Vec<&OsStr> = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return missing.iter().rev().fold(real, |real, part| real.join(part));
        }
        // An ancestor without a name ends in `..` below something that does not exist.
        let Some(name) = ancestor.file_name() else { break };
        missing.push(name);
    }
    path.to_owned()
}
