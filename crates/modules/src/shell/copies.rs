//! Programs that the same command copies, links or renames, and runs under another name.

use super::command::{Command, base_name};
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::written_files;

const NAMES: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct CopiedProgram {
    path: String,
    program: String,
}

/// Remembers a copy of a program, and the content of a file that is moved.
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
        // In a folder, the copy has the program's own name, which is judged anyway.
        walker.copies.push(CopiedProgram { path: written_files::normalize(&to), program });
    }
}

/// Returns the program that a word names: by its path, or through a lookup such as `$(which …)`.
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
    /// Returns the program that the command has copied to this path.
    pub(super) fn copied(&self, path: &str) -> Option<String> {
        let path = written_files::normalize(path);
        let is_one = |copy: &&CopiedProgram| copy.path == path || !path.contains('/') && base_name(&copy.path) == path;
        self.copies.iter().rev().find(is_one).map(|copy| copy.program.clone())
    }
}
