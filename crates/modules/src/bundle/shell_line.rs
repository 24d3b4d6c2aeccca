//! The words of a shell line.
//!
//! Unlike the analysis of commands, this reads every line, because every line of a bundle runs.

/// A word of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineWord<'a> {
    /// The text without quotes; as written for a word with expansions or patterns.
    pub(super) text: &'a str,
    /// `true` if the shell passes on exactly this text.
    pub(super) is_literal: bool,
    pub(super) place: Place,
}

/// Place of a word in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the beginning of a simple command.
    Begin,
    /// Later in a simple command.
    Inside,
    /// After `<`.
    Input,
}

/// Replaces words of a line, and lines in its command substitutions. Files that the line writes, patterns of `case`, here-documents and comments stay
/// as they are.
pub(super) fn map_words(
    line: &str,
    mut map: impl FnMut(LineWord<'_>) -> Option<String>,
    map_line: impl Fn(&str) -> String,
) -> String {
    let mut reader = LineReader { rest: line, place: Place::Begin, is_input: false, cases: vec![], documents: vec![] };
    let mut mapped = String::new();
    while let Some((text, place)) = reader.next() {
        let Some(place) = place else {
            mapped.push_str(text);
            continue;
        };
        match literal(text) {
            Some(word) => {
                let replaced = map(LineWord { text: &word, is_literal: true, place });
                mapped.push_str(replaced.as_deref().unwrap_or(text));
            }
            None => match map(LineWord { text, is_literal: false, place }) {
                Some(replaced) => mapped.push_str(&replaced),
                None => map_substitutions(text, &map_line, &mut mapped),
            },
        }
    }
    mapped
}

/// Returns a word in single quotes, as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns a word in single quotes, within a text in double quotes.
pub(super) fn quoted_within_quotes(word: &str) -> String {
    let mut within = String::new();
    for c in quoted(word).chars() {
        if matches!(c, '\\' | '"' | '$' | '`') {
            within.push('\\');
        }
        within.push(c);
    }
    within
}

/// State of a `case` command.
#[derive(Clone, Copy, PartialEq)]
enum Case {
    Subject,
    Pattern,
    Branch,
}

struct LineReader<'a> {
    rest: &'a str,
    /// Place of the next word.
    place: Place,
    /// `true` after `<`.
    is_input: bool,
    /// The `case` commands around the next word.
    cases: Vec<Case>,
    /// Delimiters of here-documents that begin after the next line break; `true` for those that ignore tabs.
    documents: Vec<(String, bool)>,
}

impl<'a> LineReader<'a> {
    /// Returns the next piece of the line, with its place if it is a word.
    fn next(&mut self) -> Option<(&'a str, Option<Place>)> {
        let rest = self.rest;
        let first = rest.chars().next()?;
        let (length, is_word) = match first {
            '\\' if rest.starts_with("\\\n") => (2, false),
            ' ' | '\t' => (1, false),
            '#' => (rest.find('\n').unwrap_or(rest.len()), false),
            '\n' => {
                self.operator("\n");
                (1 + self.documents_length(&rest[1..]), false)
            }
            '(' if arithmetic_length(rest) > 0 => (arithmetic_length(rest), false),
            '<' | '>' => (self.redirection(rest), false),
            '&' if rest.starts_with("&>") => (self.redirection(rest), false),
            _ if is_operator(first) => {
                let is_pair = ["&&", "||", ";;", ";&", "|&"].iter().any(|pair| rest.starts_with(pair));
                let length = if is_pair { 2 } else { 1 };
                self.operator(&rest[..length]);
                (length, false)
            }
            _ => (scan(rest, None), true),
        };
        let (text, after) = rest.split_at(length);
        self.rest = after;
        // The number of a descriptor.
        let is_number = after.starts_with(['<', '>']) && text.bytes().all(|byte| byte.is_ascii_digit());
        Some((text, if is_word && !is_number { self.word(text) } else { None }))
    }

    /// Returns the place of a word; `None` for a pattern.
    fn word(&mut self, word: &str) -> Option<Place> {
        if std::mem::take(&mut self.is_input) {
            return Some(Place::Input);
        }
        match (self.cases.last_mut(), word) {
            (Some(Case::Pattern), "esac") => {
                self.cases.pop();
                self.place = Place::Inside;
                return None;
            }
            (Some(Case::Pattern), _) => return None,
            (Some(case @ Case::Subject), "in") => {
                *case = Case::Pattern;
                return None;
            }
            _ => {}
        }
        let place = std::mem::replace(&mut self.place, if word == "{" { Place::Begin } else { Place::Inside });
        match (place, word) {
            (Place::Begin, "case") => self.cases.push(Case::Subject),
            (Place::Begin, "esac") => _ = self.cases.pop(),
            _ => {}
        }
        Some(place)
    }

