//! Programs that the same command copies, links or renames, and runs under another name.

use super::command::{Command, base_name};
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::written_files;

/// So many names are remembered.
const NAMES: usize = 64;

/// A name under which the command has put a program.
#[derive(Clone, Debug)]
pub(super) struct CopiedProgram {
    path: String,
    program: String,
}

/// Remembers a program that gets another name, and what a file holds that is moved.
pub(super) fn note(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    if !matches!(name, "cp" | "mv" | "ln" | "link" | "install") || command.words.len() > NAMES {
        return;
    }
    let operands: Vec<&Word> = arguments.operands().collect();
    let [from @ .., to] = operands.as_slice() else { return };
    let Some(to) = walker.expand_known(to) else { return };
    let [from] = from else { return };
    let program = program(from, walker);
    walker.record_rename(from, &to);
    if let Some(program) = program.filter(|_| walker.copies.len() < NAMES) {
        // Into a folder it goes under its own name, which is judged anyway.
        walker.copies.push(CopiedProgram { path: written_files::normal(&to), program });
    }
}

/// The program that a word names: by its path, or because a substitution looks for it.
fn program(word: &Word, walker: &Walker) -> Option<String> {
    let looks = ["$(command -v ", "$(which ", "$(type -p ", "$(type -P ", "`which ", "`command -v "];
    let raw = word.raw.trim_matches('"');
    if let Some(name) = looks.iter().find_map(|begin| raw.strip_prefix(begin)) {
        return Some(base_name(name.trim_end_matches([')', '`']).trim()).to_owned());
    }
    let path = walker.expand_known(word)?;
    let is_system = path.rsplit_once('/').is_some_and(|(folder, _)| super::command::is_system(folder));
    let copied = || walker.copied(&path);
    if is_system { Some(base_name(&path).to_owned()) } else { copied() }
}

impl Walker {
    /// The program that the command has put under this name.
    pub(super) fn copied(&self, path: &str) -> Option<String> {
        let path = written_files::normal(path);
        let is_one = |copy: &&CopiedProgram| copy.path == path || !path.contains('/') && base_name(&copy.path) == path;
        self.copies.iter().rev().find(is_one).map(|copy| copy.program.clone())
    }
}
