//! Words, quotes and expansions.

use super::{CONTINUATION, List, Reader, Refusal, SYNTAX, UNCLOSED, ends_word};

const ARITHMETIC: &str = "an arithmetic expression is too complex; simplify the command";
const PARAMETER: &str = "a parameter expansion is too complex; simplify the command";

/// The patterns with brackets that a word may contain.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Patterns {
    None,
    /// `@(a|b)` and the like.
    Extended,
    /// Regular expressions, with `|` and groups.
    Regular,
}

/// The construct that a bracket opens.
#[derive(Clone, Copy)]
pub(super) enum Bracket {
    Pattern,
    Arithmetic,
    Subscript,
    Parameter,
}

impl<'a> Reader<'a> {
    /// Reads a word; empty if none follows.
    pub(super) fn word(&mut self, patterns: Patterns) -> Result<&'a str, Refusal> {
        self.word_from(self.at, patterns)
    }

    /// Reads the rest of a word that begins at `start`.
    pub(super) fn word_from(&mut self, start: usize, patterns: Patterns) -> Result<&'a str, Refusal> {
        // `true` after a character that begins a pattern with brackets.
        let mut is_lead = false;
        while let Some(byte) = self.peek() {
            let was_lead = std::mem::replace(&mut is_lead, false);
            match byte {
                b'\\' if self.starts_with("\\\n") => {
                    self.expect_end_of_word()?;
                    break;
                }
                b'<' | b'>' if self.opens_process() => {
                    self.process_substitution()?;
                }
                b'(' if patterns == Patterns::Regular || was_lead && patterns == Patterns::Extended => {
                    self.at += 1;
                    self.bracketed(Bracket::Pattern)?;
                }
                b'|' if patterns == Patterns::Regular && !self.starts_with("||") => self.at += 1,
                byte if ends_word(byte) => break,
                byte => {
                    is_lead = matches!(byte, b'?' | b'*' | b'+' | b'@' | b'!');
                    self.piece(byte, false)?;
                }
            }
        }
        let word = self.text_from(start);
        self.expect_one_line(word)?;
        Ok(word)
    }

    /// Refuses a newline in a word if here-documents are pending: shells differ in where those begin.
    pub(super) fn expect_one_line(&self, word: &str) -> Result<(), Refusal> {
        if !self.pending.is_empty() && word.contains('\n') { Err(SYNTAX) } else { Ok(()) }
    }

    /// Refuses continued lines in the middle of a word: reserved words and assignments are compared as written.
    pub(super) fn expect_end_of_word(&self) -> Result<(), Refusal> {
        let mut rest = self.rest();
        while let Some(after) = rest.strip_prefix("\\\n") {
            rest = after;
        }
        let is_end = rest.starts_with([' ', '\t', '\n', ';', '|', '&', ')']) || rest.is_empty();
        if is_end { Ok(()) } else { Err(CONTINUATION) }
    }

    /// Reads a character of a word, or the quotes or the expansion that it begins.
    fn piece(&mut self, byte: u8, quoted: bool) -> Result<(), Refusal> {
        self.at += 1;
        match byte {
            b'\\' => self.escaped(),
            b'\'' if !quoted => self.skip_past('\''),
            b'"' if !quoted => self.double_quotes(),
            b'`' => self.skip_to_unescaped(b'`'),
            b'$' => self.expansion(quoted),
            _ => Ok(()),
        }
    }

    /// Skips the byte after a backslash. Further bytes of a character have no meaning.
    fn escaped(&mut self) -> Result<(), Refusal> {
        self.peek().ok_or(UNCLOSED)?;
        self.at += 1;
        Ok(())
    }

    fn skip_past(&mut self, end: char) -> Result<(), Refusal> {
        self.at += self.rest().find(end).ok_or(UNCLOSED)? + 1;
        Ok(())
    }

    fn double_quotes(&mut self) -> Result<(), Refusal> {
        loop {
            match self.peek().ok_or(UNCLOSED)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                byte => self.piece(byte, true)?,
            }
        }
    }

    /// Skips to after the end of backticks or of `$'…'`. The text inside of backticks is read again, without its escapes.
    fn skip_to_unescaped(&mut self, end: u8) -> Result<(), Refusal> {
        loop {
            let byte = self.peek().ok_or(UNCLOSED)?;
            self.at += 1;
            match byte {
                b'\\' => self.escaped()?,
                byte if byte == end => return Ok(()),
                _ => {}
            }
        }
    }

    /// Reads an expansion after its `$`.
    fn expansion(&mut self, quoted: bool) -> Result<(), Refusal> {
        match self.peek() {
            Some(b'\'') if !quoted => {
                self.at += 1;
                self.skip_to_unescaped(b'\'')
            }
            Some(b'(') => {
                self.at += 1;
                if self.peek() == Some(b'(') {
                    self.nested(|reader| reader.bracketed(Bracket::Arithmetic))
                } else {
                    self.substitution().map(drop)
                }
            }
            Some(b'{') => {
                self.at += 1;
                self.nested(|reader| reader.bracketed(Bracket::Parameter))
            }
            Some(b'[') => {
                self.at += 1;
                self.nested(|reader| reader.bracketed(Bracket::Subscript))
            }
            Some(b'$') => {
                self.at += 1;
                // A parameter, after which a bracket has no meaning.
                if matches!(self.peek(), Some(b'(' | b'{' | b'[' | b'\'')) { Err(SYNTAX) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Reads to after the bracket that closes an open one. Quotes and process substitutions are refused where shells differ in
    /// their meaning.
    pub(super) fn bracketed(&mut self, bracket: Bracket) -> Result<(), Refusal> {
        let (open, close) = match bracket {
            Bracket::Pattern | Bracket::Arithmetic => (Some(b'('), b')'),
            Bracket::Subscript => (Some(b'['), b']'),
            Bracket::Parameter => (None, b'}'),
        };
        let mut depth = 1;
        while depth > 0 {
            let byte = self.peek().ok_or(UNCLOSED)?;
            if self.starts_with("\\\n") {
                // Operators in it are compared as written, and bash joins the lines first.
                return Err(CONTINUATION);
            }
            let is_quote = byte == b'\'' || self.starts_with("$'");
            match bracket {
                Bracket::Arithmetic if is_quote || byte == b'"' => return Err(ARITHMETIC),
                Bracket::Parameter if is_quote || self.opens_process() => return Err(PARAMETER),
                Bracket::Subscript if self.opens_process() => return Err(SYNTAX),
                _ => self.piece(byte, false)?,
            }
            if byte == close {
                depth -= 1;
            } else if open == Some(byte) {
                depth += 1;
            }
        }
        Ok(())
    }

    /// Returns the length of the text in an expansion, if this text begins after the `open` of it: `$(`, `$((`, `${` or a backtick.
    pub(in crate::shell) fn length_to_closing(text: &'a str, open: &str) -> Option<usize> {
        let mut reader = Reader::new(text);
        let read = match open {
            "$(" => reader.substitution().map(drop),
            "$((" => reader.bracketed(Bracket::Pattern),
            "${" => reader.bracketed(Bracket::Parameter),
            _ => reader.skip_to_unescaped(b'`'),
        };
        // Each of them ends with one byte.
        read.ok().and(reader.at.checked_sub(1))
    }

    /// Returns `true` if `<(` or `>(` follows.
    pub(super) fn opens_process(&self) -> bool {
        self.starts_with("<(") || self.starts_with(">(")
    }

    pub(super) fn process_substitution(&mut self) -> Result<List<'a>, Refusal> {
        self.at += 2;
        // Arithmetic or a subshell: bash tries both.
        if self.peek() == Some(b'(') { Err(SYNTAX) } else { self.substitution() }
    }

    /// Reads commands and the closing bracket. Here-documents in them end before it.
    fn substitution(&mut self) -> Result<List<'a>, Refusal> {
        let outer = std::mem::take(&mut self.pending);
        let list = self.nested(Self::list)?;
        self.expect_no_documents()?;
        self.pending = outer;
        self.expect(")")?;
        Ok(list)
    }
}
