//! Scripts of `sed` and `awk` that only read.

use super::command::Command;
use super::options::Arguments;
use super::word::Word;

/// Returns `true` if `sed` only prints with these arguments: its scripts can write files and run commands.
pub(super) fn sed_only_reads(arguments: &Arguments) -> bool {
    let given: Vec<&Word> = arguments.values("e", &[]).collect();
    let scripts = if given.is_empty() { arguments.operands().take(1).collect() } else { given };
    let prints = |script: &&Word| script.literal().is_some_and(sed_prints);
    arguments.has_only("neErsuz") && !scripts.is_empty() && scripts.iter().all(prints)
}

/// Returns `true` if a script is an address with `p`, `d`, `q` or `=`, or one plain substitution.
fn sed_prints(script: &str) -> bool {
    if script.contains('\n') {
        return false;
    }
    if let Some(delimiter) = script.strip_prefix('s').and_then(|rest| rest.chars().next()) {
        let parts: Vec<_> = script.split(delimiter).collect();
        let plain = matches!(delimiter, '/' | '|' | '#' | ',' | '@' | ':');
        let ends =
            parts.last().is_some_and(|flags| flags.chars().all(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | '0'..='9')));
        // An escaped delimiter would move the flags, and a bracket expression may contain one.
        return plain
            && parts.len() == 4
            && ends
            && !script.contains(&format!("\\{delimiter}"))
            && !script.contains('[');
    }
    script.split(';').all(|command| {
        let command = command.trim();
        let address = command.trim_end_matches(['p', 'd', 'q', '=', '!']);
        let numbers = address.chars().all(|c| matches!(c, '0'..='9' | ',' | '$' | '+' | '~' | ' '));
        let pattern = address.len() > 1
            && address.starts_with('/')
            && address.ends_with('/')
            && address.matches('/').count() == 2
            && !address.contains(['\\', '[']);
        command.len() - address.len() == 1 && !command.ends_with('!') && (numbers || pattern)
    })
}

/// Returns `true` if `awk` only prints with these arguments.
pub(super) fn awk_only_reads(command: &Command) -> bool {
    let mut arguments = command.arguments().iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.literal() else { return false };
        match text {
            "-F" => {
                if arguments.next().and_then(Word::literal).is_none() {
                    return false;
                }
            }
            _ if text.starts_with("-F") => {}
            _ if text.starts_with('-') => return false,
            program => {
                // `@` loads and calls by name; `>` and `|` may be comparisons, but only a parser could tell.
                let runs = ["system", "getline", "close", "fflush"].iter().any(|word| program.contains(word));
                return !runs && !program.contains(['>', '|', '@', '\\']) && arguments.all(Word::is_operand);
            }
        }
    }
    false
}
