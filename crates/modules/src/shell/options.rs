//! Options and operands of a program.
//!
//! Words are read like GNU `getopt` does: groups of short options, attached or separate values, abbreviated long options, `--`.
//! If the reading of a word is uncertain, such as after an unknown option, every reading counts.

use super::word::Word;

/// The options of a program in `getopt` notation: `t:` takes a value, `i::` takes an attached value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Syntax {
    /// Letters; a leading `+` means that the first operand ends the options.
    pub(super) short: &'static str,
    pub(super) long: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum OptionValue {
    Nothing,
    Value,
    Attached,
    Unknown,
}

impl OptionValue {
    fn from_colons(colons: &str) -> Self {
        if colons.starts_with("::") {
            Self::Attached
        } else if colons.starts_with(':') {
            Self::Value
        } else {
            Self::Nothing
        }
    }
}

impl Syntax {
    /// Returns `true` if the option with this letter is known to take a value.
    pub(super) fn takes_value(self, letter: char) -> bool {
        self.letter(letter) == OptionValue::Value
    }

    /// Returns `true` if the next word is the value of an option in this word; `None` if one of the options is unknown.
    pub(super) fn takes_next(self, option: &str) -> Option<bool> {
        if let Some(text) = option.strip_prefix("--") {
            let name = text.split('=').next().unwrap_or(text);
            let takes = self.exactly(name)?;
            return Some(takes == OptionValue::Value && name.len() == text.len());
        }
        let mut letters = option.chars().skip(1);
        while let Some(letter) = letters.next() {
            match self.letter(letter) {
                OptionValue::Nothing => {}
                OptionValue::Value => return Some(letters.next().is_none()),
                OptionValue::Attached => return Some(false),
                OptionValue::Unknown => return None,
            }
        }
        Some(false)
    }

    fn letter(self, letter: char) -> OptionValue {
        match self.short.split_once(letter) {
            Some((_, rest)) if letter.is_ascii_alphanumeric() => OptionValue::from_colons(rest),
            _ => OptionValue::Unknown,
        }
    }

    /// Looks up an option by its name, or by an abbreviation if all matching options agree.
    fn name(self, name: &str) -> OptionValue {
        let mut fitting = self.names().filter(|(known, _)| known.starts_with(name)).map(|(_, takes)| takes);
        let first = fitting.next().filter(|first| fitting.all(|other| other == *first));
        self.exactly(name).or(first).unwrap_or(OptionValue::Unknown)
    }

    fn exactly(self, name: &str) -> Option<OptionValue> {
        self.names().find(|(known, _)| *known == name).map(|(_, takes)| takes)
    }

    fn names(self) -> impl Iterator<Item = (&'static str, OptionValue)> {
        self.long.split(' ').map(|entry| {
            let (name, colons) = entry.split_at(entry.find(':').unwrap_or(entry.len()));
            (name, OptionValue::from_colons(colons))
        })
    }
}

/// The arguments of a program, in every possible reading.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    options: Vec<ParsedOption>,
    operands: Vec<Operand>,
}

/// An option that is, or may be, given.
#[derive(Debug)]
struct ParsedOption {
    name: Name,
    values: Vec<Word>,
    sure: bool,
}

#[derive(Debug)]
enum Name {
    Letter(char),
    /// Unknown letters from an expansion.
    Letters,
    /// A long name or its abbreviation.
    Long(String),
}

impl ParsedOption {
    fn is(&self, short: &str, long: &[&str]) -> bool {
        match &self.name {
            Name::Letter(letter) => short.contains(*letter),
            Name::Letters => !short.is_empty(),
            Name::Long(name) => long.iter().any(|option| option.starts_with(name)),
        }
    }
}

/// A word that is, or may be, an operand.
#[derive(Debug)]
struct Operand {
    at: usize,
    word: Word,
    doubt: Option<Doubt>,
    sure: bool,
}

/// Reason for doubt: the word may be a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doubt {
    /// The word follows an unknown option.
    AfterOption,
    /// The word follows an expansion that may produce such an option.
    AfterExpansion,
}

impl Arguments {
    pub(super) fn read(syntax: Syntax, words: &[Word]) -> Self {
        let mut reader =
            OptionReader { syntax, read: Self::default(), at: 0, next: NextWord::Plain, end: EndOfOptions::Open };
        for (at, word) in words.iter().enumerate() {
            reader.at = at;
            reader.word(word);
        }
        reader.read
    }

