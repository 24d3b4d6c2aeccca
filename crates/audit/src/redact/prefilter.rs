//! A fast check if any rule could find a secret in JSON.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind, packed};

use super::literal::required_literal;
use super::names::name_start;
use super::rules::TOKEN_LENGTH;

#[derive(Clone, Default)]
pub(super) struct Prefilter {
    literals: Vec<Literal>,
    /// `true` if a rule has no literal.
    anything: bool,
    searchers: Vec<Searcher>,
}

impl Prefilter {
    pub(super) fn add(&mut self, text: impl Into<Vec<u8>>, check: Check) {
        self.literals.push(Literal { text: text.into(), check });
    }

    pub(super) fn add_pattern(&mut self, pattern: &str) {
        match required_literal(pattern) {
            Some(literal) => self.add(literal, Check::AnyCase),
            None => self.anything = true,
        }
    }

    pub(super) fn add_assignment(&mut self, name: &'static str) {
        let last_word = name.rsplit('_').next().unwrap_or(name);
        self.add(last_word, Check::Assigned(name));
    }

    /// Adds the name of a field, without separators.
    pub(super) fn add_field(&mut self, name: &[u8]) {
        if !name.iter().all(|&byte| is_written_as_is(byte)) {
            self.anything = true;
        }
        // A key can have separators anywhere. Its closing quote follows some last letters of the name, or fewer and a
        // separator. Two letters are enough, except for `on`: most records have a `reason` and a `decision`.
        let letters = name.len().min(if name.ends_with(b"on") { 6 } else { 2 });
        let mut add = |separator: &str, count: usize| {
            let text = [separator.as_bytes(), &name[name.len() - count..], b"\":"].concat();
            self.add(text, Check::Field(name.to_owned()));
        };
        add("", letters);
        for count in 0..letters {
            add("_", count);
            add("-", count);
        }
    }

    /// Prepares [`finds`](Self::finds), after all additions.
    pub(super) fn index(&mut self) {
        // Two searchers with half of the texts have fewer false positives than one with all. Names that begin with a letter
        // occur in prose; tokens and separators are rare.
        let (names, tokens): (Vec<_>, Vec<_>) = self.literals.iter().partition(|literal| {
            matches!(literal.check, Check::Assigned(_) | Check::Field(_)) && literal.text[0].is_ascii_alphabetic()
        });
        let parts = [tokens, names].into_iter().filter(|part| !part.is_empty());
        match parts.map(Searcher::new).collect() {
            Some(searchers) => self.searchers = searchers,
            None => self.anything = true,
        }
    }

    pub(super) fn finds(&self, json: &[u8]) -> bool {
        if self.anything {
            return true;
        }
        let mut folded = [0; PIECE + PADDING];
        let mut start = 0;
        loop {
            let piece = &json[start..json.len().min(start + PIECE)];
            folded.iter_mut().zip(piece).for_each(|(to, from)| *to = fold(from));
            let folded = &mut folded[..piece.len() + PADDING];
            folded[piece.len()..].fill(0);
            if self.searchers.iter().any(|searcher| searcher.finds(folded, json, start)) {
                return true;
            }
            if start + piece.len() == json.len() {
                return false;
            }
            start += PIECE - TEXT;
        }
    }
}

/// Text that the JSON contains whenever a rule matches.
#[derive(Clone)]
struct Literal {
    text: Vec<u8>,
    check: Check,
}