    fn operator(&mut self, operator: &str) {
        match (self.cases.last_mut(), operator) {
            (Some(case @ Case::Pattern), ")") => *case = Case::Branch,
            (Some(Case::Pattern | Case::Subject), _) => return,
            (Some(case), ";;" | ";&") => *case = Case::Pattern,
            _ => {}
        }
        self.place = Place::Begin;
    }

    /// Returns the length of a redirection, with its target unless that is read.
    fn redirection(&mut self, rest: &str) -> usize {
        let length = |text: &str, characters: &[char]| text.len() - text.trim_start_matches(characters).len();
        let mut operator = length(rest, &['<', '>', '&', '|']);
        if rest[operator..].starts_with('(') {
            self.place = Place::Begin;
            return operator + 1;
        }
        let kind = &rest[..operator];
        let strips_tabs = kind == "<<" && rest[operator..].starts_with('-');
        operator += usize::from(strips_tabs);
        let start = operator + length(&rest[operator..], &[' ', '\t']);
        if kind == "<" {
            self.is_input = true;
            return start;
        }
        let end = start + scan(&rest[start..], None);
        if kind == "<<" {
            let delimiter = rest[start..end].replace(['\'', '"', '\\'], "");
            self.documents.push((delimiter, strips_tabs));
        }
        end
    }

    /// Returns the length of the here-documents at the beginning of a text.
    fn documents_length(&mut self, text: &str) -> usize {
        let mut lines = text.split_inclusive('\n');
        let mut length = 0;
        for (delimiter, strips_tabs) in std::mem::take(&mut self.documents) {
            for line in lines.by_ref() {
                length += line.len();
                let line = line.trim_end_matches('\n');
                if delimiter == if strips_tabs { line.trim_start_matches('\t') } else { line } {
                    break;
                }
            }
        }
        length
    }
}

/// Returns the length of `((…))` at the beginning of a text, or 0. It may also be two subshells.
fn arithmetic_length(text: &str) -> usize {
    let inside = text.strip_prefix("((").and_then(|text| text.split_once("))"));
    let inside = inside.filter(|(inside, _)| !inside.contains("./") && !inside.contains(';'));
    inside.map_or(0, |(inside, _)| inside.len() + 4)
}

fn is_operator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')')
}

/// Returns the length of the word at the beginning of a text, or, after the beginning of a substitution, that of the substitution up to its end.
fn scan(text: &str, opened: Option<char>) -> usize {
    let mut open: Vec<char> = opened.into_iter().collect();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        let after = &text[at..];
        match (open.last(), c) {
            (_, '\\') => _ = characters.next(),
            (Some(&end), c) if c == end => {
                open.pop();
                if open.is_empty() && opened.is_some() {
                    return at;
                }
            }
            (None, c) if is_operator(c) => return at,
            (None | Some(')'), '\'') => _ = characters.find(|(_, c)| *c == '\''),
            (None | Some(')'), '"') => open.push('"'),
            (None | Some('"' | ')'), '`') => open.push('`'),
            (None | Some('"'), '$') if after.starts_with("$(") => {
                open.push(')');
                characters.next();
            }
            (Some(')'), '(') => open.push(')'),
            _ => {}
        }
    }
    text.len()
}

/// Returns a word without its quotes; `None` if it has expansions or patterns.
fn literal(word: &str) -> Option<String> {
    let (mut text, mut quote) = (String::new(), None);
    let mut characters = word.chars().peekable();
    if word.starts_with('~') {
        return None;
    }
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), c) => text.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (_, '$' | '`') | (None, '*' | '?' | '[' | '{') => return None,
            (Some(_), '\\') if !characters.peek().is_some_and(|next| "\\\"$`".contains(*next)) => text.push(c),
            (_, '\\') => text.extend(characters.next()),
            (_, c) => text.push(c),
        }
    }
    Some(text)
}

/// Appends a word, with other lines in its command substitutions.
fn map_substitutions(word: &str, map_line: impl Fn(&str) -> String, mapped: &mut String) {
    let mut rest = word;
    let mut is_quoted = false;
    while let Some(c) = rest.chars().next() {
        let (begin, end) = match c {
            '\\' => {
                let length = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
                mapped.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            '\'' if !is_quoted => {
                let length = rest[1..].find('\'').map_or(rest.len(), |at| at + 2);
                mapped.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            '$' if rest.starts_with("$(") && !rest.starts_with("$((") => ("$(", ')'),
            '`' => ("`", '`'),
            c => {
                is_quoted ^= c == '"';
                mapped.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        let inside = &rest[begin.len()..];
        let length = scan(inside, Some(end));
        mapped.push_str(begin);
        mapped.push_str(&map_line(&inside[..length]));
        rest = &inside[length..];
        mapped.extend(rest.chars().next());
        rest = rest.get(end.len_utf8()..).unwrap_or_default();
    }
}