    /// Returns `true` if an option may be given, by its letter or its name.
    pub(super) fn may_have(&self, short: &str, long: &[&str]) -> bool {
        self.options.iter().any(|option| option.is(short, long))
    }

    pub(super) fn surely_has(&self, short: &str, long: &[&str]) -> bool {
        self.options.iter().any(|option| option.sure && option.is(short, long))
    }

    /// Returns `true` if all options are certainly among these letters.
    pub(super) fn has_only(&self, short: &str) -> bool {
        self.options.iter().all(|option| option.sure && option.is(short, &[]))
    }

    /// Returns the options by name, each with all its possible values.
    pub(super) fn options(&self) -> impl Iterator<Item = (String, &[Word])> {
        self.options.iter().map(|option| {
            let name = match &option.name {
                Name::Letter(letter) => format!("-{letter}"),
                Name::Letters => "-".to_owned(),
                Name::Long(name) => format!("--{name}"),
            };
            (name, option.values.as_slice())
        })
    }

    /// Returns all possible values of an option.
    pub(super) fn values(&self, short: &str, long: &[&str]) -> impl Iterator<Item = &Word> {
        self.options.iter().filter(move |option| option.is(short, long)).flat_map(|option| &option.values)
    }

    /// Returns all possible operands.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Word> {
        self.operands.iter().map(|operand| &operand.word)
    }

    /// Returns all possible first operands; includes `None` if there may be no operand.
    pub(super) fn first(&self) -> impl Iterator<Item = Option<&Word>> {
        let none = self.operands.iter().all(|operand| !operand.sure).then_some(None);
        self.beginning().iter().map(|operand| Some(&operand.word)).chain(none)
    }

    /// Returns the indices of all possible first operands.
    pub(super) fn first_at(&self) -> impl Iterator<Item = usize> {
        self.beginning().iter().map(|operand| operand.at)
    }

    /// Returns the operands up to the first certain one.
    fn beginning(&self) -> &[Operand] {
        let sure = self.operands.iter().position(|operand| operand.sure);
        sure.and_then(|at| self.operands.get(..=at)).unwrap_or(&self.operands)
    }

    /// Returns all possible last operands, and values of unknown options. The first of several operands is followed by another
    /// one.
    pub(super) fn last(&self) -> Vec<&Word> {
        let (mut found, mut open, mut follower) = (Vec::new(), true, None);
        for (at, operand) in self.operands.iter().enumerate().rev() {
            // An expansion that is an operand is followed by another operand.
            let is_followed = follower == Some(Doubt::AfterExpansion) || at == 0 && self.operands.len() > 1;
            if open && !is_followed || operand.doubt.is_some() {
                found.push(&operand.word);
            }
            open &= !operand.sure;
            follower = operand.doubt;
        }
        found.reverse();
        found
    }
}

enum NextWord {
    Plain,
    Value(usize),
    /// Possibly the value of one of these options.
    Perhaps(Vec<usize>, Doubt),
}

/// State of the end of options (`--`).
#[derive(Clone, Copy, PartialEq)]
enum EndOfOptions {
    Open,
    Perhaps,
    Ended,
}

/// Longest group of short options that is read letter by letter, in bytes.
pub(super) const GROUP: usize = 128;

struct OptionReader {
    syntax: Syntax,
    read: Arguments,
    at: usize,
    next: NextWord,
    end: EndOfOptions,
}

impl OptionReader {
    fn word(&mut self, word: &Word) {
        match std::mem::replace(&mut self.next, NextWord::Plain) {
            NextWord::Plain => self.plain(word, None),
            NextWord::Perhaps(options, doubt) => {
                for option in options {
                    self.give(option, word.clone());
                }
                self.plain(word, Some(doubt));
            }
            NextWord::Value(option) => {
                // Programs that do not accept options after operands, as on BSD, read this word as another operand.
                if !self.read.operands.is_empty() {
                    self.operand(word, Some(Doubt::AfterOption));
                }
                self.after_value(word);
                self.give(option, word.clone());
            }
        }
    }

