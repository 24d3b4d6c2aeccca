//! Limits that are checked before parsing.

use amplifier_core::text::{is_invisible, is_unusual_space};

const BYTES: usize = 64 << 10;
pub(super) const NESTING: usize = 64;
pub(super) const COMMANDS: usize = 200;
/// Maximum number of words in all commands; the words of a command run by another one count twice.
pub(super) const WORDS: usize = 3_000;
/// Maximum number of opening brackets and keywords: bounds the nesting regardless of quotes.
const OPENERS: usize = 1_000;
/// Maximum number of command separators: the time of tree-sitter grows fast with long chains.
const SEPARATORS: usize = 2_000;

/// Words that begin a construct, or may be repeated before one.
const KEYWORDS: [&str; 11] =
    ["if", "while", "until", "for", "case", "select", "do", "then", "else", "function", "coproc"];

/// Refuses text that is too long, too deeply nested, or contains invisible characters.
pub(super) fn admit(command: &str) -> Result<(), String> {
    if command.len() > BYTES {
        return Err(format!("the command has {} bytes; at most {BYTES} are analysed", command.len()));
    }
    if let Some(hidden) = command.chars().find(|&c| is_hidden(c)) {
        return Err(format!("the command holds the invisible character U+{:04X}; remove it", u32::from(hidden)));
    }
    let openers = command.chars().filter(|c| matches!(c, '(' | '{' | '[' | '`' | '!')).count()
        + command.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| KEYWORDS.contains(word)).count();
    if openers > OPENERS || deepest(command) > NESTING {
        return Err(too_deep());
    }
    if command.chars().filter(|c| matches!(c, '|' | '&' | ';')).count() > SEPARATORS {
        return Err(too_many());
    }
    Ok(())
}

pub(super) fn too_many() -> String {
    format!("the command has too many parts; at most {COMMANDS} are analysed")
}

pub(super) fn too_many_words() -> String {
    format!("the command has too many words; at most {WORDS} are analysed")
}

pub(super) fn too_deep() -> String {
    format!("the command is nested too deeply; at most {NESTING} levels are analysed")
}

/// Returns the depth of brackets. Quotes are ignored: quoted text may be a command, too.
fn deepest(command: &str) -> usize {
    let mut deepest = 0;
    let mut open = 0_usize;
    let mut ticks = 0_usize;
    for c in command.chars() {
        match c {
            '(' | '{' | '[' => open += 1,
            ')' | '}' | ']' => open = open.saturating_sub(1),
            '`' => ticks += 1,
            _ => {}
        }
        deepest = deepest.max(open);
    }
    // A backtick opens or closes; nested ones are escaped, so few of them nest.
    deepest.max(if command.contains("\\`") { ticks / 2 } else { 0 })
}

/// Returns `true` for characters that are invisible or change the display: control characters, direction marks, zero-width
/// characters, tags, and spaces other than the one that separates words.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || is_invisible(c) || is_unusual_space(c)
}
