//! Scripts of `sed`, parsed far enough to find commands that run programs, write files or destroy the content of a file.

use super::command::Command;
use super::word::Word;

#[derive(Debug, PartialEq)]
pub(super) enum SedEffect<'a> {
    Writes(&'a str),
    /// Runs this command; an empty command is read from the input.
    Runs(&'a str),
    /// Deletes all lines, or all after the first ones.
    Empties,
}

/// Returns the scripts in the arguments of `sed`.
pub(super) fn scripts(command: &Command) -> Vec<&str> {
    let mut words = command.arguments().iter();
    let (mut scripts, mut operand) = (Vec::new(), None);
    while let Some(word) = words.next() {
        match word.lead() {
            "-e" | "--expression" => scripts.extend(words.next()),
            "-f" | "--file" => drop(words.next()),
            text if text.starts_with("-e") || text.starts_with("--expression=") => scripts.push(word),
            text if text.starts_with('-') => {}
            _ => operand = operand.or(Some(word)),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operand);
    }
    let texts = scripts.into_iter().map(Word::plain);
    texts.map(|text| text.trim_start_matches("--expression=").trim_start_matches("-e")).collect()
}

/// Returns `true` if a command deletes all, or nearly all, of the text that it edits.
pub(super) fn empties(command: &Command, is_quiet: bool) -> bool {
    let scripts = scripts(command);
    let is_emptied = |script: &&str| effects(script).contains(&SedEffect::Empties);
    // Of lines that are selected by number, only those remain.
    let prints = |script: &&str| {
        let chosen = |command: &str| command.trim().chars().all(|c| c.is_ascii_digit() || ",$p ".contains(c));
        script.contains(['p', 'P']) && !script.split([';', '\n']).all(chosen)
    };
    scripts.iter().any(is_emptied) || is_quiet && !scripts.is_empty() && !scripts.iter().any(prints)
}

pub(super) fn effects(script: &str) -> Vec<SedEffect<'_>> {
    let mut reader = SedReader { rest: script, effects: Vec::new(), from: script, is_inside: false };
    while !reader.rest.is_empty() {
        reader.command();
    }
    reader.effects
}

/// Addresses and patterns that match every line.
const EVERY: &[&str] = &["", ".*", "^.*$", "^.*", ".*$", "^", "$", ".", "1~1", "0~1"];

/// Patterns that match a whole line.
const WHOLE: &[&str] = &[".*", "^.*$", "^.*", ".*$", ".+", "^.+$", r"\A.*\z", r"[\s\S]*", r"[\s\S]+"];

/// Returns `true` if an address selects all lines, or all but a few.
fn is_every(address: &str) -> bool {
    let address = address.trim();
    let pattern = address.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match address.split_once(',') {
        // A number of a thousand or more stands for the end.
        Some((first, last)) => is_number(first) && (last.trim() == "$" || is_number(last) && last.len() > 3),
        None => match address.strip_suffix('!') {
            Some(address) => is_number(address) || address == "$",
            None => address != "$" && EVERY.contains(&pattern.unwrap_or(address)),
        },
    }
}

struct SedReader<'a> {
    rest: &'a str,
    effects: Vec<SedEffect<'a>>,
    /// The script from the address of the current command.
    from: &'a str,
    /// `true` if the current command is in braces with an address.
    is_inside: bool,
}

impl<'a> SedReader<'a> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        Some(c)
    }

    fn line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line.trim()
    }

    /// Skips a text up to an unescaped delimiter.
    fn skip_to(&mut self, delimiter: char) {
        let mut in_class = false;
        while let Some(c) = self.next() {
            match c {
                '\\' => drop(self.next()),
                '[' => in_class = true,
                ']' => in_class = false,
                c if c == delimiter && (!in_class || c == '\n') => return,
                _ => {}
            }
        }
    }

    fn command(&mut self) {
        let at = self.rest;
        let address = self.from.get(..self.from.len() - at.len()).unwrap_or_default();
        let Some(c) = self.next() else { return };
        match c {
            ';' | '\n' => self.from = self.rest,
            '{' => {
                self.is_inside |= !is_every(address);
                self.from = self.rest;
            }
            '}' => {
                self.is_inside = false;
                self.from = self.rest;
            }
            'd' | 'Q' | 'q' if !self.is_inside && (is_every(address) || c != 'd' && address.trim() == "1") => {
                self.effects.push(SedEffect::Empties);
            }
            '/' => self.skip_to('/'),
            '\\' => {
                if let Some(delimiter) = self.next() {
                    self.skip_to(delimiter);
                }
            }
            's' | 'y' => {
                let Some(delimiter) = self.next() else { return };
                self.skip_to(delimiter);
                let replacement = self.rest;
                self.skip_replacement(delimiter);
                let is_empty = replacement.starts_with(delimiter);
                let pattern = at.get(1 + delimiter.len_utf8()..at.len() - replacement.len() - delimiter.len_utf8());
                let is_whole = pattern.is_some_and(|pattern| WHOLE.contains(&pattern));
                if c == 's' && is_empty && is_whole && !self.is_inside && is_every(address) {
                    self.effects.push(SedEffect::Empties);
                }
                self.flags();
            }
            'e' => {
                let text = self.line();
                self.effects.push(SedEffect::Runs(text));
            }
            'w' | 'W' => {
                let file = self.line();
                self.effects.push(SedEffect::Writes(file));
            }
            // Some implementations end a label only with the line, so that text may be a command to one and a label to another.
            'b' | 't' | 'T' | ':' => {
                let end = self.rest.find([';', '\n', '}']).unwrap_or(self.rest.len());
                self.rest = self.rest.get(end..).unwrap_or_default();
            }
            'c' if !self.is_inside && is_every(address) => {
                self.line();
                self.effects.push(SedEffect::Empties);
            }
            'a' | 'i' | 'c' | 'r' | 'R' | '#' => drop(self.line()),
            _ => {}
        }
    }

    /// Brackets have no meaning in a replacement.
    fn skip_replacement(&mut self, delimiter: char) {
        while let Some(c) = self.next() {
            if c == '\\' {
                self.next();
            } else if c == delimiter {
                return;
            }
        }
    }

    fn flags(&mut self) {
        while let Some(c) = self.rest.chars().next() {
            match c {
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => drop(self.next()),
                'e' => {
                    self.next();
                    self.effects.push(SedEffect::Runs(""));
                }
                'w' => {
                    self.next();
                    let file = self.line();
                    self.effects.push(SedEffect::Writes(file));
                }
                _ => return,
            }
        }
    }
}
