//! The end of a substitution.

/// Finds the character that closes a construct with content from `from` and opening character `open`: `(`, `{` or a backtick.
/// Returns `None` if counting is not enough: comments, `case` patterns, quotes in parameter expansions.
pub(super) fn closing(text: &[char], from: usize, open: char) -> Option<usize> {
    let mut stack = vec![open];
    let mut here_documents: Vec<(String, bool)> = Vec::new();
    let mut at = from;
    while let Some(&c) = text.get(at) {
        let next = text.get(at + 1).copied();
        let top = stack.last().copied()?;
        if c == '\\' {
            at += 2;
            continue;
        }
        match (top, c) {
            ('`', '`') | ('(', ')') | ('{', '}') | ('"', '"') => {
                stack.pop();
                if stack.is_empty() {
                    return Some(at);
                }
            }
            ('`', _) => {}
            ('{', '\'') => return None,
            ('(', '\'') => {
                let ansi = at > 0 && text.get(at - 1) == Some(&'$');
                at = end_of_quotes(text, at + 1, ansi)?;
            }
            (_, '`') => stack.push('`'),
            ('(' | '{', '"') => stack.push('"'),
            (_, '$') if next == Some('(') || next == Some('{') => {
                stack.extend(next);
                at += 1;
            }
            ('(', '(') => stack.push('('),
            ('(', '#') if starts_word(text, at) => return None,
            ('(', 'c') if starts_word(text, at) && text.get(at..at + 4) == Some(&['c', 'a', 's', 'e']) => return None,
            ('(', '<') if next == Some('<') && text.get(at + 2) == Some(&'<') => at += 2,
            ('(', '<') if next == Some('<') => {
                let (delimiter, strips_tabs, end) = delimiter(text, at + 2)?;
                here_documents.push((delimiter, strips_tabs));
                at = end;
                continue;
            }
            ('(', '\n') if !here_documents.is_empty() => {
                for (delimiter, strips_tabs) in here_documents.drain(..) {
                    at = end_of_here_document(text, at + 1, &delimiter, strips_tabs)?;
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Finds the closing quote of a single-quoted text that begins at `from`.
pub(super) fn end_of_quotes(text: &[char], from: usize, ansi: bool) -> Option<usize> {
    let mut at = from;
    loop {
        match *text.get(at)? {
            '\'' => return Some(at),
            '\\' if ansi => at += 2,
            _ => at += 1,
        }
    }
}

fn starts_word(text: &[char], at: usize) -> bool {
    at == 0 || matches!(text.get(at - 1), Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '{'))
}

/// Parses the delimiter of a here-document after its operator; returns the delimiter, `true` if tabs are stripped, and its end.
fn delimiter(text: &[char], from: usize) -> Option<(String, bool, usize)> {
    let strips_tabs = text.get(from) == Some(&'-');
    let mut at = from + usize::from(strips_tabs);
    while matches!(text.get(at), Some(' ' | '\t')) {
        at += 1;
    }
    let mut delimiter = String::new();
    while let Some(&c) = text.get(at) {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' => delimiter.push(c),
            '\'' | '"' | '\\' => {}
            _ => break,
        }
        at += 1;
    }
    (!delimiter.is_empty()).then_some((delimiter, strips_tabs, at))
}

/// Finds the end of the line that closes a here-document: its newline, or the end of the text.
fn end_of_here_document(text: &[char], from: usize, delimiter: &str, strips_tabs: bool) -> Option<usize> {
    let mut at = from;
    while at < text.len() {
        let rest = text.get(at..)?;
        let length = rest.iter().position(|&c| c == '\n').unwrap_or(rest.len());
        let line: String = rest.iter().take(length).collect();
        let line = if strips_tabs { line.trim_start_matches('\t') } else { &line };
        if line == delimiter {
            return Some(at + length);
        }
        at += length + 1;
    }
    None
}
