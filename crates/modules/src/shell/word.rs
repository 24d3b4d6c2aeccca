//! Expansion of words, as far as it can be known.

use std::borrow::Cow;

use super::grammar::Reader;
use super::{parameter, subscript};

#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) raw: String,
    /// The text without quotes; only the part before the first expansion if `literal` is `false`.
    text: String,
    /// `true` if `text` is the whole word.
    literal: bool,
    /// `true` if the expansion may produce several words, or none, with any beginning.
    splits: bool,
    /// `true` if the word may become several words, all of which begin with `text`.
    many: bool,
    /// Commands inside: `$(…)`, backticks, process substitutions.
    pub(super) substitutions: Vec<String>,
    /// `true` if the expansion may have side effects: arithmetic runs commands in variables, `${x:=…}` assigns.
    pub(super) effects: bool,
    /// The reason if the word cannot be parsed.
    pub(super) opaque: Option<&'static str>,
}

impl Word {
    pub(super) fn new(raw: &str) -> Self {
        Scanner::new(raw).word(Mode::Word)
    }

    /// Parses the body of a here-document, in which quotes have no meaning.
    pub(super) fn here_document(raw: &str) -> Self {
        Scanner::new(raw).word(Mode::HereDocument)
    }

    pub(super) fn known(text: &str) -> Self {
        Self { raw: text.to_owned(), text: text.to_owned(), literal: true, ..Self::default() }
    }

    /// Creates words that are known only at run time.
    pub(super) fn unknown(raw: &str) -> Self {
        Self { raw: raw.to_owned(), splits: true, ..Self::default() }
    }

    /// Creates a path that `find` inserts, or several: each begins with one of its starting points.
    pub(super) fn found_path(many: bool) -> Self {
        Self { raw: "{}".to_owned(), text: "./".to_owned(), many, ..Self::default() }
    }

    pub(super) fn literal(&self) -> Option<&str> {
        self.literal.then_some(self.text.as_str())
    }

    /// Returns `true` if the word is certainly not an option. It may still become several words: see [`Word::is_many`].
    pub(super) fn is_operand(&self) -> bool {
        if self.literal {
            !self.text.starts_with('-') || self.text == "-"
        } else {
            !self.splits && !self.text.is_empty() && !self.text.starts_with('-')
        }
    }

    /// Returns `true` if the word is known, or certainly not an option.
    pub(super) fn is_certain(&self) -> bool {
        self.literal || self.is_operand()
    }

    /// Returns `true` if the word may contain a subscript with a command, which quotes do not disarm if the text is evaluated.
    pub(super) fn hides_command(&self) -> bool {
        if !self.raw.contains('[') {
            return false;
        }
        let text = self.kept_text();
        subscript::opens(&text) && subscript::has_command(&text)
    }

