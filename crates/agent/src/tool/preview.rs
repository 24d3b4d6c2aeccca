//! What a tool would change, as people see it before they allow it.

use std::io::{self, ErrorKind, Read};
use std::path::Path;

use amplifier_core::{ActionPreview, ComparedWith, FileBefore, Map};
use sha2::{Digest, Sha256};

use super::{ToolError, Workspace};

/// The tools that change one file, which their `file_path` names.
const CHANGING: [&str; 3] = ["Write", "Edit", "MultiEdit"];

/// Larger files are not shown. Their version counts all the same.
const LARGEST_SHOWN: u64 = 1 << 20;

const MISSING: &str = "missing";
const UNREADABLE: &str = "unreadable";

/// The file that a tool would change with this input, as it is now; `None` if the tool changes no file, or none that it may change. Blocks while it
/// reads the file.
pub fn preview(tool: &str, input: &Map, workspace: &Workspace) -> Option<ActionPreview> {
    let path = input.get("file_path")?.as_str().filter(|_| CHANGING.contains(&tool))?;
    let resolved = workspace.resolve(path).ok()?;
    if workspace.protects(path).is_some() {
        return None;
    }
    let (version, before) = workspace.look_at(&resolved);
    Some(ActionPreview { compared_with: ComparedWith { path: workspace.display(&resolved), version }, before })
}

impl Workspace {
    /// The version of a file, and what is in it.
    fn look_at(&self, path: &Path) -> (String, FileBefore) {
        match self.open(path).and_then(read) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::NotFound => (MISSING.to_owned(), FileBefore::Missing),
            Err(error) => (UNREADABLE.to_owned(), FileBefore::Unreadable(error.to_string())),
        }
    }

    /// The version of a file as it is now.
    pub(super) fn version(&self, path: &Path) -> String {
        self.look_at(path).0
    }
}

/// The version of this content.
pub(super) fn version_of(content: &[u8]) -> String {
    named(&Sha256::digest(content))
}

fn named(digest: &[u8]) -> String {
    digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Reads a file to its end, and keeps what can be shown.
fn read(mut file: impl Read) -> io::Result<(String, FileBefore)> {
    let (mut hash, mut kept, mut length) = (Sha256::new(), Vec::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..count]);
        length += count as u64;
        if length <= LARGEST_SHOWN {
            kept.extend_from_slice(&buffer[..count]);
        }
    }
    let before = if length <= LARGEST_SHOWN { FileBefore::Content(kept) } else { FileBefore::TooLarge(length) };
    Ok((named(&hash.finalize()), before))
}

/// The error for a file that is not what the person was shown.
pub(super) fn changed(name: &str) -> ToolError {
    ToolError::Failed(format!(
        "`{name}` changed after the approval was requested, so nothing was written; read it again"
    ))
}
