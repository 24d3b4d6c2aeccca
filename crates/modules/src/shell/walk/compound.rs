//! Walk over lists, pipelines, compound commands and functions.

use brush_parser::ast;

use super::Walker;
use crate::shell::emptying::OutputContent;
use crate::shell::folders::Folders;
use crate::shell::word::Word;
use crate::shell::{parameter, readonly, written_files};

impl Walker {
    pub(in crate::shell) fn list(&mut self, list: &ast::CompoundList) {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            let (beside, folders) = (self.is_concurrent, self.folders.clone());
            let is_async = matches!(separator, ast::SeparatorOperator::Async);
            self.is_concurrent |= is_async;
            let mut is_sure = true;
            for (operator, pipeline) in and_or {
                if matches!(operator, ast::PipelineOperator::Or) {
                    // A command after `||` runs after a failure, unless the failed command leaves the shell.
                    is_sure = leaves(pipeline);
                    let entered = std::mem::replace(&mut self.folders, folders.clone());
                    self.pipeline(pipeline);
                    self.folders = if is_sure { entered } else { entered.or(self.folders.clone()) };
                } else {
                    self.pipeline(pipeline);
                }
            }
            if is_async {
                self.folders = folders;
            } else if self.folders != folders
                && !(is_sure && and_or.additional.iter().any(|next| matches!(next, ast::AndOr::Or(_))))
            {
                // `cd` may have failed.
                self.folders = std::mem::take(&mut self.folders).or(folders);
            }
            self.is_concurrent = beside;
        }
    }

    pub(super) fn pipeline(&mut self, pipeline: &ast::Pipeline) {
        let (beside, fed, fed_by_download) = (self.is_concurrent, self.fed, self.fed_by_download);
        let fed_content = self.fed_content;
        let fed_words = std::mem::take(&mut self.fed_words);
        let (found, litter, downloads) = (self.found.take(), std::mem::take(&mut self.finds_litter), self.downloads);
        let is_piped = pipeline.seq.len() > 1;
        self.is_concurrent |= is_piped;
        for (position, command) in pipeline.seq.iter().enumerate() {
            let timed = position == 0 && pipeline.timed.is_some();
            if position > 0 {
                self.fed = true;
                self.fed_by_download |= self.downloads > downloads;
                if position <= 8 {
                    let writer = pipeline.seq.get(position - 1);
                    self.fed_words.extend(writer.map(written_files::read_by).unwrap_or_default());
                }
                self.fed_content = pipeline.seq.get(position - 1).map_or_else(OutputContent::default, |writer| {
                    written_files::printed_content(
                        writer,
                        if position == 1 { OutputContent::Anything } else { self.fed_content },
                    )
                });
                self.found = if position > 8 {
                    None
                } else {
                    written_files::listed(pipeline.seq.get(..position).unwrap_or_default(), self)
                };
            }
            if is_piped {
                self.in_subshell(|walker| walker.command(command, timed));
            } else {
                self.command(command, timed);
            }
        }
        (self.is_concurrent, self.fed, self.fed_by_download) = (beside, fed, fed_by_download);
        (self.found, self.finds_litter) = (found, litter);
        (self.fed_content, self.fed_words) = (fed_content, fed_words);
    }

    pub(super) fn command(&mut self, command: &ast::Command, timed: bool) {
        if timed {
            self.program("time");
            if !matches!(command, ast::Command::Simple(_)) {
                self.refuse("`time` before a group of commands is not analysed; time one command");
            }
        }
        match command {
            ast::Command::Simple(simple) => self.simple(simple, timed),
            ast::Command::Compound(compound, redirects) => {
                let found = self.found.clone();
                if let Some(list) = written_files::substituted_input(redirects.as_ref()) {
                    self.found = self.listed_by(list);
                }
                self.compound(compound);
                self.found = found;
                self.redirects(redirects.as_ref());
            }
            ast::Command::Function(function) => self.function(function),
            ast::Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                self.redirects(redirects.as_ref());
            }
        }
    }

    pub(super) fn compound(&mut self, compound: &ast::CompoundCommand) {
        if self.enter() {
            self.compound_parts(compound);
        }
        self.leave();
    }

    pub(super) fn compound_parts(&mut self, compound: &ast::CompoundCommand) {
        use ast::CompoundCommand as Compound;
        match compound {
            Compound::Arithmetic(arithmetic) => self.arithmetic(&arithmetic.expr),
            Compound::ArithmeticForClause(clause) => {
                for expression in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.arithmetic(expression);
                }
                self.repeated(|walker| walker.list(&clause.body.list));
            }
            Compound::BraceGroup(group) => self.list(&group.list),
            Compound::Subshell(subshell) => self.in_subshell(|walker| walker.list(&subshell.list)),
            Compound::ForClause(clause) => {
                self.assigned(&clause.variable_name);
                let words: Vec<Word> = clause.values.iter().flatten().map(|value| self.word(&value.value)).collect();
                let is_number =
                    |word: &Word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
                // All numbers lead to similar places, so one of them is enough.
                let number = words.first().and_then(Word::literal).filter(|_| words.iter().all(is_number));
                self.variables.assign(&clause.variable_name, number.map(str::to_owned));
                if number.is_none() {
                    self.lists_by_variable(&clause.variable_name, &words);
                }
                self.repeated(|walker| walker.list(&clause.body.list));
            }
            Compound::CaseClause(clause) => {
                self.word(&clause.value.value);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(&pattern.value);
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list);
                    }
                }
            }
            Compound::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for branch in clause.elses.iter().flatten() {
                    if let Some(condition) = &branch.condition {
                        self.list(condition);
                    }
                    self.list(&branch.body);
                }
            }
            Compound::WhileClause(clause) | Compound::UntilClause(clause) => {
                let read = self.found.clone().zip(written_files::read_variable(&clause.0));
                self.repeated(|walker| {
                    walker.list(&clause.0);
                    if let Some((paths, name)) = read {
                        walker.lists_at(&name, &paths);
                    }
                    walker.list(&clause.1.list);
                });
            }
            Compound::Coprocess(_) => self.refuse("`coproc` is not analysed; run the command plainly"),
        }
    }

    /// Walks a function at its definition. Calls of it are never proven harmless.
    pub(super) fn function(&mut self, function: &ast::FunctionDefinition) {
        self.taint();
        let name = &function.fname.value;
        if readonly::is_known(name) {
            self.refuse(format!("the function `{name}` replaces a program; use another name"));
        }
        self.functions.push(name.clone());
        self.defined.insert(name.clone());
        let (beside, has_moved) = (std::mem::take(&mut self.is_concurrent), std::mem::take(&mut self.has_moved));
        // The function runs later, in an unknown folder.
        let folders = std::mem::replace(
            &mut self.folders,
            if self.moves_later { Folders::unknown() } else { Folders::default() },
        );
        self.compound(&function.body.0);
        self.functions_move |= self.has_moved;
        (self.is_concurrent, self.folders, self.has_moved) = (beside, folders, has_moved);
        self.functions.pop();
        self.redirects(function.body.1.as_ref());
    }

    pub(super) fn arithmetic(&mut self, expression: &ast::UnexpandedArithmeticExpr) {
        let mut word = Word::known("");
        parameter::scan_arithmetic(&expression.value, &mut word);
        // Expressions assign, too.
        self.evaluates();
        self.expand(&word);
    }

    pub(super) fn test(&mut self, test: &ast::ExtendedTestExpr) {
        use ast::{BinaryPredicate as Binary, ExtendedTestExpr as Test, UnaryPredicate as Unary};
        match test {
            Test::And(left, right) | Test::Or(left, right) => {
                self.test(left);
                self.test(right);
            }
            Test::Not(inner) | Test::Parenthesized(inner) => self.test(inner),
            Test::UnaryTest(predicate, word) => {
                // These evaluate subscripts, which may contain commands.
                if matches!(predicate, Unary::ShellVariableIsSetAndAssigned | Unary::ShellVariableIsSetAndNameRef) {
                    self.evaluates();
                }
                self.word(&word.value);
            }
            Test::BinaryTest(predicate, left, right) => {
                let arithmetic = matches!(
                    predicate,
                    Binary::ArithmeticEqualTo
                        | Binary::ArithmeticNotEqualTo
                        | Binary::ArithmeticLessThan
                        | Binary::ArithmeticLessThanOrEqualTo
                        | Binary::ArithmeticGreaterThan
                        | Binary::ArithmeticGreaterThanOrEqualTo
                );
                for word in [left, right] {
                    let word = self.word(&word.value);
                    if arithmetic && !word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit())) {
                        self.evaluates();
                    }
                }
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
fn leaves(pipeline: &ast::Pipeline) -> bool {
    let is_end = |simple: &ast::SimpleCommand| {
        simple.word_or_name.as_ref().is_some_and(|name| matches!(name.value.as_str(), "exit" | "return"))
    };
    matches!(pipeline.seq.as_slice(), [ast::Command::Simple(simple)] if is_end(simple))
}
