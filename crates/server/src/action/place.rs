//! Files, as a question shows them: what is there now, and where that really is.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use amplifier_core::FileBefore;

use super::counted;

/// Files above this size are not read only to show a difference.
const LARGEST: u64 = 1 << 20;

/// The files of a session, as far as they may be shown. Everybody who looks at a question sees what is read here, so the session says what is within its
/// workspace and what is protected, by the rules that hold for its tools.
pub trait Files: Send + Sync {
    /// The folder that paths begin in.
    fn root(&self) -> &Path;

    /// Opens a file, if what is in it may be shown. Opening never blocks.
    ///
    /// # Errors
    /// If it is not there, cannot be read, or is not to be shown; in words that follow a colon.
    fn open(&self, path: &str) -> io::Result<File>;
}

/// What is at a path now.
pub(super) enum Present {
    Nothing,
    Text(String),
    /// Something whose text is not shown, and why.
    Other(String),
}

impl From<FileBefore> for Present {
    fn from(before: FileBefore) -> Self {
        match before {
            FileBefore::Missing => Self::Nothing,
            FileBefore::Content(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Self::Text(text),
                Err(error) => Self::Other(format!("it is no text, but {}", counted(error.as_bytes().len(), "byte"))),
            },
            FileBefore::TooLarge(bytes) => Self::Other(format!("it has {bytes} bytes, too many to compare")),
            FileBefore::Unreadable(why) => Self::Other(why),
        }
    }
}

/// Reads the file, if it may be shown, and is a text file of reasonable size.
pub(super) fn present(files: &dyn Files, path: &str) -> Present {
    let read = files.open(path).and_then(|file| {
        let metadata = file.metadata()?;
        // A pipe or a device could block.
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if metadata.len() > LARGEST {
            return Ok(FileBefore::TooLarge(metadata.len()));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes)?;
        Ok(FileBefore::Content(bytes))
    });
    Present::from(match read {
        Ok(before) => before,
        Err(error) if error.kind() == ErrorKind::NotFound => FileBefore::Missing,
        Err(error) => FileBefore::Unreadable(error.to_string()),
    })
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
