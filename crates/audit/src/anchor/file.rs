//! The anchor that appends to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use amplifier_process::files::{OpenOptionsExt, check_regular, create_private_folder, read_exact_at, sync_folder};

use super::{Anchor, AnchorError, with_empty_line};

/// Appends checkpoints to a file, best on another disk or machine.
///
/// The file has the form of the log's own `checkpoints`: an empty line ends each note. Every note begins after an empty line (or at the
/// start of the file), also after a note that a crash tore.
///
/// ```
/// use amplifier_audit::{Anchor, FileAnchor};
///
/// # let disk = tempfile::tempdir()?;
/// # let disk = disk.path();
/// FileAnchor::new(disk.join("audit/checkpoints")).keep("a note\n")?;
/// assert_eq!(std::fs::read_to_string(disk.join("audit/checkpoints"))?, "a note\n\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileAnchor {
    path: PathBuf,
}

impl FileAnchor {
    /// Creates an anchor that appends to this file. The first checkpoint creates the file and its folders, for their owner only.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // A later change of the current folder must not begin a second file.
        Self { path: std::path::absolute(&path).unwrap_or(path) }
    }

    fn append(&self, note: &str) -> io::Result<()> {
        let mut file = self.open()?;
        let mut text = missing_line_ends(&file)?.to_owned();
        text.push_str(&with_empty_line(note));
        // One write, so that the notes of two processes do not mix.
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }

    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        // Only a regular file is safe: a pipe without a reader would never take the note.
        options.read(true).append(true).owner_only().no_wait();
        match options.open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(file) => return check_regular(&file.metadata()?).map(|()| file),
        }
        let folders = || self.path.ancestors().skip(1);
        let missing = folders().take_while(|folder| !folder.exists()).count();
        if let Some(folder) = folders().next() {
            create_private_folder(folder)?;
        }
        let file = options.create(true).open(&self.path)?;
        // A file's name is safe when its folder is synced; syncing the file is not enough.
        for folder in folders().take(missing + 1) {
            sync_folder(folder)?;
        }
        Ok(file)
    }
}

impl Anchor for FileAnchor {
    fn keep(&mut self, note: &str) -> Result<(), AnchorError> {
        self.append(note).map_err(|source| AnchorError::File { path: self.path.clone(), source })
    }

    fn name(&self) -> String {
        format!("file {}", self.path.display())
    }
}

/// Returns the line feeds that complete a torn note. The note is not cut off, because the file may be append-only.
fn missing_line_ends(file: &File) -> io::Result<&'static str> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'; 2];
    let known = usize::try_from(length).unwrap_or(2).min(2);
    read_exact_at(file, &mut last[2 - known..], length.saturating_sub(2))?;
    Ok(match last {
        [b'\n', b'\n'] => "",
        [_, b'\n'] => "\n",
        _ => "\n\n",
    })
}
