//! What the fuzz targets share: a log in memory, and the form in which a whole log is the input of a target.
#![forbid(unsafe_code)]

mod input;
mod memory;

pub use input::{Input, Mode};
pub use memory::{Files, Memory, segments};

use amplifier_audit::{Checkpoint, Note, SigningKey};

/// After so many records the logs in the corpus have a checkpoint at the latest.
pub const EVERY: u64 = 4;

/// The key of the logs in the corpus.
pub fn key() -> SigningKey {
    SigningKey::from_seed([1; 32])
}

/// The key that some of them are signed with after a rotation.
pub fn next_key() -> SigningKey {
    SigningKey::from_seed([2; 32])
}

/// Splits a file of notes: a text, an empty line, lines that begin with a dash, an empty line. The rest is half a note.
pub fn split_notes(file: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    const DASH: &[u8] = "— ".as_bytes();
    let empty_line = |bytes: &[u8]| bytes.windows(2).position(|pair| pair == b"\n\n");
    let (mut notes, mut rest) = (Vec::new(), file);
    while let Some(text) = empty_line(rest) {
        let after = &rest[text + 2..];
        let signatures = if after.starts_with(DASH) || DASH.starts_with(after) {
            let Some(length) = empty_line(after) else { break };
            length + 2
        } else {
            0
        };
        notes.push(&rest[..text + signatures + 1]);
        rest = &rest[text + signatures + 2..];
    }
    (notes, rest)
}

/// The checkpoint in a note.
pub fn checkpoint(note: &[u8]) -> Option<(Note, Checkpoint)> {
    let note = Note::parse(note).ok()?;
    let checkpoint = Checkpoint::read(&note).ok()?;
    Some((note, checkpoint))
}

/// Cuts off what a writer has not finished, half a line or half a note, because the verifier would wait for the rest.
/// There may be a segment of which nothing is left; then this is `false`.
pub fn cut_halves(files: &mut Files) -> bool {
    if let Some(file) = files.get_mut("checkpoints") {
        // Again and again: a text without signatures is half a note when nothing follows it.
        while let half @ 1.. = split_notes(file).1.len() {
            file.truncate(file.len() - half);
        }
    }
    segments(files).into_iter().all(|(_, file)| {
        let end = file.iter().rposition(|&byte| byte == b'\n').map_or(0, |feed| feed + 1);
        file.truncate(end);
        end > 0
    })
}
