//! Walk over lists, pipelines, compound commands and functions.

use super::Walker;
use crate::shell::emptying::OutputContent;
use crate::shell::folders::Folders;
use crate::shell::grammar::{Command, CompoundCommand, Function, List, Pipeline, TestOperation};
use crate::shell::word::Word;
use crate::shell::{parameter, readonly, written_files};

impl Walker {
    pub(in crate::shell) fn list(&mut self, list: &List<'_>) {
        for and_or in list {
            let (beside, folders) = (self.is_concurrent, self.folders.clone());
            self.is_concurrent |= and_or.is_async;
            let mut is_sure = true;
            for pipeline in &and_or.pipelines {
                if pipeline.is_alternative {
                    // A command after `||` runs after a failure, unless the failed command leaves the shell.
                    is_sure = leaves(pipeline);
                    let entered = std::mem::replace(&mut self.folders, folders.clone());
                    self.pipeline(pipeline);
                    self.folders = if is_sure { entered } else { entered.or(self.folders.clone()) };
                } else {
                    self.pipeline(pipeline);
                }
            }
            if and_or.is_async {
                self.folders = folders;
            } else if self.folders != folders
                && !(is_sure && and_or.pipelines.iter().any(|pipeline| pipeline.is_alternative))
            {
                // `cd` may have failed.
                self.folders = std::mem::take(&mut self.folders).or(folders);
            }
            self.is_concurrent = beside;
        }
    }

    pub(super) fn pipeline(&mut self, pipeline: &Pipeline<'_>) {
        let (beside, fed, fed_by_download) = (self.is_concurrent, self.fed, self.fed_by_download);
        let fed_content = self.fed_content;
        let fed_words = std::mem::take(&mut self.fed_words);
        let (found, litter, downloads) = (self.found.take(), std::mem::take(&mut self.finds_litter), self.downloads);
        let found_name = self.found_name.take();
        let is_piped = pipeline.commands.len() > 1;
        self.is_concurrent |= is_piped;
        for (position, command) in pipeline.commands.iter().enumerate() {
            let timed = position == 0 && pipeline.is_timed;
            if position > 0 {
                self.fed = true;
                self.fed_by_download |= self.downloads > downloads;
                if position <= 8 {
                    let writer = pipeline.commands.get(position - 1);
                    self.fed_words.extend(writer.map(written_files::read_by).unwrap_or_default());
                }
                self.fed_content = pipeline.commands.get(position - 1).map_or_else(OutputContent::default, |writer| {
                    written_files::printed_content(
                        writer,
                        if position == 1 { OutputContent::Anything } else { self.fed_content },
                    )
                });
                self.found = if position > 8 {
                    None
                } else {
                    written_files::listed(pipeline.commands.get(..position).unwrap_or_default(), self)
                };
            }
            if is_piped {
                self.in_subshell(|walker| walker.command(command, timed));
            } else {
                self.command(command, timed);
            }
        }
        (self.is_concurrent, self.fed, self.fed_by_download) = (beside, fed, fed_by_download);
        (self.found, self.found_name, self.finds_litter) = (found, found_name, litter);
        (self.fed_content, self.fed_words) = (fed_content, fed_words);
    }

    pub(super) fn command(&mut self, command: &Command<'_>, timed: bool) {
        if timed {
            self.program("time");
            if !matches!(command, Command::Simple(_)) {
                self.refuse("`time` before a group of commands is not analysed; time one command");
            }
        }
        match command {
            Command::Simple(simple) => self.simple(simple, timed),
            Command::Compound(compound, redirections) => {
                let found = self.found.clone();
                if let Some(list) = written_files::substituted_input(redirections) {
                    self.found = self.listed_by(list);
                }
                self.compound(compound);
                self.found = found;
                self.redirects(redirections);
            }
            Command::Function(function) => self.function(function),
        }
    }

    pub(super) fn compound(&mut self, compound: &CompoundCommand<'_>) {
        if self.enter() {
            self.compound_parts(compound);
        }
        self.leave();
    }