    /// Returns the text of the word for evaluation: without quotes if known, otherwise without the commands that the shell
    /// substitutes, which are analysed separately.
    pub(super) fn kept_text(&self) -> Cow<'_, str> {
        if let Some(text) = self.literal() {
            return Cow::Borrowed(text);
        }
        let (mut kept, mut rest) = (String::new(), self.raw.as_str());
        for inner in &self.substitutions {
            let parts = rest.split_once(&format!("$({inner})")).or_else(|| rest.split_once(&format!("`{inner}`")));
            let Some((before, after)) = parts else { break };
            kept.push_str(before);
            rest = after;
        }
        kept.push_str(rest);
        Cow::Owned(kept)
    }

    pub(super) fn lead(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the word may become several words, or none, with any beginning.
    pub(super) fn splits(&self) -> bool {
        self.splits
    }

    /// Returns `true` if the number of resulting words is unknown. Code that counts operands must check this.
    pub(super) fn is_many(&self) -> bool {
        self.splits || self.many
    }

    /// Returns `true` if the word is, or may become, one of these texts.
    pub(super) fn may_be(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| if self.literal { self.text == *text } else { text.starts_with(&self.text) })
    }

    /// Returns the word without quotes if known, otherwise as written.
    pub(super) fn plain(&self) -> &str {
        self.literal().unwrap_or(&self.raw)
    }

    /// Returns the word after the first `at` bytes of its known beginning, such as an attached value.
    pub(super) fn tail(&self, at: usize) -> Self {
        let (head, text) = self.text.split_at_checked(at).unwrap_or((&self.text, ""));
        // A quote may begin before the tail, so the tail's own spelling is unknown.
        let raw = self.raw.strip_prefix(head).map_or_else(|| format!("{text}…"), str::to_owned);
        Self {
            raw,
            text: text.to_owned(),
            literal: self.literal,
            splits: self.splits,
            many: self.many,
            ..Self::default()
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mode {
    Word,
    Quoted,
    HereDocument,
}

pub(super) struct Scanner {
    characters: Vec<char>,
    at: usize,
    /// A position in characters, and the same one in bytes.
    offset: (usize, usize),
    word: Word,
}

impl Scanner {
    pub(super) fn new(raw: &str) -> Self {
        let word = Word { raw: raw.to_owned(), literal: true, ..Word::default() };
        Self { characters: raw.chars().collect(), at: 0, offset: (0, 0), word }
    }

    pub(super) fn word(mut self, mode: Mode) -> Word {
        if mode == Mode::Word {
            self.unquoted();
            self.braces();
        } else {
            self.quoted(mode);
        }
        self.word
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    fn keep(&mut self, c: char) {
        if self.word.literal {
            self.word.text.push(c);
        }
    }

    fn expands(&mut self, splits: bool) {
        self.word.literal = false;
        self.word.splits |= splits;
    }

    /// Finds the end of an expansion, from after its `open`.
    fn closing(&mut self, from: usize, open: &str) -> Option<usize> {
        let length = |characters: &[char]| characters.iter().map(|c| c.len_utf8()).sum::<usize>();
        let (at, mut bytes) = self.offset;
        if at <= from {
            bytes += length(self.characters.get(at..from)?);
        } else {
            bytes -= length(self.characters.get(from..at)?);
        }
        self.offset = (from, bytes);
        let rest = self.word.raw.get(bytes..)?;
        let inner = rest.get(..Reader::length_to_closing(rest, open)?)?;
        Some(from + inner.chars().count())
    }

    fn give_up(&mut self, why: &'static str) {
        self.word.opaque.get_or_insert(why);
        self.expands(true);
        self.at = self.characters.len();
    }

    fn unquoted(&mut self) {
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '\\' => {
                    if let Some(escaped) = self.peek(0).filter(|&escaped| escaped != '\n') {
                        self.keep(escaped);
                    }
                    self.at += 1;
                }
                '\'' => self.single_quotes(),
                '"' => self.quoted(Mode::Quoted),
                '$' if self.peek(0) == Some('\'') => self.ansi_quotes(),
                // Text that a message catalogue may replace.
                '$' if self.peek(0) == Some('"') => self.expands(false),
                '$' => self.dollar(false),
                '`' => self.backticks(false),
                '<' | '>' if self.peek(0) == Some('(') => {
                    self.at += 1;
                    // The path of a pipe.
                    "/dev/fd/".chars().for_each(|c| self.keep(c));
                    self.substitution();
                    self.expands(false);
                }
                '*' | '?' | '[' | '(' => {
                    self.keep_glob(c);
                }
                c => self.keep(c),
            }
        }
    }

    /// Keeps a pattern character. A lone `[` is a program, `[` in `a[1]` may be a pattern.
    fn keep_glob(&mut self, c: char) {
        if c == '[' && self.characters.len() == 1 {
            self.keep(c);
        } else {
            // A pattern may match several files, but each begins with the known text.
            self.expands(false);
            self.word.many = true;
        }
    }

    /// Reads braces, which are expanded first. All resulting words have the same beginning.
    fn braces(&mut self) {
        let raw = &self.word.raw;
        if !raw.contains('}') || !raw.contains(',') && !raw.contains("..") {
            return;
        }
        let nests = ["$(", "${", "`"].iter().any(|open| raw.contains(open));
        let lead = if nests {
            // With nested quotes, the position of the braces is not tracked.
            let all_belong = !raw.contains('\\') && raw.matches('{').count() == raw.matches("${").count();
            if all_belong { None } else { raw.find(|c: char| !c.is_ascii_alphanumeric()) }
        } else {
            self.bare_brace()
        };
        if let Some(lead) = lead {
            let before: String = self.characters.iter().take(lead).collect();
            self.word.text = Scanner::new(&before).word(Mode::Word).text;
            self.word.literal = false;
            self.word.splits = true;
        }
    }

    /// Finds the first brace without a quote or `$` before it.
    fn bare_brace(&self) -> Option<usize> {
        let (mut at, mut in_quotes, mut dollar) = (0, false, false);
        while let Some(&c) = self.characters.get(at) {
            match c {
                '"' => in_quotes = !in_quotes,
                '\\' => at += 1,
                '\'' if !in_quotes => at = end_of_quotes(&self.characters, at + 1, dollar)?,
                '{' if !in_quotes && !dollar => return Some(at),
                _ => {}
            }
            // `$$` is a parameter, not the beginning of another one.
            dollar = c == '$' && !dollar;
            at += 1;
        }
        None
    }

    fn single_quotes(&mut self) {
        let Some(end) = end_of_quotes(&self.characters, self.at, false) else {
            return self.give_up("a quote is not closed");
        };
        while self.at < end {
            let c = self.characters.get(self.at).copied().unwrap_or_default();
            self.keep(c);
            self.at += 1;
        }
        self.at = end + 1;
    }

    /// Reads `$'…'`. Simple escapes are decoded; numeric escapes make the word unknown.
    fn ansi_quotes(&mut self) {
        let Some(end) = end_of_quotes(&self.characters, self.at + 1, true) else {
            return self.give_up("a quote is not closed");
        };
        self.at += 1;
        while self.at < end {
            let c = self.characters.get(self.at).copied().unwrap_or_default();
            self.at += 1;
            if c != '\\' {
                self.keep(c);
                continue;
            }
            match self.peek(0) {
                Some('n') => self.keep('\n'),
                Some('t') => self.keep('\t'),
                Some(escaped @ ('\\' | '\'' | '"' | '?')) => self.keep(escaped),
                _ => return self.give_up("text is hidden in escape sequences; write it plainly"),
            }
            self.at += 1;
        }
        self.at = end + 1;
    }

    /// Reads from after the opening quote to after the closing one; a here-document has neither.
    fn quoted(&mut self, mode: Mode) {
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '"' if mode == Mode::Quoted => return,
                '\\' => match self.peek(0) {
                    Some(escaped @ ('$' | '`' | '\\')) => {
                        self.keep(escaped);
                        self.at += 1;
                    }
                    Some('"') if mode == Mode::Quoted => {
                        self.keep('"');
                        self.at += 1;
                    }
                    Some('\n') => self.at += 1,
                    _ => self.keep('\\'),
                },
                '$' => self.dollar(true),
                '`' => self.backticks(true),
                c => self.keep(c),
            }
        }
        if mode == Mode::Quoted {
            self.give_up("a quote is not closed");
        }
    }

    fn dollar(&mut self, quoted: bool) {
        match self.peek(0) {
            Some('(') => {
                self.at += 1;
                if !self.arithmetic() {
                    self.substitution();
                }
                self.expands(!quoted);
            }
            Some('{') => {
                let from = self.at + 1;
                let Some(end) = self.closing(from, "${") else {
                    return self.give_up("a parameter expansion is too complex; simplify the command");
                };
                let inner: String = self.characters.get(from..end).unwrap_or_default().iter().collect();
                self.at = end + 1;
                self.expands(!quoted || inner.contains('@') || inner.contains('*'));
                parameter::scan(&inner, &mut self.word);
            }
            Some('[') => self.give_up("`$[…]` is an old form; use `$((…))`"),
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '*' | '#' | '?' | '-' | '$' | '!') => {
                self.expands(!quoted || c == '@');
                self.at += 1;
                if c.is_ascii_alphabetic() || c == '_' {
                    while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                        self.at += 1;
                    }
                }
            }
            _ => self.keep('$'),
        }
    }

    /// Reads `((…))` after its `$`, from after the first bracket. A subshell in a substitution looks the same until its end.
    fn arithmetic(&mut self) -> bool {
        if self.peek(0) != Some('(') {
            return false;
        }
        let Some(end) = self.closing(self.at + 1, "$((") else { return false };
        if self.characters.get(end + 1) != Some(&')') {
            return false;
        }
        let inner: String = self.characters.get(self.at + 1..end).unwrap_or_default().iter().collect();
        self.at = end + 2;
        parameter::scan_arithmetic(&inner, &mut self.word);
        true
    }

    /// Reads from after the opening bracket to after the closing one.
    fn substitution(&mut self) {
        let Some(end) = self.closing(self.at, "$(") else {
            return self.give_up("a substitution is too complex; simplify the command");
        };
        let inner = self.characters.get(self.at..end).unwrap_or_default().iter().collect();
        self.word.substitutions.push(inner);
        self.at = end + 1;
    }

    fn backticks(&mut self, quoted: bool) {
        let Some(end) = self.closing(self.at, "`") else {
            return self.give_up("a backtick is not closed");
        };
        let mut inner = String::new();
        while self.at < end {
            let c = self.characters.get(self.at).copied().unwrap_or_default();
            let next = self.peek(1);
            if c == '\\' && matches!(next, Some('`' | '\\' | '$')) {
                inner.extend(next);
                self.at += 1;
            } else {
                inner.push(c);
            }
            self.at += 1;
        }
        // The escaping of quotes depends on the quotes around the backticks.
        if quoted && inner.contains('\\') {
            return self.give_up("a backtick in quotes is too complex; use `$(…)`");
        }
        self.word.substitutions.push(inner);
        self.at = end + 1;
        self.expands(!quoted);
    }
}

/// Finds the closing quote of a single-quoted text that begins at `from`.
fn end_of_quotes(text: &[char], from: usize, ansi: bool) -> Option<usize> {
    let mut at = from;
    loop {
        match *text.get(at)? {
            '\'' => return Some(at),
            '\\' if ansi => at += 2,
            _ => at += 1,
        }
    }
}
