//! The text in every match of a pattern, for the prefilter.

use std::iter::Peekable;
use std::str::Chars;

use super::prefilter::is_written_as_is;

/// Returns a long text that every match of a regular expression contains.
///
/// The pattern must be valid. `None` for unsupported syntax.
pub(super) fn required_literal(pattern: &str) -> Option<String> {
    let (pattern, any_case) = pattern.strip_prefix("(?i)").map_or((pattern, false), |rest| (rest, true));
    let literal = required_in_sequence(&mut pattern.chars().peekable(), any_case)?;
    (literal.len() >= 3).then_some(literal)
}

/// Reads to the end of the pattern or of the group. Empty if no text is required.
fn required_in_sequence(chars: &mut Peekable<Chars<'_>>, any_case: bool) -> Option<String> {
    let (mut best, mut run) = (String::new(), String::new());
    let mut alternatives = false;
    let longer = |best: &mut String, run: &mut String| {
        let run = std::mem::take(run);
        if run.len() > best.len() {
            *best = run;
        }
    };
    while let Some(character) = chars.next() {
        let (mut literal, mut group) = (None, String::new());
        match character {
            ')' => break,
            '|' => alternatives = true,
            '.' | '^' | '$' => {}
            '(' => {
                if chars.next_if_eq(&'?').is_some() && chars.next_if_eq(&':').is_none() {
                    chars.next_if_eq(&'P');
                    chars.next_if_eq(&'<')?;
                    chars.find(|&end| end == '>')?;
                }
                group = required_in_sequence(chars, any_case)?;
            }
            '[' => skip_class(chars)?,
            '\\' => match chars.next()? {
                'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'b' | 'B' | 'A' | 'z' | 'n' | 'r' | 't' => {}
                escaped if !escaped.is_ascii_alphanumeric() && !matches!(escaped, '<' | '>') => literal = Some(escaped),
                _ => return None,
            },
            '*' | '+' | '?' | '{' => return None,
            plain => literal = Some(plain),
        }
        // If case is ignored, `k` and `s` also match characters beyond ASCII.
        let literal = literal.filter(|&plain| u8::try_from(plain).is_ok_and(is_written_as_is));
        let literal = literal.filter(|plain| !any_case || !matches!(plain, 'k' | 'K' | 's' | 'S'));
        let repeat = chars.next_if(|next| matches!(next, '*' | '+' | '?' | '{'));
        if repeat == Some('{') {
            chars.find(|&end| end == '}')?;
        }
        if repeat.is_some() {
            chars.next_if_eq(&'?');
        }
        let required = matches!(repeat, None | Some('+'));
        run.extend(literal.filter(|_| required));
        if literal.is_none() || repeat.is_some() {
            longer(&mut best, &mut run);
        }
        if required {
            longer(&mut best, &mut group);
        }
    }
    longer(&mut best, &mut run);
    Some(if alternatives { String::new() } else { best })
}

fn skip_class(chars: &mut Peekable<Chars<'_>>) -> Option<()> {
    chars.next_if_eq(&'^');
    // A first bracket is a member of the class, and classes can be nested. Both are unsupported.
    if chars.peek() == Some(&']') {
        return None;
    }
    loop {
        match chars.next()? {
            '[' => return None,
            ']' => return Some(()),
            '\\' => drop(chars.next()?),
            _ => {}
        }
    }
}
