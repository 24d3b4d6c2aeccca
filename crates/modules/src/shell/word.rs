//! What a word of a command becomes, as far as that can be known.

use std::borrow::Cow;

use super::closing::{closing, end_of_quotes};
use super::{parameter, subscript};

/// A word, taken apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    /// The word as written.
    pub(super) raw: String,
    /// The text after quotes are removed; where `literal` is false, only what comes before the first expansion.
    text: String,
    /// Whether `text` is all there is.
    literal: bool,
    /// Whether the expansion may become several words, or none, that begin with anything.
    splits: bool,
    /// Whether the word may become several words, all of which begin with `text`.
    many: bool,
    /// Commands inside: `$(…)`, backticks, process substitutions.
    pub(super) substitutions: Vec<String>,
    /// Whether expanding may do more than read: arithmetic runs what variables hold, `${x:=…}` assigns.
    pub(super) effects: bool,
    /// Why the word cannot be taken apart.
    pub(super) opaque: Option<&'static str>,
}

impl Word {
    /// Takes a word apart.
    pub(super) fn new(raw: &str) -> Self {
        Scanner::new(raw).word(Mode::Word)
    }

    /// Takes the body of a here-document apart, where quotes mean nothing.
    pub(super) fn here_document(raw: &str) -> Self {
        Scanner::new(raw).word(Mode::HereDocument)
    }

    /// A word that is known.
    pub(super) fn known(text: &str) -> Self {
        Self { raw: text.to_owned(), text: text.to_owned(), literal: true, ..Self::default() }
    }

    /// Words that are known only when the command runs.
    pub(super) fn unknown(raw: &str) -> Self {
        Self { raw: raw.to_owned(), splits: true, ..Self::default() }
    }

    /// A path that `find` puts in place, or several: each begins with one of its starting points.
    pub(super) fn found_path(many: bool) -> Self {
        Self { raw: "{}".to_owned(), text: "./".to_owned(), many, ..Self::default() }
    }

    /// The word's text, where it is known.
    pub(super) fn literal(&self) -> Option<&str> {
        self.literal.then_some(self.text.as_str())
    }

    /// Whether this certainly is no option. It may still be several words: see [`Word::is_many`].
    pub(super) fn is_operand(&self) -> bool {
        if self.literal {
            !self.text.starts_with('-') || self.text == "-"
        } else {
            !self.splits && !self.text.is_empty() && !self.text.starts_with('-')
        }
    }

    /// Whether this is text that is known or an operand: nothing that may turn into an option.
    pub(super) fn is_certain(&self) -> bool {
        self.literal || self.is_operand()
    }

    /// Whether a subscript with a command may be in here, which quotes do not disarm where text is evaluated.
    pub(super) fn hides_command(&self) -> bool {
        if !self.raw.contains('[') {
            return false;
        }
        let text = self.kept_text();
        subscript::opens(&text) && subscript::has_command(&text)
    }

    /// The text that the word keeps: without quotes where all of it is known, and else without the commands that the shell runs
    /// where the word stands, which are looked at by themselves.
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

    /// The known beginning of the word.
    pub(super) fn lead(&self) -> &str {
        &self.text
    }

    /// Whether this may become several words, or none, that begin with anything.
    pub(super) fn splits(&self) -> bool {
        self.splits
    }

    /// `true` if this may become another number of words than one. What counts operands, or finds one by its place, has to ask.
    pub(super) fn is_many(&self) -> bool {
        self.splits || self.many
    }

    /// Whether this is one of these texts, or may become one.
    pub(super) fn may_be(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| if self.literal { self.text == *text } else { text.starts_with(&self.text) })
    }

    /// The word without its quotes where all of it is known, and else as it is written.
    pub(super) fn plain(&self) -> &str {
        self.literal().unwrap_or(&self.raw)
    }

    /// What follows the first `at` bytes of the known beginning, such as the value that is attached to an option.
    pub(super) fn tail(&self, at: usize) -> Self {
        let (head, text) = self.text.split_at_checked(at).unwrap_or((&self.text, ""));
        // A quote may begin before the tail does; then it is not known how the tail would be written.
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

/// Goes through the characters of one word.
pub(super) struct Scanner {
    characters: Vec<char>,
    at: usize,
    word: Word,
}

impl Scanner {
    pub(super) fn new(raw: &str) -> Self {
        let word = Word { raw: raw.to_owned(), literal: true, ..Word::default() };
        Self { characters: raw.chars().collect(), at: 0, word }
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
                // Text that a catalogue of translations may replace.
                '$' if self.peek(0) == Some('"') => self.expands(false),
                '$' => self.dollar(false),
                '`' => self.backticks(false),
                '<' | '>' if self.peek(0) == Some('(') => {
                    self.at += 1;
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

    /// A lone `[` is a program, `[` in `a[1]` may be a pattern.
    fn keep_glob(&mut self, c: char) {
        if c == '[' && self.characters.len() == 1 {
            self.keep(c);
        } else {
            // A pattern may match several files, yet each begins with what is known.
            self.expands(false);
            self.word.many = true;
        }
    }

    /// Braces make several words out of one, before anything else happens. All of them begin as the word does.
    fn braces(&mut self) {
        let raw = &self.word.raw;
        if !raw.contains('}') || !raw.contains(',') && !raw.contains("..") {
            return;
        }
        let nests = ["$(", "${", "`"].iter().any(|open| raw.contains(open));
        let lead = if nests {
            // Quotes inside of quotes: where the braces are is not worth knowing.
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

    /// The first brace that no quote and no `$` stands before.
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
            // `$$` is a parameter, and not the beginning of another one.
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

    /// `$'…'`: simple escapes are decoded; a name hidden in numbers is not worth knowing.
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

    /// From after the opening quote to after the closing one; a here-document has neither.
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
                let Some(end) = closing(&self.characters, from, '{') else {
                    return self.give_up("a parameter expansion is too intricate; write it more simply");
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

    /// Reads `((…))` after its `$`, standing after the first bracket. A subshell in a substitution looks the same until its end.
    fn arithmetic(&mut self) -> bool {
        if self.peek(0) != Some('(') {
            return false;
        }
        let Some(end) = closing(&self.characters, self.at + 1, '(') else { return false };
        if self.characters.get(end + 1) != Some(&')') {
            return false;
        }
        let inner: String = self.characters.get(self.at + 1..end).unwrap_or_default().iter().collect();
        self.at = end + 2;
        parameter::scan_arithmetic(&inner, &mut self.word);
        true
    }

    /// From after the opening bracket to after the closing one.
    fn substitution(&mut self) {
        let Some(end) = closing(&self.characters, self.at, '(') else {
            return self.give_up("a substitution is too intricate; write it more simply");
        };
        let inner = self.characters.get(self.at..end).unwrap_or_default().iter().collect();
        self.word.substitutions.push(inner);
        self.at = end + 1;
    }

    fn backticks(&mut self, quoted: bool) {
        let Some(end) = closing(&self.characters, self.at, '`') else {
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
        // How quotes are escaped here depends on the quotes around.
        if quoted && inner.contains('\\') {
            return self.give_up("a backtick in quotes is too intricate; use `$(…)`");
        }
        self.word.substitutions.push(inner);
        self.at = end + 1;
        self.expands(!quoted);
    }
}
