//! What happens inside `${…}` and `$((…))`.

use super::word::{Mode, Scanner, Word};

/// Looks into `${inner}` and adds to `word` what it finds.
pub(super) fn scan(inner: &str, word: &mut Word) {
    let name = inner.strip_prefix('#').unwrap_or(inner);
    if is_plain(name) {
        return;
    }
    if inner.starts_with('!') {
        word.opaque.get_or_insert("`${!…}` reads a variable whose name is not known");
        return;
    }
    if inner.ends_with("@P") {
        word.opaque.get_or_insert("`${…@P}` runs the commands that a variable holds");
        return;
    }
    let runs = inner.contains("$(") || inner.contains('`');
    let hides = inner.contains("<(") || inner.contains(">(") || runs && inner.contains(['\'', '"', '\\']);
    if hides {
        word.opaque.get_or_insert("a parameter expansion is too intricate; write it more simply");
        return;
    }
    // Subscripts and offsets are arithmetic, `=` assigns.
    let name_ends = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    let operator = inner.get(name_ends..).unwrap_or_default();
    let subscript = operator.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(index, _)| index);
    word.effects |= operator.starts_with('=')
        || operator.starts_with(":=")
        || is_offset(operator) && operator.contains(|c: char| c.is_ascii_alphabetic() || c == '$')
        || subscript.is_some_and(|index| !matches!(index, "@" | "*") && !index.bytes().all(|b| b.is_ascii_digit()))
        || subscript.is_some() && operator.contains("]:");
    if runs || inner.contains('$') {
        absorb(inner, word);
    }
}

/// Looks into `$((inner))` and adds to `word` what it finds.
pub(super) fn scan_arithmetic(inner: &str, word: &mut Word) {
    // A variable's value is evaluated too, and a subscript in it may hold a command.
    word.effects |= inner.contains(|c: char| c.is_ascii_alphabetic() || matches!(c, '$' | '`' | '_'));
    if inner.contains(['\'', '"', '\\', ';', '\n']) {
        word.opaque.get_or_insert("an arithmetic expression is too intricate; write it more simply");
    } else if inner.contains(['$', '`']) {
        absorb(inner, word);
    }
}

fn absorb(inner: &str, word: &mut Word) {
    let nested = Scanner::new(inner).word(Mode::HereDocument);
    word.substitutions.extend(nested.substitutions);
    word.effects |= nested.effects;
    if let Some(why) = nested.opaque {
        word.opaque.get_or_insert(why);
    }
}

fn is_offset(operator: &str) -> bool {
    let mut characters = operator.chars();
    characters.next() == Some(':') && !matches!(characters.next(), Some('-' | '=' | '?' | '+'))
}

fn is_plain(name: &str) -> bool {
    matches!(name, "@" | "*" | "#" | "?" | "-" | "$" | "!")
        || !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
