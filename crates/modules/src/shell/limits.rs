//! What is refused before anything is parsed.

use amplifier_core::text::{is_invisible, is_unusual_space};

/// The longest command that is parsed, in bytes.
const BYTES: usize = 64 << 10;
/// How deep constructs may be nested.
pub(super) const NESTING: usize = 64;
/// How many simple commands there may be.
pub(super) const COMMANDS: usize = 200;
/// How many words all commands may have together; those of a command that another one runs count for both.
pub(super) const WORDS: usize = 3_000;
/// How many brackets and keywords may open something: a bound on the nesting that no trick with quotes gets around.
const OPENERS: usize = 1_000;
/// How many characters may separate commands: the first grammar takes ever longer over a chain that does not end.
const SEPARATORS: usize = 2_000;

/// The words that begin a construct, or stack up in front of one.
const KEYWORDS: [&str; 11] =
    ["if", "while", "until", "for", "case", "select", "do", "then", "else", "function", "coproc"];

/// Refuses what is too long, too deeply nested, or holds characters that a reader cannot see.
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

/// What is said of a command that is made of too many.
pub(super) fn too_many() -> String {
    format!("there are too many commands; at most {COMMANDS} are analysed")
}

/// What is said of a command with too many words.
pub(super) fn too_many_words() -> String {
    format!("the command has too many words; at most {WORDS} are analysed")
}

/// What is said of a command that is nested too deeply.
pub(super) fn too_deep() -> String {
    format!("the command is nested too deeply; at most {NESTING} levels are analysed")
}

/// How deep brackets are nested. Quotes are not looked at: text in quotes may be a command too.
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

/// `true` for characters that change what is seen, or that are not seen: control characters, marks of direction, zero-width ones, tags, and
/// spaces that look like the one that separates words, and do not.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || is_invisible(c) || is_unusual_space(c)
}
