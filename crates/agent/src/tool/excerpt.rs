//! Truncated text, cut between characters.

use std::collections::VecDeque;

/// Returns a line, truncated to `limit` bytes. `start` is its known beginning, `length` its full length.
pub(super) fn line(start: &[u8], length: usize, limit: usize) -> String {
    if length <= limit {
        return String::from_utf8_lossy(start).into_owned();
    }
    let prefix = trim_partial_end(&start[..start.len().min(limit)]);
    format!("{}… ({} bytes more)", String::from_utf8_lossy(prefix), length - prefix.len())
}

/// The head and the tail of a long output.
pub(super) struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The capacity of the head and of the tail.
    half: usize,
    length: u64,
}

impl Excerpt {
    pub(super) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: limit / 2, length: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let (head, tail) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        // Data longer than the tail displaces all of its content.
        self.tail.extend(&tail[tail.len().saturating_sub(self.half)..]);
        self.tail.drain(..self.tail.len().saturating_sub(self.half));
    }

    /// Returns the text, with a note on the omitted part.
    pub(super) fn into_text(self) -> String {
        let Self { mut head, tail, length, .. } = self;
        let tail = Vec::from(tail);
        if (head.len() + tail.len()) as u64 == length {
            head.extend(tail);
            return String::from_utf8_lossy(&head).into_owned();
        }
        let (head, tail) = (trim_partial_end(&head), trim_partial_start(&tail));
        let left_out = length - (head.len() + tail.len()) as u64;
        format!("{}\n… {left_out} bytes left out …\n{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
    }
}

/// Removes an incomplete character at the end.
fn trim_partial_end(bytes: &[u8]) -> &[u8] {
    let invalid = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(invalid) {
        // No length means that more bytes could complete the character.
        Err(error) if error.error_len().is_none() => &bytes[..bytes.len() - invalid.len()],
        _ => bytes,
    }
}

/// Removes an incomplete character at the start.
fn trim_partial_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    &bytes[cut..]
}
