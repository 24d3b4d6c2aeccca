//! Scripts of `sed` and `awk` that only read.

use super::command::Command;
use super::word::Word;

/// Whether `sed` with these arguments prints and nothing else: its scripts can write files and run commands.
pub(super) fn sed_only_reads(arguments: &[&str]) -> bool {
    let mut scripts = 0;
    let mut arguments = arguments.iter();
    let mut explicit = false;
    while let Some(argument) = arguments.next() {
        match *argument {
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" => {}
            "-e" | "-ne" => {
                explicit = true;
                scripts += 1;
                if !arguments.next().is_some_and(|script| sed_prints(script)) {
                    return false;
                }
            }
            option if option.starts_with('-') && option.len() > 1 => return false,
            script if scripts == 0 && !explicit => {
                scripts = 1;
                if !sed_prints(script) {
                    return false;
                }
            }
            _ => {}
        }
    }
    scripts > 0
}

/// Whether a script is one of: addresses with `p`, `d`, `q` or `=`, or one plain substitution.
fn sed_prints(script: &str) -> bool {
    if script.contains('\n') {
        return false;
    }
    if let Some(delimiter) = script.strip_prefix('s').and_then(|rest| rest.chars().next()) {
        let parts: Vec<_> = script.split(delimiter).collect();
        let plain = matches!(delimiter, '/' | '|' | '#' | ',' | '@' | ':');
        let ends =
            parts.last().is_some_and(|flags| flags.chars().all(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | '0'..='9')));
        // An escaped delimiter would put the flags elsewhere, and a class in brackets may hold one.
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

/// Whether `awk` with these arguments prints and nothing else.
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
                // `@` loads and calls by name; `>` and `|` may as well compare, but that takes a parser to know.
                let runs = ["system", "getline", "close", "fflush"].iter().any(|word| program.contains(word));
                return !runs && !program.contains(['>', '|', '@', '\\']) && arguments.all(Word::is_operand);
            }
        }
    }
    false
}