#[derive(Clone)]
pub(super) enum Check {
    /// No condition.
    AnyCase,
    /// The case matches.
    Exact,
    /// A word begins here, the case matches, and [`TOKEN_LENGTH`] more characters follow.
    Token,
    /// A password and an `@` of the URL's authority follow.
    Url,
    /// The literal is the end of this name, and a value is assigned to it.
    Assigned(&'static str),
    /// A value that may be a key is assigned to a name with this end.
    Key,
    /// The literal is the end of a key, and the key ends with this name.
    Field(Vec<u8>),
}

impl Literal {
    fn holds(&self, json: &[u8], at: usize) -> bool {
        let end = at + self.text.len();
        let Some(found) = json.get(at..end).filter(|found| found.eq_ignore_ascii_case(&self.text)) else {
            return false;
        };
        let (before, after) = (&json[..at], &json[end..]);
        match &self.check {
            Check::AnyCase => true,
            Check::Exact => found == self.text,
            Check::Token => {
                let long = after.iter().take(TOKEN_LENGTH).filter(|&&byte| is_word(byte) || byte == b'-').count();
                // A letter before the word may be the end of an escape. An underscore begins one, too.
                let escape = matches!(before, [.., b'_'] | [.., b'\\', _] | [.., b'\\', b'u', _, _, _, _]);
                let begins = escape || ends_with_code(before) || !before.last().is_some_and(|&byte| is_word(byte));
                found == self.text && begins && long == TOKEN_LENGTH
            }
            Check::Url => {
                let is_stop = |byte: &&u8| matches!(byte, b'@' | b':' | b'/' | b'?' | b'#' | b'<' | b'>' | b'"' | b' ');
                let mut stops = after.iter().filter(is_stop);
                stops.next() == Some(&b':') && stops.find(|&&byte| byte != b':') == Some(&b'@')
            }
            Check::Assigned(name) => {
                // Spaces, tabs, quotes and their escapes may precede the sign.
                let is_filler = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\\' | b't' | b'"' | b'\'' | b']');
                let signs = match after.iter().position(|byte| !is_filler(byte)) {
                    Some(sign) if matches!(after[sign], b'=' | b':') => true,
                    Some(0) if !matches!(after[0], b',' | b'\n' | b'\r') => false,
                    _ => in_flag(before) || behind_value(after).is_some(),
                };
                signs && name_start(&json[..end], name.as_bytes()).is_some()
            }
            Check::Key => {
                let is_filler =
                    |byte: &u8| matches!(byte, b'1' | b'2' | b' ' | b'\t' | b'\\' | b't' | b'"' | b'\'' | b']');
                let is_sign = |byte: &u8| matches!(byte, b'=' | b':' | b'>' | b'|');
                let is_value = |byte: &u8| is_word(*byte) || matches!(byte, b'+' | b'/' | b'-');
                let after = behind_value(after).unwrap_or(after);
                let sign = after.iter().position(|byte| !is_filler(byte)).unwrap_or(after.len());
                let rest = &after[sign..];
                let value = rest.iter().position(|byte| !is_filler(byte) && !is_sign(byte)).unwrap_or(rest.len());
                // Fewer characters than a key has, because its first ones may have been taken for fillers.
                value > 0
                    && is_sign(&rest[0])
                    && rest[value..].iter().take(16).filter(|byte| is_value(byte)).count() == 16
            }
            Check::Field(name) => name_start(&json[..end - 2], name).is_some(),
        }
    }
}

/// Returns `true` if the text ends with a terminal's code, such as `[31m`, or with an escape of URLs.
fn ends_with_code(text: &[u8]) -> bool {
    let is_parameter = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
    let is_terminal = match text.split_last() {
        Some((b'A'..=b'Z' | b'a'..=b'z', rest)) => rest.iter().rev().find(|byte| !is_parameter(byte)) == Some(&b'['),
        _ => false,
    };
    is_terminal || matches!(text, [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

/// Returns the text after `value`, if that is the next key, as in `"name": "TOKEN", "value": "…"`.
fn behind_value(text: &[u8]) -> Option<&[u8]> {
    let is_filler = |byte: &u8| b" \t\r\n,\\nrt\"'12".contains(byte);
    let (key, rest) = text[text.iter().position(|byte| !is_filler(byte))?..].split_at_checked(5)?;
    key.eq_ignore_ascii_case(b"value").then_some(rest)
}

/// Returns `true` if the text ends within a flag of a command, such as `--auth-`.
fn in_flag(text: &[u8]) -> bool {
    let mut words = text.rsplit(|&byte| !is_word(byte) && byte != b'-');
    words.next().is_some_and(|word| word.windows(2).any(|pair| pair == b"--"))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns `true` if the byte is unescaped in the JSON.
pub(super) fn is_written_as_is(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}

#[derive(Clone)]
struct Searcher {
    engine: Engine,
    /// For each search text, the literals that begin with it.
    literals: Vec<Vec<Literal>>,
}

#[derive(Clone)]
enum Engine {
    Packed(packed::Searcher),
    /// For processors and numbers of literals that the packed searcher does not support.
    Automaton(AhoCorasick),
}

/// The size of the pieces for case folding, on the stack.
const PIECE: usize = 512;
/// The number of zeros after a piece, because the packed searcher is slow with short remainders.
const PADDING: usize = 20;
/// The overlap of pieces, so that no text is split.
const TEXT: usize = 8;

/// Folds the case. Also merges some other characters, which the checks distinguish.
///
/// The packed searcher is case-sensitive, and folding takes less time than searching for all variants.
fn fold(byte: &u8) -> u8 {
    byte | 0x20
}

impl Searcher {
    /// Creates a searcher; `None` if the literals are unsupported.
    fn new(literals: Vec<&Literal>) -> Option<Self> {
        // The beginning of a literal is enough, except for the ends of keys, whose letters are frequent.
        let length = |literal: &Literal| if matches!(literal.check, Check::Field(_)) { TEXT } else { 4 };
        let text = |literal: &Literal| literal.text.iter().take(length(literal)).map(fold).collect::<Vec<u8>>();
        let mut literals: Vec<_> = literals.into_iter().map(|literal| (text(literal), literal)).collect();
        // A searcher reports one text for each position. If one begins with another, the shorter one represents both.
        literals.sort_by_key(|(text, _)| text.len());
        let mut groups: BTreeMap<Vec<u8>, Vec<Literal>> = BTreeMap::new();
        for (mut text, literal) in literals {
            if let Some(shorter) = (1..text.len()).find(|&length| groups.contains_key(&text[..length])) {
                text.truncate(shorter);
            }
            groups.entry(text).or_default().push(literal.clone());
        }
        // The packed searcher distributes its texts to 8 or 16 buckets in turn, and has the fewest false positives if those in
        // one bucket are similar. So the sorted texts are divided into as many parts, and taken from each part in turn.
        let buckets = if groups.len() > 32 { 16 } else { 8 };
        let (size, larger) = (groups.len() / buckets, groups.len() % buckets);
        let sorted: Vec<_> = groups.into_iter().collect();
        let part = |bucket| bucket * size + larger.min(bucket);
        let turns = (0..=size)
            .flat_map(|turn| (0..if turn < size { buckets } else { larger }).map(move |bucket| part(bucket) + turn));
        let (texts, literals): (Vec<_>, Vec<_>) = turns.map(|place| sorted[place].clone()).unzip();
        Some(Self { engine: Engine::new(&texts)?, literals })
    }

    fn finds(&self, folded: &[u8], json: &[u8], start: usize) -> bool {
        let mut from = 0;
        while let Some(found) = self.engine.find(folded, from) {
            let mut literals = self.literals[found.pattern().as_usize()].iter();
            if literals.any(|literal| literal.holds(json, start + found.start())) {
                return true;
            }
            from = found.start() + 1;
        }
        false
    }
}

impl Engine {
    fn new(texts: &[Vec<u8>]) -> Option<Self> {
        if let Some(packed) = packed::Searcher::new(texts) {
            return Some(Self::Packed(packed));
        }
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostFirst).kind(Some(AhoCorasickKind::DFA));
        builder.build(texts).ok().map(Self::Automaton)
    }

    fn find(&self, folded: &[u8], from: usize) -> Option<Match> {
        match self {
            Self::Packed(packed) => packed.find_in(folded, (from..folded.len()).into()),
            Self::Automaton(automaton) => automaton.find(Input::new(folded).range(from..)),
        }
    }
}
