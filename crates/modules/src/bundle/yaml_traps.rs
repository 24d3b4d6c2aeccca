//! Readable messages for common mistakes in YAML.

use super::{BundleError, MistakeCode};

/// A recognized mistake, with its position and what to write.
pub(super) struct YamlTrap {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
    pub(super) help: String,
}

/// Letters and signs that can follow a backslash in double quotes.
const ESCAPES: &str = "0abt\tnvfre \"/\\N_LPxuU";

/// Recognizes the mistake behind an error of the parser, which may be noticed in the line after it.
pub(super) fn explain(error: &BundleError, source: &str) -> Option<YamlTrap> {
    let lines: Vec<&str> = source.lines().collect();
    let at = error.line.checked_sub(1)?;
    let is_syntax = error.code == MistakeCode::Yaml;
    let before = (0..at).rev().find(|number| !lines[*number].trim().is_empty());
    let after = Some(at + 1).filter(|_| error.message.contains("tab"));
    let found = [Some(at), after, before].into_iter().flatten().filter(|number| is_syntax || *number == at);
    let mut found = found.filter_map(|number| Some((number, Line::new(lines.get(number)?)?)));
    found.find_map(|(number, line)| {
        let above: Vec<Line<'_>> =
            (0..number).rev().filter_map(|number| Line::new(lines[number])).filter(|line| !line.is_blank()).collect();
        let trap = line.dash_trap().or_else(|| line.value_trap()).or_else(|| line.list_trap());
        let (column, message, help) = trap.or_else(|| line.syntax_trap(&above).filter(|_| is_syntax))?;
        Some(YamlTrap { line: number + 1, column: column + 1, message, help })
    })
}

/// A trap in a value that the parser accepts: none at all, a text that is cut off, or one that is a tag.
pub(super) fn silent(number: usize, text: &str, next: &str) -> Option<YamlTrap> {
    let line = Line::new(text)?;
    let (key, value) = (line.key?, line.value);
    let is_below = !next.trim().is_empty() && next.len() - next.trim_start().len() > line.indent;
    if TEXTS.contains(&key) && (value.is_empty() && !is_below || matches!(value, "~" | "null")) {
        let help = match key {
            "when" => "write a condition; without `when`, the hook always runs".to_owned(),
            _ => format!("write a text after `{key}:`, or remove the key"),
        };
        return Some(YamlTrap {
            line: number,
            column: line.indent + 1,
            message: format!("`{key}` has no value"),
            help,
        });
    }
    if TEXTS.contains(&key)
        && let Some((column, message, help)) = line.value_trap()
    {
        return Some(YamlTrap { line: number, column: column + 1, message, help });
    }
    if value.starts_with(['"', '\'', '[', '{', '|', '>', '#', '&', '*']) || !TEXTS.contains(&key) {
        return None;
    }
    let at = value.find(" #").filter(|at| !value[at + 2..].starts_with([' ', '#', '\t']))?;
    let column = line.value_column + value[..=at].chars().count() + 1;
    let message = format!("the text of `{key}` ends before this `#`, which begins a comment");
    Some(YamlTrap { line: number, column, message, help: format!("write `{key}: {}`", quote(value)) })
}

/// Keys whose values are texts.
const TEXTS: [&str; 7] = ["when", "deny", "ask", "inject", "message", "reason", "command"];

/// One line: a key and its value, after the dash of a list.
struct Line<'a> {
    text: &'a str,
    /// Columns before the key.
    indent: usize,
    key: Option<&'a str>,
    value: &'a str,
    value_column: usize,
}

type Found = (usize, String, String);

