//! Contents of `${…}` and `$((…))`.

use super::word::{Mode, Scanner, Word};

/// Maximum number of expansions in one `${…}`: each nesting level reads the rest of the text again.
const EXPANSIONS: usize = 16;

/// Analyses `${inner}` and adds the findings to `word`.
pub(super) fn scan(inner: &str, word: &mut Word) {
    let name = inner.strip_prefix('#').unwrap_or(inner);
    if is_plain(name) {
        return;
    }
    if inner.contains("\\\n") {
        word.opaque
            .get_or_insert("a line break after a backslash splits an expansion; write the expansion on one line");
        return;
    }
    if inner.starts_with([' ', '\t', '\n', '|', '(']) {
        word.opaque.get_or_insert("`${ …; }` runs commands in newer shells; use `$(…)`");
        return;
    }
    if inner.strip_prefix('!').is_some_and(lists_names) {
        return;
    }
    if inner.starts_with('!') {
        word.opaque.get_or_insert("`${!…}` reads a variable with an unknown name");
        return;
    }
    if inner.ends_with("@P") {
        word.opaque.get_or_insert("`${…@P}` runs the commands that a variable holds");
        return;
    }
    let runs = inner.contains("$(") || inner.contains('`');
    let hides = inner.contains("<(") || inner.contains(">(") || runs && inner.contains(['\'', '"', '\\']);
    if hides || inner.matches("${").count() > EXPANSIONS {
        word.opaque.get_or_insert("a parameter expansion is too complex; simplify the command");
        return;
    }
    word.effects |= !only_expands(name);
    if runs || inner.contains('$') {
        absorb(inner, word);
    }
}

/// Analyses `$((inner))` and adds the findings to `word`.
pub(super) fn scan_arithmetic(inner: &str, word: &mut Word) {
    // The value of a variable is evaluated, too, and a subscript in it may contain a command.
    word.effects |= inner.contains(|c: char| c.is_ascii_alphabetic() || matches!(c, '$' | '`' | '_'));
    if inner.contains(['\'', '"', '\\', ';', '\n']) {
        word.opaque.get_or_insert("an arithmetic expression is too complex; simplify the command");
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

/// Returns `true` if `${inner}` neither assigns nor evaluates arithmetic, in which variables are evaluated recursively:
/// subscripts and offsets are digits, and the operator is known.
fn only_expands(inner: &str) -> bool {
    let special = usize::from(inner.starts_with(['@', '*', '#', '?', '-', '$', '!']));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name_ends = if special > 0 { special } else { inner.find(|c| !is_name(c)).unwrap_or(inner.len()) };
    let mut rest = inner.get(name_ends..).unwrap_or_default();
    if let Some((index, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if !matches!(index, "@" | "*") && !is_number(index) {
            return false;
        }
        rest = after;
    }
    let Some(operator) = rest.chars().next() else { return true };
    match operator {
        '-' | '+' | '?' | '#' | '%' | '/' | '^' | ',' => true,
        '@' => matches!(rest, "@Q" | "@E" | "@A" | "@a" | "@K" | "@k" | "@U" | "@u" | "@L"),
        ':' if rest.get(1..).is_some_and(|word| word.starts_with(['-', '+', '?'])) => true,
        ':' => rest.split(':').skip(1).all(|offset| is_number(offset.trim().trim_start_matches('-'))),
        _ => false,
    }
}

/// Returns `true` if `${!inner}` lists the subscripts of an array, or the names of variables.
fn lists_names(inner: &str) -> bool {
    let name = ["[@]", "[*]", "@", "*"].iter().find_map(|end| inner.strip_suffix(end));
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_plain(name: &str) -> bool {
    matches!(name, "@" | "*" | "#" | "?" | "-" | "$" | "!")
        || !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
