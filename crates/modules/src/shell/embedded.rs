//! Commands in the arguments of unknown programs: wrappers that are in no table.

use super::command::{Command, base_name};
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::{database, destructive, destructive_calls, readonly, scan, shells, syntax, verbs};

/// Maximum number of positions at which a command may begin.
const PLACES: usize = 8;

/// Searches the arguments of an unknown program for a destructive command.
pub(super) fn inspect(name: &str, command: &Command, walker: &mut Walker) {
    if verbs::has_own_rules(name) || readonly::is_reader(name) {
        return;
    }
    let begins = |(_, word): &(usize, &Word)| {
        let name = word.literal().map(base_name).unwrap_or_default();
        shells::is_shell(name) || name != "[" && destructive::is_known(name) || matches!(name, "git" | "find")
    };
    let starts: Vec<usize> =
        command.words.iter().enumerate().skip(1).filter(begins).map(|(at, _)| at).take(PLACES).collect();
    for at in starts {
        let words = command.words.get(at..).unwrap_or_default().to_vec();
        let inner = Command { words, stdin: command.stdin.clone() };
        let name = inner.words.first().and_then(Word::literal).map(base_name).unwrap_or_default().to_owned();
        let takes_text = |word: &Word| word.lead().starts_with('-') && word.lead().ends_with('c');
        if shells::is_shell(&name) {
            if inner.arguments().first().is_some_and(takes_text) {
                inner.inspect(walker);
            }
            continue;
        }
        let arguments = Arguments::read(syntax::for_program(&name), inner.arguments());
        if let Some(why) = destructive::find_reason(&name, &inner, &arguments) {
            walker.destroys(why, &inner.source_text());
        }
    }
    if command.arguments().iter().take(PLACES).any(|word| destructive_calls::deletes(word.plain())) {
        walker.destroys("is given a program text that deletes", &command.source_text());
    }
    // A command in one word, such as `watchexec 'rm -rf build'`.
    let is_text = |word: &&Word| word.raw.contains(' ');
    if command
        .arguments()
        .iter()
        .filter(is_text)
        .take(PLACES)
        .any(|word| scan::deletes(word.plain()) || database::drops(word.plain()))
    {
        walker.destroys("is given a command that deletes", &command.source_text());
    }
}
