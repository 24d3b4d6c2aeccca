//! The line in which a user types the reason for a denial.
//!
//! Nothing that is typed here can allow, so keys need no silence around them.

use amplifier_core::ApprovalAnswer;

use super::line::{BOLD, DIM, PLAIN, StyledLine};
use super::prompt::corner;

const ESC: u8 = 0x1b;

/// The end of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasonEnd {
    /// Enter: deny with the text.
    Enter,
    /// Esc: return to the options without an answer.
    Escape,
    /// Ctrl-C: deny without a reason, and stop.
    Interrupt,
}

/// The text typed so far.
#[derive(Debug, Default)]
pub(super) struct ReasonInput {
    /// A character may arrive in pieces.
    bytes: Vec<u8>,
}

impl ReasonInput {
    /// Adds input. Escape sequences, such as those of arrow keys and of pasting, are skipped.
    pub(super) fn add(&mut self, input: &[u8]) -> Option<ReasonEnd> {
        let mut rest = input;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                0x03 => return Some(ReasonEnd::Interrupt),
                ESC if after.is_empty() => return Some(ReasonEnd::Escape),
                ESC => rest = skip_sequence(after),
                // A line break within pasted text does not end the input.
                b'\r' | b'\n' if after.is_empty() => return Some(ReasonEnd::Enter),
                b'\r' | b'\n' | b'\t' => self.bytes.push(b' '),
                0x08 | 0x7f => self.remove_last(),
                0x15 => self.bytes.clear(),
                0x00..=0x1f => {}
                _ => self.bytes.push(byte),
            }
        }
        // A character has at most four bytes.
        self.bytes.truncate(ApprovalAnswer::MAX_REASON_CHARS * 4);
        None
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Returns the last row of the prompt, with the end of the text.
    pub(super) fn row(&self, columns: usize) -> StyledLine {
        const HINT: &str = "  Enter denies, Esc returns to the options";
        let text = self.text();
        let room = columns.saturating_sub(HINT.len() + 16).max(10);
        let start = text.char_indices().rev().nth(room - 1).map_or(0, |(at, _)| at);
        let text = &text[start..];
        corner().exact(PLAIN, "reason: ").exact(BOLD, text).exact(DIM, "▏").exact(DIM, HINT)
    }

    fn remove_last(&mut self) {
        // Continuation bytes belong to the character before them.
        while let Some(byte) = self.bytes.pop() {
            if !(0x80..0xc0).contains(&byte) {
                return;
            }
        }
    }
}

/// Skips the rest of a control sequence, or one character.
fn skip_sequence(after: &[u8]) -> &[u8] {
    match after {
        [b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            end.map_or(&[], |end| &rest[end + 1..])
        }
        [_, rest @ ..] => rest,
        [] => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_typed_and_corrected_and_nothing_else_gets_in() {
        let mut input = ReasonInput::default();
        for part in [
            &b"Use th\x7f\x7fpnpm"[..],
            b"\x1b[D",
            b"\x1b[200~a\r\nb\x1b[201~",
            "\u{e9}\u{e9}".as_bytes(),
            b"\x7f",
            b"\x07\x1bOA",
        ] {
            assert_eq!(input.add(part), None);
        }
        assert_eq!(input.text(), "Use pnpma  b\u{e9}A");
        assert_eq!(input.add(b"!\r"), Some(ReasonEnd::Enter));
        assert_eq!(input.text(), "Use pnpma  b\u{e9}A!");
        assert_eq!(ReasonInput::default().add(b"\x1b"), Some(ReasonEnd::Escape));
        assert_eq!(ReasonInput::default().add(b"\x03"), Some(ReasonEnd::Interrupt));
        assert!(input.row(80).render(false).starts_with("╰─ reason: Use pnpma  b\u{e9}A!▏"));
    }
}
