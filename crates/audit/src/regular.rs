//! Reading files that may have been exchanged for something that never answers: a pipe, a device.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to read it. Anything else is refused, and nobody waits for it.
///
/// # Errors
/// If it cannot be opened, or is no regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Before it is opened, because opening some devices has an effect; and afterwards, because it may be another file by then.
    must_be_regular(&std::fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    must_be_regular(&metadata)?;
    Ok((file, metadata))
}

/// Reads a regular file of at most that many bytes.
///
/// # Errors
/// If it cannot be read, is no regular file, or is larger.
pub fn read_regular(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.0.take(largest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        let text = format!("it has more than {} MiB", largest >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Reads a regular file as text.
///
/// # Errors
/// As [`read_regular`], and if it is no UTF-8 text.
pub fn read_regular_text(path: &Path, largest: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is no UTF-8 text");
    String::from_utf8(read_regular(path, largest)?).map_err(no_text)
}

/// Opening a pipe does not wait for whoever has its other end, and a terminal does not become this process's own.
pub(crate) const NONBLOCK: i32 = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits().cast_signed();

pub(crate) fn must_be_regular(metadata: &Metadata) -> io::Result<()> {
    let is_file = metadata.is_file();
    is_file.then_some(()).ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
}