impl<'a> Line<'a> {
    fn new(text: &'a str) -> Option<Self> {
        let mut content = text.trim_start();
        while let Some(rest) = content.strip_prefix("- ") {
            content = rest.trim_start();
        }
        let indent = text.len() - content.len();
        let end = content.find(':').filter(|at| content[at + 1..].is_empty() || content[at + 1..].starts_with(' '));
        let key = end.map(|end| &content[..end]);
        let key = key.filter(|key| !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-/".contains(c)));
        let after = key.map_or(content, |key| &content[key.len() + 1..]);
        let value = after.trim_start();
        let value_column = text[..text.len() - value.len()].chars().count();
        Some(Self { text, indent, key, value: value.trim_end(), value_column })
    }

    fn is_blank(&self) -> bool {
        self.text.trim().is_empty() || self.text.trim_start().starts_with('#')
    }

    fn shown_key(&self) -> &str {
        self.key.unwrap_or("key")
    }

    /// Returns a value as a part of the line that has to be written: `deny: "no: never"`.
    fn write(&self, value: &str) -> String {
        match self.key {
            Some(key) => format!("write `{key}: {value}`"),
            None => format!("write `{value}`"),
        }
    }

    /// A dash without the space that makes it an entry of a list.
    fn dash_trap(&self) -> Option<Found> {
        let rest = self.text.trim_start().strip_prefix('-')?;
        let is_word = rest.starts_with(|c: char| c.is_alphabetic()) && rest.contains(':');
        let column = self.text.len() - rest.len() - 1;
        let message = "an entry of a list needs a space after the dash".to_owned();
        is_word.then(|| (column, message, format!("write `- {}`", rest.trim_end())))
    }

    /// Traps at the begin of a value, which the parser may accept as something else.
    fn value_trap(&self) -> Option<Found> {
        let first = self.value.chars().next()?;
        let message = match first {
            _ if self.value.starts_with("{{") => "a text that begins with `{{` needs quotes".to_owned(),
            '!' | '%' | '@' | '`' | '&' | '*' => format!("a text that begins with `{first}` needs quotes"),
            _ => return None,
        };
        Some((self.value_column, message, self.write(&quote(self.value))))
    }

    /// A brace without quotes in a list, which begins a map.
    fn list_trap(&self) -> Option<Found> {
        let braces = self.value.strip_prefix('[').and_then(|_| self.value.find("{{"))?;
        let before = &self.value[..braces];
        let is_quoted = ['"', '\''].iter().any(|quote| before.matches(*quote).count() % 2 == 1);
        let column = self.value_column + before.chars().count();
        let help = "write each text with a brace in quotes, as in `\"{file}\"`".to_owned();
        (!is_quoted).then(|| (column, "a text that begins with `{{` needs quotes".to_owned(), help))
    }

    fn syntax_trap(&self, above: &[Self]) -> Option<Found> {
        let blanks = &self.text[..self.text.len() - self.text.trim_start().len()];
        if let Some(at) = blanks.find('\t') {
            return Some((at, "a tab in the indentation".to_owned(), "YAML needs spaces: replace the tab".to_owned()));
        }
        if let Some(found) = self.indentation(above) {
            return Some(found);
        }
        if self.value.starts_with(['"', '\'']) {
            return self.quotes();
        }
        if self.value.starts_with(['[', '{', '|', '>']) {
            return None;
        }
        let at = self.value.find(": ").or_else(|| self.value.ends_with(':').then(|| self.value.len() - 1))?;
        self.key?;
        let column = self.value_column + self.value[..at].chars().count();
        let message = format!("the text of `{}` contains `: `, so it needs quotes", self.shown_key());
        Some((column, message, self.write(&quote(self.value))))
    }

    /// A key that is indented more than the key before it, which has its value already, or less than all keys of its entry.
    fn indentation(&self, lines: &[Self]) -> Option<Found> {
        let above = lines.first()?;
        let (key, before) = (self.key?, above.key?);
        let is_item = self.text.trim_start().starts_with("- ");
        let has_value = !above.value.is_empty() && !above.value.starts_with(['|', '>', '#', '&']);
        if self.indent > above.indent && has_value && !is_item {
            let message = format!("`{key}` is indented more than `{before}` in the line above");
            return Some((self.indent, message, format!("indent both by {} spaces", above.indent)));
        }
        let is_aligned = lines.iter().any(|line| line.indent == self.indent);
        if self.indent < above.indent && !is_item && !is_aligned {
            let message = format!("`{key}` is indented less than `{before}` in the line above");
            return Some((self.indent, message, format!("indent both by {} spaces", above.indent)));
        }
        None
    }

    /// Mistakes in a value in quotes: an unknown escape, quotes within quotes, or an end that is missing.
    fn quotes(&self) -> Option<Found> {
        let quote = self.value.chars().next()?;
        let mut rest = self.value.char_indices().skip(1).peekable();
        while let Some((at, c)) = rest.next() {
            let column = self.value_column + self.value[..at].chars().count();
            match c {
                '\\' if quote == '"' => {
                    let (_, escaped) = rest.next()?;
                    if !ESCAPES.contains(escaped) {
                        let message = format!("invalid escape `\\{escaped}` in double quotes");
                        let plain = self.value.trim_matches('"');
                        let help = match self.key == Some("when") {
                            true => {
                                "leave out the outer quotes, and write `r'…'` around a regular expression".to_owned()
                            }
                            false => self.write(&single(plain)),
                        };
                        return Some((column, message, help));
                    }
                }
                '\'' if quote == '\'' && rest.peek().is_some_and(|(_, next)| *next == '\'') => {
                    rest.next();
                }
                c if c == quote => {
                    let after = self.value[at + 1..].trim_start();
                    if after.is_empty() || after.starts_with('#') {
                        return None;
                    }
                    let inner = self.value.strip_prefix(quote)?;
                    let inner = inner.strip_suffix(quote).unwrap_or(inner);
                    let written = match quote {
                        '"' if !self.value.ends_with('"') => single(self.value),
                        '"' => single(inner),
                        _ if self.value.ends_with('\'') => single(&inner.replace("''", "'")),
                        _ => double(self.value),
                    };
                    let message =
                        format!("the value of `{}` ends at this quote, and more text follows", self.shown_key());
                    return Some((column, message, self.write(&written)));
                }
                _ => {}
            }
        }
        let message = format!("the value of `{}` has no closing quote", self.shown_key());
        Some((self.value_column, message, format!("end it with `{quote}`")))
    }
}

/// Writes a text as YAML in quotes.
fn quote(text: &str) -> String {
    if text.contains(['"', '\\']) { single(text) } else { double(text) }
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
