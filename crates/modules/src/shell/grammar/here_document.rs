//! Here-documents.

use std::cell::Cell;
use std::rc::Rc;

use super::{HereDocument, Reader, Refusal, SYNTAX, word};

const UNCLOSED: &str = "a here-document is not closed; write its delimiter on a line of its own";

pub(super) struct PendingDocument<'a> {
    delimiter: String,
    body: Rc<Cell<&'a str>>,
    expands: bool,
    strips_tabs: bool,
}

impl<'a> Reader<'a> {
    /// Reads the delimiter after `<<` or `<<-`. The body follows after the next newline.
    pub(super) fn here_document(&mut self, strips_tabs: bool) -> Result<HereDocument<'a>, Refusal> {
        let raw = self.word(word::Patterns::None)?;
        let delimiter: String = raw.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let is_plain = delimiter.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        // Within quotes, a backslash or a quote of the other kind stands for itself.
        let is_ambiguous = ['\'', '"', '\\'].into_iter().filter(|quote| raw.contains(*quote)).count() > 1;
        if delimiter.is_empty() || !is_plain || is_ambiguous {
            return Err(SYNTAX);
        }
        let (body, expands) = (Rc::default(), delimiter.len() == raw.len());
        self.pending.push(PendingDocument { delimiter, body: Rc::clone(&body), expands, strips_tabs });
        Ok(HereDocument { body, expands, strips_tabs })
    }

    /// Reads the bodies of pending here-documents, from after a newline.
    pub(super) fn here_documents(&mut self) -> Result<(), Refusal> {
        for document in std::mem::take(&mut self.pending) {
            let start = self.at;
            let mut is_continued = false;
            loop {
                let end = self.at;
                let line = self.rest().split_inclusive('\n').next().ok_or(UNCLOSED)?;
                self.at += line.len();
                let line = line.strip_suffix('\n').unwrap_or(line);
                let stripped = line.trim_start_matches('\t');
                if is_continued && document.delimiter.ends_with(stripped) {
                    // The joined line may be the delimiter, and this one may not be.
                    return Err(SYNTAX);
                }
                if document.delimiter == if document.strips_tabs { stripped } else { line } {
                    document.body.set(self.text.get(start..end).unwrap_or_default());
                    break;
                }
                let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
                is_continued = document.expands && backslashes % 2 == 1;
            }
        }
        Ok(())
    }

    /// Refuses the end of a script before the bodies of its here-documents.
    pub(super) fn expect_no_documents(&self) -> Result<(), Refusal> {
        if self.pending.is_empty() { Ok(()) } else { Err(UNCLOSED) }
    }
}
