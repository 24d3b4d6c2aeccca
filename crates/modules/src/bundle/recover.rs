//! Parsing of a bundle in spite of mistakes, to report all of them.

use std::path::Path;

use super::{Bundle, BundleError, MistakeCode};

/// Maximum number of mistakes in the YAML of one file: each costs another pass.
const MAX_MISTAKES: usize = 100;

/// Parses a bundle without the keys and entries that have mistakes. Returns these, too.
pub(super) fn parse(text: &str, file: &Path) -> (Bundle, Vec<BundleError>) {
    let (mut left, mut mistakes) = (text.to_owned(), Vec::<BundleError>::new());
    while !left.trim().is_empty() {
        let error = match serde_saphyr::from_str::<Bundle>(&left) {
            Ok(bundle) => return (bundle, mistakes),
            Err(error) => error,
        };
        let mistake = BundleError::yaml(&error, text, file);
        let place = error.without_snippet().location().map(|location| location.line() as usize);
        let part = Part::of(&mistake);
        let cut = place.and_then(|line| cut(&left, line, part?));
        let is_new = mistakes.iter().all(|known| (known.line, &known.message) != (mistake.line, &mistake.message));
        // The key may be in the part that was removed.
        let is_consequence = part == Some(Part::Entry)
            && mistake.code != MistakeCode::Yaml
            && cut.as_ref().is_some_and(|rest| mistakes.iter().any(|known| is_within(known.line, &left, rest)));
        if is_new && !is_consequence {
            mistakes.push(mistake);
        }
        match cut.filter(|_| mistakes.len() < MAX_MISTAKES) {
            Some(rest) => left = rest,
            None => break,
        }
    }
    (Bundle::default(), mistakes)
}

/// `true` if a line is in the part that a text has lost, or in the blank lines after that part.
fn is_within(line: usize, text: &str, rest: &str) -> bool {
    let differs: Vec<bool> = text.lines().zip(rest.lines()).map(|(before, after)| before != after).collect();
    let Some((first, last)) = differs.iter().position(|line| *line).zip(differs.iter().rposition(|line| *line)) else {
        return false;
    };
    let blank = text.lines().skip(last + 1).take_while(|line| line.trim().is_empty()).count();
    (first + 1..=last + 1 + blank).contains(&line)
}

/// The part of a file that a mistake makes unreadable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The key in its line.
    Key,
    /// The key above its line.
    Parent,
    /// The entry of a list.
    Entry,
}

impl Part {
    /// Returns the part; `None` if nothing else of the file can be read.
    fn of(mistake: &BundleError) -> Option<Self> {
        match mistake.code {
            MistakeCode::Yaml if mistake.message.contains("one document") => None,
            MistakeCode::Yaml => Some(Self::Entry),
            _ if mistake.message.starts_with("missing key") => Some(Self::Entry),
            _ if mistake.message.starts_with("expected a list") => Some(Self::Parent),
            _ => Some(Self::Key),
        }
    }
}

/// Replaces the key in a line by blanks, with its value, or the whole entry of a list. Every other character keeps its position. Returns `None` if
/// there is nothing to replace.
fn cut(text: &str, number: usize, part: Part) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let indent_of = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut at = number.checked_sub(1).filter(|at| *at < lines.len())?;
    if part == Part::Parent {
        let is_above = |line: &usize| !lines[*line].trim().is_empty() && indent_of(lines[*line]) < indent_of(lines[at]);
        at = (0..at).rev().find(is_above).unwrap_or(at);
    }
    let content = |line: &str| {
        let dashes = line.trim_start().trim_start_matches("- ").trim_start();
        line.len() - dashes.len()
    };
    let is_key = part != Part::Entry
        && !lines[at][content(lines[at])..].starts_with(['{', '[', '"', '\''])
        && lines[at].contains(':');
    let (first, column) = if is_key {
        (at, content(lines[at]))
    } else {
        let limit = indent_of(lines[at]);
        let begins = |line: &str| line.trim_start().starts_with("- ");
        let first =
            (0..=at).rev().find(|line| begins(lines[*line]) && (*line == at || indent_of(lines[*line]) <= limit));
        // Without a list, the top-level key that contains the line.
        let key = || (0..=at).rev().find(|line| !lines[*line].trim().is_empty() && indent_of(lines[*line]) == 0);
        let first = first.or_else(key)?;
        (first, indent_of(lines[first]))
    };
    let is_part = |line: &&str| {
        let is_list_below = is_key && indent_of(line) == column && line.trim_start().starts_with("- ");
        line.trim().is_empty()
            || indent_of(line) > column
            || is_list_below && content(lines[first]) == indent_of(lines[first])
    };
    let mut last = first + 1 + lines[first + 1..].iter().take_while(|line| is_part(line)).count();
    last = last.max(at + 1);
    let blank = |line: &str, from: usize| line.char_indices().map(|(at, c)| if at >= from { ' ' } else { c }).collect();
    let mut rest: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    for (number, line) in rest.iter_mut().enumerate().take(last).skip(first) {
        let from = if number == first { column } else { 0 };
        *line = blank(line, from);
    }
    let rest = rest.join("\n");
    (rest != text.trim_end_matches('\n')).then_some(rest)
}