    /// Reads a word that is not certainly a value.
    fn plain(&mut self, word: &Word, doubt: Option<Doubt>) {
        let is_option = word.lead().starts_with('-') && word.literal() != Some("-");
        if self.end == EndOfOptions::Ended || !is_option {
            self.operand(word, doubt);
        } else if word.literal() == Some("--") {
            self.end = if doubt.is_none() { EndOfOptions::Ended } else { EndOfOptions::Perhaps };
        } else {
            let sure = doubt.is_none() && self.end == EndOfOptions::Open;
            if !sure {
                self.operand(word, doubt.or(Some(Doubt::AfterOption)));
            }
            self.option(word, sure);
        }
    }

    fn operand(&mut self, word: &Word, doubt: Option<Doubt>) {
        let ended = self.end == EndOfOptions::Ended;
        let is_one = word.is_operand() || ended && !word.splits();
        let sure = doubt.is_none() && is_one;
        self.read.operands.push(Operand { at: self.at, word: word.clone(), doubt, sure });
        if !is_one && !ended {
            self.next = NextWord::Perhaps(Vec::new(), Doubt::AfterExpansion);
        }
        if sure && self.syntax.short.starts_with('+') {
            self.end = EndOfOptions::Ended;
        }
    }

    fn option(&mut self, word: &Word, sure: bool) {
        match word.lead().strip_prefix("--") {
            Some(text) => self.long(word, text, sure),
            None => self.group(word, sure),
        }
    }

    fn long(&mut self, word: &Word, text: &str, sure: bool) {
        let name = text.split('=').next().unwrap_or(text);
        let is_attached = name.len() < text.len();
        let is_known = is_attached || word.literal().is_some();
        let option = self.add(Name::Long(name.to_owned()), sure && is_known);
        let takes = if is_known { self.syntax.name(name) } else { OptionValue::Unknown };
        if is_attached {
            self.give(option, word.tail("--=".len() + name.len()));
            self.after_value(word);
        } else if takes == OptionValue::Value && sure {
            self.next = NextWord::Value(option);
        } else if matches!(takes, OptionValue::Value | OptionValue::Unknown) {
            self.next = NextWord::Perhaps(vec![option], Doubt::AfterOption);
        }
    }

    fn group(&mut self, word: &Word, mut sure: bool) {
        let text = word.lead();
        let mut waiting = Vec::new();
        if text.len() > GROUP {
            // Any of the letters may take the rest of the word as its value.
            let option = self.add(Name::Letters, false);
            self.give(option, word.tail(1));
            self.next = NextWord::Perhaps(vec![option], Doubt::AfterOption);
            return;
        }
        for (at, letter) in text.char_indices().skip(1) {
            let option = self.add(Name::Letter(letter), sure);
            let takes = self.syntax.letter(letter);
            if takes == OptionValue::Nothing {
                continue;
            }
            let rest = at + letter.len_utf8();
            let is_attached = rest < text.len() || word.literal().is_none();
            if is_attached {
                self.give(option, word.tail(rest));
            }
            if takes == OptionValue::Unknown || takes == OptionValue::Value && !is_attached && !sure {
                // The rest may be the value, or more options.
                waiting.push(option);
                sure = false;
            } else if takes == OptionValue::Value && !is_attached {
                self.next = NextWord::Value(option);
                return;
            } else if waiting.is_empty() {
                return self.after_value(word);
            } else {
                break;
            }
        }
        if word.literal().is_none() {
            let option = self.add(Name::Letters, false);
            self.give(option, word.tail(text.len()));
            waiting.push(option);
        }
        if !waiting.is_empty() {
            self.next = NextWord::Perhaps(waiting, Doubt::AfterOption);
        }
    }

    /// Handles an unknown value, which may expand to several words or none.
    fn after_value(&mut self, value: &Word) {
        if value.splits() {
            self.next = NextWord::Perhaps(Vec::new(), Doubt::AfterOption);
        }
    }

    fn add(&mut self, name: Name, sure: bool) -> usize {
        self.read.options.push(ParsedOption { name, values: Vec::new(), sure });
        self.read.options.len() - 1
    }

    fn give(&mut self, option: usize, value: Word) {
        if let Some(option) = self.read.options.get_mut(option) {
            option.values.push(value);
        }
    }
}
