//! Reads the lines of a log from its end on.

use std::io::ErrorKind;
use std::ops::ControlFlow;

use crate::error::{AuditError, StorageContext};
use crate::reader::segments;
use crate::record::RecordError;
use crate::storage::RecordSource;
use crate::tail::segment_file;

/// The number of bytes that are read at once.
const AT_ONCE: u64 = 512 << 10;

/// Passes the lines of a log to `visit`, from the last one on, until `visit` breaks. Reads no more of the log than needed. Half a line at the end is left out.
///
/// `visit` parses the lines that it needs, with [`Record::parse`](crate::Record::parse).
///
/// # Errors
/// If the log cannot be read, or `visit` returns the error in a line.
pub fn read_lines_backwards(
    source: &dyn RecordSource,
    mut visit: impl FnMut(&[u8]) -> Result<ControlFlow<()>, RecordError>,
) -> Result<(), AuditError> {
    for segment in segments(source)?.into_iter().rev() {
        let file = segment_file(segment);
        let mut unread = source.size(&file).doing("read")?.unwrap_or(0);
        // The end of a line whose beginning is unread.
        let mut rest = Vec::new();
        while unread > 0 {
            let begin = unread.saturating_sub(AT_ONCE);
            let mut text = match source.read_part(&file, begin, unread - begin) {
                Ok(text) => text,
                // Retention has removed the segment, and all before it.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error).doing("read"),
            };
            text.append(&mut rest);
            let first = match begin {
                0 => 0,
                _ => memchr::memchr(b'\n', &text).map_or(text.len(), |end| end + 1),
            };
            let mut end = text.len();
            for line in text[first..].split_inclusive(|byte| *byte == b'\n').rev() {
                end -= line.len();
                let Some(line) = line.strip_suffix(b"\n") else { continue };
                match visit(line) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => return Ok(()),
                    Err(error) => {
                        let before = source.read_part(&file, 0, begin + end as u64).doing("read")?;
                        let line = memchr::memchr_iter(b'\n', &before).count() as u64 + 1;
                        return Err(AuditError::Line { file, line, error });
                    }
                }
            }
            text.truncate(first);
            (rest, unread) = (text, begin);
        }
    }
    Ok(())
}
