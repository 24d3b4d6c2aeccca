//! Walk over a simple command: its words, assignments and redirections.

use super::Walker;
use crate::shell::command::{Command, Stdin, base_name};
use crate::shell::effects::{Exemption, FileReference};
use crate::shell::emptying::OutputContent;
use crate::shell::grammar::{Argument, Assignment, AssignmentValue, CommandPart, SimpleCommand};
use crate::shell::word::Word;
use crate::shell::{braces, emptying, limits, readonly, written_files};

impl Walker {
    pub(super) fn simple(&mut self, simple: &SimpleCommand<'_>, timed: bool) {
        let (mut words, mut stdin, mut redirected) = (Vec::new(), Stdin::default(), false);
        let (downloads, written) = (self.downloads, self.effects.writes.len());
        let mut settings = Vec::new();
        if let Some(raw) = simple.name {
            self.names.push(if timed { "time".to_owned() } else { raw.to_owned() });
            let name = Word::new(raw);
            // Before the substitutions in its words, so that programs are listed in the order of writing.
            if let Some(name) = name.literal() {
                self.program(base_name(name));
            }
            self.expand(&name);
            words.push(name);
        }
        for part in &simple.parts {
            match part {
                CommandPart::Assignment(assignment) => {
                    self.assignment(assignment);
                    settings.extend(setting(assignment));
                }
                CommandPart::Redirection(redirection) => redirected |= self.redirect(redirection, &mut stdin),
                CommandPart::Argument(Argument::Word(word)) => {
                    words.extend(braces::expand(word).iter().map(|word| self.word(word)));
                }
                CommandPart::Argument(Argument::ProcessSubstitution(list)) => {
                    self.in_subshell(|walker| walker.list(list));
                    words.push(Word::new("/dev/fd/*"));
                }
            }
        }
        self.commands += 1;
        if self.commands > limits::COMMANDS {
            return self.refuse(limits::too_many());
        }
        let called = words.first().and_then(Word::literal);
        if self.is_concurrent && called.is_some_and(|name| self.functions.iter().any(|function| function == name)) {
            self.destroys("starts itself again without end", called.unwrap_or_default().to_owned().as_str());
        }
        // A function may call another one that is defined later.
        let moves = self.functions_move && called.is_some_and(|name| self.defined.contains(name));
        let content = OutputContent::printed_by(&words, &stdin, self.fed_content);
        let read = emptying::read_by(&words);
        let reads = |file: &FileReference| read.contains(&file.written) || self.fed_words.contains(&file.written);
        if redirected && self.effects.writes.iter().skip(written).any(reads) {
            let files = self.effects.writes.iter().skip(written).cloned().collect();
            self.may_lose("empties a file before it is read", &joined(&words), Exemption::New(files));
        }
        if redirected && let Some(why) = content.loss() {
            let file = self.analysis.writes.last().cloned().unwrap_or_default();
            let files = self.effects.writes.iter().skip(written).cloned().collect();
            let note = if content == OutputContent::Nothing { Self::loses } else { Self::may_lose };
            note(self, why, &format!("> {file}"), Exemption::New(files));
        }
        if redirected && (content.loss().is_some() || emptying::encodes(&words)) {
            let files: Vec<String> =
                self.effects.writes.iter().skip(written).map(|file| file.written.clone()).collect();
            files.iter().for_each(|file| self.is_worthless(file));
        }
        let fetched = std::mem::replace(&mut self.fetched_in_words, self.downloads > downloads);
        if !words.is_empty() {
            // The files written by redirections, before options name more files.
            let files: Vec<String> =
                self.effects.writes.iter().skip(written).map(|file| file.written.clone()).collect();
            let text = if redirected { written_files::printed(&words, &stdin) } else { None };
            let is_hidden = text.is_none() && written_files::hides_text(&words);
            let downloads = self.downloads;
            // A command that passes on a downloaded file counts as a download.
            self.downloads += usize::from(read.iter().any(|file| self.is_download(&Word::known(file))));
            let is_copied = matches!(words.first().and_then(Word::literal), Some("tee" | "dd" | "sponge"));
            let outputs = self.effects.writes.len();
            let outer = std::mem::replace(&mut self.settings, settings);
            Command { words, stdin }.inspect(self);
            self.settings = outer;
            let is_download = self.downloads > downloads || self.fed_by_download;
            for file in files {
                self.record_write(&Word::known(&file), text.clone(), is_download);
                self.hides_rules |= is_hidden && written_files::is_rules(&file);
            }
            if self.downloads > downloads || is_copied {
                let is_download = self.downloads > downloads || self.fed_by_download;
                let outputs: Vec<String> =
                    self.effects.writes.iter().skip(outputs).map(|file| file.written.clone()).collect();
                outputs.iter().for_each(|file| self.record_write(&Word::known(file), None, is_download));
            }
        }
        self.fetched_in_words = fetched;
        if moves {
            self.moves();
        }
    }
}

/// Returns the value of a variable, if it is known and a program may write to it.
fn setting(assignment: &Assignment<'_>) -> Option<String> {
    let AssignmentValue::Scalar(value) = assignment.value else { return None };
    let value = Word::new(value).literal()?.to_owned();
    let is_read = readonly::is_harmless_variable(assignment.name)
        || matches!(assignment.name, "PATH" | "PYTHONPATH" | "NODE_PATH");
    (!is_read).then_some(value)
}

fn joined(words: &[Word]) -> String {
    words.iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" ")
}
