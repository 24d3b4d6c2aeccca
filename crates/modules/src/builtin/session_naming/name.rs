//! Names for sessions, derived from prompts and responses.

use serde_json::Value;

use crate::builtin::shared::text::one_line;
use crate::condition::Scope;

/// Longest prefix of a text that is used, in characters: the subject is usually at the beginning.
const LONGEST_TEXT: usize = 4_000;

/// Number of words that make a name descriptive.
const DESCRIPTIVE_WORDS: usize = 3;

/// Phrases at the beginning of a sentence that say nothing about its subject, longest first.
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

#[derive(Debug, PartialEq)]
pub(super) struct Name {
    pub(super) text: String,
    /// `true` if the name probably describes the subject of the session.
    pub(super) is_descriptive: bool,
}

/// Returns the first meaningful sentence of a text, on one line of at most `longest` characters, without secrets and code.
pub(super) fn name(text: &str, longest: usize, scope: &Scope) -> Option<Name> {
    // Redacted before it is truncated: the rest of a truncated secret is not recognized.
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

/// Replaces markers of secrets by `…`.
fn without_markers(text: &str) -> String {
    let mut parts = text.split("[redacted kind=");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push('…');
        plain.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    plain
}

/// Removes code blocks, and the backticks of inline code.
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

/// Splits a text into sentences. A sentence ends at a line break, or at punctuation before a space: not within `a.py`.
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

/// Returns a sentence as a name; `None` if it has no subject.
fn shortened(sentence: &str, longest: usize) -> Option<String> {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '#' | '>' | '-' | '*' | '•' | '"' | '“' | '”' | '…');
    let sentence = sentence.trim_start_matches(is_mark);
    let mut sentence = sentence.trim_end_matches(|c: char| is_mark(c) || matches!(c, '.' | '!' | ',' | ':' | ';'));
    // Only ASCII is compared, so that both lengths agree.
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
    // Rather drop the last word than cut it.
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
