//! A name for a session, from what was said in it.

use serde_json::Value;

use crate::builtin::text::one_line;
use crate::condition::Scope;

/// So much of a text is looked at: what it is about is said at its beginning.
const LONGEST_TEXT: usize = 4_000;

/// So many words say what something is about.
const DESCRIPTIVE_WORDS: usize = 3;

/// Words that begin a sentence and say nothing about the matter, longest first.
const POLITE_OPENINGS: &[&str] = &[
    "i would like you to ",
    "i'd like you to ",
    "i would like to ",
    "i'd like to ",
    "would you please ",
    "could you please ",
    "i want you to ",
    "i need you to ",
    "can you please ",
    "please help me ",
    "can you help me ",
    "could you ",
    "would you ",
    "i want to ",
    "i need to ",
    "help me to ",
    "help me ",
    "can you ",
    "let's ",
    "please ",
    "now ",
];

/// Sentences that are no matter.
const GREETINGS: &[&str] = &[
    "hi",
    "hello",
    "hey",
    "hi there",
    "hello there",
    "good morning",
    "good evening",
    "thanks",
    "thank you",
    "ok",
    "okay",
];

/// A name.
#[derive(Debug, PartialEq)]
pub(super) struct Name {
    pub(super) text: String,
    /// Whether it says what the session is about, as far as that can be told.
    pub(super) is_descriptive: bool,
}

/// The first sentence of a text that says something, without secrets and code: one line of at most so many characters.
pub(super) fn name(text: &str, longest: usize, scope: &Scope) -> Option<Name> {
    // Before it is cut: the rest of a secret that was cut off is no longer known as one.
    let mut text = Value::from(text);
    scope.redact(&mut text);
    let text = without_markers(text.as_str()?);
    let text: String = text.chars().take(LONGEST_TEXT).collect();
    let prose = without_code(&text);
    let named = sentences(&prose).filter_map(|sentence| shortened(sentence, longest));
    let mut named = named.map(|text| Name { is_descriptive: count_words(&text) >= DESCRIPTIVE_WORDS, text }).peekable();
    let first = named.peek().map(|first| first.text.clone())?;
    Some(named.find(|name| name.is_descriptive).unwrap_or(Name { text: first, is_descriptive: false }))
}

/// A secret is not even mentioned.
fn without_markers(text: &str) -> String {
    let mut parts = text.split("[redacted kind=");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push('…');
        plain.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    plain
}

/// Leaves out blocks of code, and the quotes of code within a line.
fn without_code(text: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_code = !is_code;
        } else if !is_code && !line.starts_with("    ") && !line.starts_with('\t') {
            prose.push_str(&line.replace('`', ""));
        }
        prose.push('\n');
    }
    prose
}

/// Ends at a line break, or at a sign that is followed by a space: not within `a.py`.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut ends: Vec<usize> = line
            .char_indices()
            .zip(line.chars().skip(1))
            .filter(|((_, sign), next)| matches!(sign, '.' | '!' | '?' | ';') && next.is_whitespace())
            .map(|((at, sign), _)| at + sign.len_utf8())
            .collect();
        ends.push(line.len());
        let begins = std::iter::once(0).chain(ends.clone());
        begins.zip(ends).map(|(begin, end)| &line[begin..end])
    })
}

/// A sentence as a name; none if it says nothing.
fn shortened(sentence: &str, longest: usize) -> Option<String> {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '#' | '>' | '-' | '*' | '•' | '"' | '“' | '”' | '…');
    let sentence = sentence.trim_start_matches(is_mark);
    let mut sentence = sentence.trim_end_matches(|c: char| is_mark(c) || matches!(c, '.' | '!' | ',' | ':' | ';'));
    // ASCII is compared, so that what is cut off is as long as what was compared.
    while let Some(polite) = POLITE_OPENINGS.iter().find(|polite| begins_with(sentence, polite)) {
        sentence = sentence[polite.len()..].trim_start();
    }
    let is_greeting = GREETINGS.iter().any(|greeting| sentence.eq_ignore_ascii_case(greeting));
    if is_greeting || !sentence.chars().any(char::is_alphanumeric) {
        return None;
    }
    let mut characters = sentence.chars();
    let first = characters.next()?;
    let name: String = first.to_uppercase().chain(characters).collect();
    let line = one_line(&name, longest);
    // Rather a word less than half a word.
    Some(match (line.strip_suffix('…'), line.rsplit_once(' ')) {
        (Some(_), Some((whole, _))) if name.chars().count() > longest && whole.chars().count() * 2 > longest => {
            format!("{whole}…")
        }
        _ => line,
    })
}

fn begins_with(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|text| text.eq_ignore_ascii_case(beginning))
}

fn count_words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().filter(|c| c.is_alphanumeric()).count() > 1).count()
}