    pub(super) fn compound_parts(&mut self, compound: &CompoundCommand<'_>) {
        match compound {
            CompoundCommand::Group(list) => self.list(list),
            CompoundCommand::Subshell(list) => self.in_subshell(|walker| walker.list(list)),
            CompoundCommand::If(lists) => lists.iter().for_each(|list| self.list(list)),
            CompoundCommand::Loop { condition, body } => {
                let read = self.found.clone().zip(written_files::read_variable(condition));
                self.repeated(|walker| {
                    walker.list(condition);
                    if let Some((paths, name)) = read {
                        walker.lists_at(&name, &paths);
                    }
                    walker.list(body);
                });
            }
            CompoundCommand::For { variable, words, body } => {
                self.assigned(variable);
                self.sets_variable |= !variable.bytes().all(|b| b.is_ascii_lowercase());
                let words: Vec<Word> = words.iter().map(|word| self.word(word)).collect();
                let is_number =
                    |word: &Word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
                // All numbers lead to similar places, so one of them is enough.
                let number = words.first().and_then(Word::literal).filter(|_| words.iter().all(is_number));
                self.variables.assign(variable, number.map(str::to_owned));
                if number.is_none() {
                    self.lists_by_variable(variable, &words);
                }
                self.repeated(|walker| walker.list(body));
            }
            CompoundCommand::ArithmeticFor { expressions, body } => {
                expressions.iter().for_each(|expression| self.arithmetic(expression));
                self.repeated(|walker| walker.list(body));
            }
            CompoundCommand::Case { word, branches } => {
                self.word(word);
                for (patterns, list) in branches {
                    for pattern in patterns {
                        self.word(pattern);
                    }
                    self.list(list);
                }
            }
            CompoundCommand::Arithmetic(expression) => self.arithmetic(expression),
            CompoundCommand::Test(operations) => operations.iter().for_each(|operation| self.test(operation)),
        }
    }

    /// Walks a function at its definition. Calls of it are never proven harmless.
    pub(super) fn function(&mut self, function: &Function<'_>) {
        self.taint();
        let name = function.name;
        if readonly::is_known(name) {
            self.refuse(format!("the function `{name}` replaces a program; use another name"));
        }
        self.functions.push(name.to_owned());
        self.defined.insert(name.to_owned());
        let (beside, has_moved) = (std::mem::take(&mut self.is_concurrent), std::mem::take(&mut self.has_moved));
        // The function runs later, in an unknown folder.
        let folders = std::mem::replace(
            &mut self.folders,
            if self.moves_later { Folders::unknown() } else { Folders::default() },
        );
        self.compound(&function.body);
        self.functions_move |= self.has_moved;
        (self.is_concurrent, self.folders, self.has_moved) = (beside, folders, has_moved);
        self.functions.pop();
        self.redirects(&function.redirections);
    }

    pub(super) fn arithmetic(&mut self, expression: &str) {
        let mut word = Word::known("");
        parameter::scan_arithmetic(expression, &mut word);
        // Expressions assign, too.
        self.evaluates();
        self.expand(&word);
    }

    pub(super) fn test(&mut self, test: &TestOperation<'_>) {
        // These evaluate subscripts, which may contain commands.
        if matches!(test.operator, "-v" | "-R") {
            self.evaluates();
        }
        let is_arithmetic = matches!(test.operator, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
        for operand in &test.operands {
            let word = self.word(operand);
            if is_arithmetic && !word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit())) {
                self.evaluates();
            }
        }
    }

    /// Walks commands that run in a subshell and do not change the folder of the next command.
    pub(super) fn in_subshell(&mut self, walk: impl FnOnce(&mut Self)) {
        let (folders, variables, has_moved) = (self.folders.clone(), self.variables.clone(), self.has_moved);
        walk(self);
        (self.folders, self.variables, self.has_moved) = (folders, variables, has_moved);
    }

    /// Walks commands that may run repeatedly or later: if they change the folder, relative paths in them are unknown.
    pub(super) fn repeated(&mut self, walk: impl FnOnce(&mut Self)) {
        let (folders, begin) = (self.folders.clone(), self.effects.writes.len());
        walk(self);
        if self.folders != folders {
            self.folders = Folders::unknown();
            for file in self.effects.writes.iter_mut().skip(begin).filter(|file| !file.written.starts_with('/')) {
                file.paths = None;
            }
        }
    }
}

/// Returns `true` if a pipeline ends the shell or the function.
fn leaves(pipeline: &Pipeline<'_>) -> bool {
    matches!(
        pipeline.commands.as_slice(),
        [Command::Simple(simple)] if matches!(simple.name, Some("exit" | "return"))
    )
}
