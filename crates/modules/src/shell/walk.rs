//! The walk over every simple command of a text.

use std::collections::HashSet;

use brush_parser::ast;

use super::command::{Command, Stdin, base_name};
use super::dialect::Dialect;
use super::effects::{Effects, Excuse, Loss};
use super::folders::Folders;
use super::running::{self, Written};
use super::variables::{self, Variables};
use super::word::Word;
use super::{Analysis, ShellCommand, braces, limits, parameter, parse, readonly, subscript};

/// What was found.
pub(super) struct Walked {
    pub(super) analysis: Analysis,
    /// The simple commands and assignments, in order.
    pub(super) commands: Vec<Simple>,
    /// What happens to files and services.
    pub(super) effects: Effects,
}

/// A simple command, or an assignment that may change what commands do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Simple {
    /// As it runs, with the program's name alone.
    pub(crate) plain: String,
    /// With the path of a program that need not be what its name says.
    pub(crate) with_path: Option<String>,
}

/// A list of the analysis in which nothing stands twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum List {
    Hosts,
    Programs,
    Writes,
    Deletes,
}

/// What has been found so far.
#[derive(Default)]
pub(super) struct Walker {
    pub(super) analysis: Analysis,
    pub(super) effects: Effects,
    /// The folders that the next command may run in.
    pub(super) folders: Folders,
    pub(super) variables: Variables,
    /// The files that the next command is given by another one: where they are.
    pub(super) found: Option<Vec<String>>,
    /// Whether these are only what programs leave behind.
    pub(super) finds_litter: bool,
    /// The files that the command has written so far.
    pub(super) written: Vec<Written>,
    /// Whether the command at hand reads what another one writes, and whether that one downloads.
    pub(super) fed: bool,
    pub(super) fed_by_download: bool,
    /// How many commands download, and whether one of them stands in the words of the command at hand.
    downloads: usize,
    pub(super) fetched_in_words: bool,
    /// Whether the command at hand runs with the rights of another account.
    pub(super) elevated: bool,
    /// Whether a remote of git is named, and whether anything is pushed.
    pub(super) sets_remote: bool,
    pub(super) pushes: bool,
    /// Whether the text as a whole changes folders anywhere.
    moves_later: bool,
    /// Whether the shell at hand has changed its folder.
    has_moved: bool,
    /// The functions that are defined, and whether one of them changes the folder of its caller.
    defined: HashSet<String>,
    functions_move: bool,
    /// Whether values of variables hold parts of a subscript, and parts of a command.
    bracketed: bool,
    dollars: bool,
    plain: Vec<Simple>,
    /// Names of simple commands of the text at hand as they are written, to compare the two grammars by.
    names: Vec<String>,
    /// The shell that runs the text at hand.
    dialect: Dialect,
    budget: parse::Budget,
    /// The words of all commands that were looked at.
    words: usize,
    /// What is in the lists of the analysis, to find it fast.
    noted: HashSet<(List, String)>,
    commands: usize,
    sources: usize,
    depth: usize,
    /// The functions whose bodies are being walked.
    functions: Vec<String>,
    /// Whether a text holds a subscript with a command in it, and whether anything evaluates such texts.
    hides: bool,
    evaluates: bool,
    /// Whether what is being walked runs beside something else.
    beside: bool,
}

impl Walker {
    /// Walks a whole command.
    pub(super) fn walk(command: &str) -> Walked {
        let analysis = Analysis { analysable: true, readonly: true, ..Analysis::default() };
        let mut walker = Self { analysis, ..Self::default() };
        walker.moves_later =
            command.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| matches!(word, "cd" | "pushd" | "popd"));
        walker.source(command);
        // Another folder may hold a repository that came with the files, and its settings name programs.
        if walker.analysis.moves && walker.analysis.programs.iter().any(|name| name == "git") {
            walker.taint();
        }
        if (walker.hides || walker.bracketed && walker.dollars) && walker.evaluates {
            walker.refuse("a subscript holds a command that arithmetic may run; write the command itself");
        }
        if walker.sets_remote && walker.pushes {
            walker.sends("pushes to a remote that it has named itself", "git push");
        }
        Walked { analysis: walker.analysis, commands: walker.plain, effects: walker.effects }
    }

    /// Notes why the command is not analysable. The first reason stays.
    pub(super) fn refuse(&mut self, why: impl Into<String>) {
        self.taint();
        self.analysis.analysable = false;
        self.analysis.why_not.get_or_insert_with(|| why.into());
    }

    /// Notes that it is not proven that the command only reads.
    pub(super) fn taint(&mut self) {
        self.analysis.readonly = false;
    }

    /// Notes that some of the command runs in another folder.
    pub(super) fn moves(&mut self) {
        self.analysis.moves = true;
        self.has_moved = true;
        self.folders = Folders::unknown();
    }

    /// Notes that text is evaluated as arithmetic or as the name of a variable: subscripts in it run commands.
    pub(super) fn evaluates(&mut self) {
        self.taint();
        self.evaluates = true;
    }

    /// Notes that the network is used, and with which machines.
    pub(super) fn network(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.taint();
        self.analysis.network = true;
        for host in hosts {
            self.note(List::Hosts, &host);
        }
    }

    /// Notes that something is sent or changed elsewhere, or that it is not known. The first reason stays.
    pub(super) fn sends(&mut self, why: &str, command: &str) {
        self.taint();
        self.analysis.sends.get_or_insert_with(|| format!("{why} (`{}`)", shortened(command)));
    }

    /// Notes that the command at hand downloads.
    pub(super) fn downloads(&mut self) {
        self.downloads += 1;
    }

    /// Whether the command at hand runs with the rights of another account.
    pub(super) fn is_elevated(&self) -> bool {
        self.elevated
    }

    /// The text of a word, if all its variables are known.
    pub(super) fn expand_known(&self, word: &Word) -> Option<String> {
        self.variables.expand(&word.raw, &self.folders)
    }

    /// The address that a word stands for, if all its variables are known, or it is on this machine whatever the port.
    pub(super) fn expand_address(&self, word: &Word) -> Option<String> {
        let raw = self.variables.with_port(&word.raw);
        self.variables.expand(raw.as_deref().unwrap_or(&word.raw), &self.folders)
    }

    /// Notes that the next command runs in another folder.
    pub(super) fn enters(&mut self, folder: Option<&Word>) {
        let text = folder.and_then(|word| word.literal().map(str::to_owned).or_else(|| self.expand_known(word)));
        self.folders = text.map_or_else(Folders::unknown, |text| self.folders.enter(&text));
    }

    /// Walks something that runs beside the shell itself, so that it does not change where the next command runs.
    fn apart(&mut self, walk: impl FnOnce(&mut Self)) {
        let (folders, variables, has_moved) = (self.folders.clone(), self.variables.clone(), self.has_moved);
        walk(self);
        (self.folders, self.variables, self.has_moved) = (folders, variables, has_moved);
    }

    /// Walks something that may run several times, or later: where it changes the folder, nothing in it has a place that is known.
    fn repeated(&mut self, walk: impl FnOnce(&mut Self)) {
        let (folders, begin) = (self.folders.clone(), self.effects.writes.len());
        walk(self);
        if self.folders != folders {
            self.folders = Folders::unknown();
            for place in self.effects.writes.iter_mut().skip(begin).filter(|place| !place.written.starts_with('/')) {
                place.paths = None;
            }
        }
    }

    /// Adds an item to a list of the analysis, unless it is there.
    fn note(&mut self, list: List, item: &str) {
        if !self.noted.insert((list, item.to_owned())) {
            return;
        }
        let Analysis { hosts, programs, writes, deletes, .. } = &mut self.analysis;
        let list = match list {
            List::Hosts => hosts,
            List::Programs => programs,
            List::Writes => writes,
            List::Deletes => deletes,
        };
        list.push(item.to_owned());
    }

    /// Notes a simple command, as [`Command::plain`](super::command::Command::plain) writes it.
    pub(super) fn ran(&mut self, simple: Simple) {
        self.plain.push(simple);
    }

    /// Notes a simple command as rules see it.
    pub(super) fn called(&mut self, command: ShellCommand) {
        self.analysis.commands.push(command);
    }

    /// Notes a program.
    pub(super) fn program(&mut self, name: &str) {
        self.note(List::Programs, name);
    }

    /// Notes a file that is written to.
    pub(super) fn write(&mut self, file: &Word) {
        self.taint();
        self.note(List::Writes, file.plain());
        let place = self.place(file);
        if file.lead().split('/').any(|part| part == ".git") {
            self.destroys("changes git's own files", file.plain());
        }
        self.effects.writes.push(place);
    }

    /// Notes a file that is deleted.
    pub(super) fn deletes(&mut self, file: &Word) {
        self.taint();
        self.note(List::Deletes, file.plain());
    }

    /// Notes why something is destroyed.
    pub(super) fn destroys(&mut self, why: &str, command: &str) {
        self.loses(why, command, Excuse::Never);
    }

    /// Notes why something is destroyed, and when that is no loss. The analysis keeps the first reason.
    pub(super) fn loses(&mut self, why: &str, command: &str, excuse: Excuse) {
        self.taint();
        let why = format!("{why} (`{command}`)");
        self.analysis.destructive.get_or_insert_with(|| why.clone());
        self.effects.losses.push(Loss { why, excuse });
    }

    /// Notes a loss that only those can see who know the workspace.
    pub(super) fn may_lose(&mut self, why: &str, command: &str, excuse: Excuse) {
        self.taint();
        self.effects.losses.push(Loss { why: format!("{why} (`{command}`)"), excuse });
    }

    /// Walks a text that runs as part of the one at hand: the grammars saw its commands there, too.
    fn substitution(&mut self, text: &str) {
        let outer = std::mem::take(&mut self.names);
        self.apart(|walker| walker.source(text));
        self.names.extend(outer);
    }

    /// Walks a text that a shell is given to run.
    pub(super) fn script(&mut self, text: &str, dialect: Dialect) {
        let outer = (std::mem::take(&mut self.names), std::mem::replace(&mut self.dialect, dialect));
        match limits::admit(text).and_then(|()| dialect.admit(text)) {
            Ok(()) => self.source(text),
            Err(why) => self.refuse(why),
        }
        (self.names, self.dialect) = outer;
    }

    /// Walks a text that the shell at hand is given to run, as `eval` does.
    pub(super) fn same_shell(&mut self, text: &str) {
        self.script(text, self.dialect);
    }

    /// Counts words that are looked at; false where those are too many.
    pub(super) fn spend(&mut self, words: usize) -> bool {
        self.words += words;
        let allowed = self.words <= limits::WORDS;
        if !allowed {
            self.refuse(limits::too_many_words());
        }
        allowed
    }

    /// Goes one level deeper; false where that is too deep.
    pub(super) fn enter(&mut self) -> bool {
        self.depth += 1;
        let allowed = self.depth <= limits::NESTING;
        if !allowed {
            self.refuse(limits::too_deep());
        }
        allowed
    }

    /// Comes back from where [`Walker::enter`] led.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Parses and walks a text, and leaves the names of its commands in `names`.
    fn source(&mut self, text: &str) {
        self.sources += 1;
        if self.sources > limits::COMMANDS {
            return self.refuse(limits::too_deep());
        }
        if self.enter() {
            match parse::parse(text, &mut self.budget) {
                Ok(parsed) => self.parsed(&parsed),
                Err(why) => self.refuse(why),
            }
        }
        self.leave();
    }

    fn parsed(&mut self, parsed: &parse::Parsed) {
        for list in &parsed.program.complete_commands {
            self.list(list);
        }
        self.names.sort_unstable();
        if self.names != parsed.names {
            self.refuse("two readings of the command differ in what it runs; write it more simply");
        }
    }

    pub(super) fn list(&mut self, list: &ast::CompoundList) {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            let (beside, folders) = (self.beside, self.folders.clone());
            let is_async = matches!(separator, ast::SeparatorOperator::Async);
            self.beside |= is_async;
            let mut is_sure = true;
            for (operator, pipeline) in and_or {
                if matches!(operator, ast::PipelineOperator::Or) {
                    // What follows `||` ran because something failed, unless it leaves the shell.
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
            self.beside = beside;
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline) {
        let (beside, fed, fed_by_download) = (self.beside, self.fed, self.fed_by_download);
        let (found, litter, downloads) = (self.found.take(), std::mem::take(&mut self.finds_litter), self.downloads);
        let is_piped = pipeline.seq.len() > 1;
        self.beside |= is_piped;
        for (position, command) in pipeline.seq.iter().enumerate() {
            let timed = position == 0 && pipeline.timed.is_some();
            if position > 0 {
                self.fed = true;
                self.fed_by_download |= self.downloads > downloads;
                self.found = if position > 8 {
                    None
                } else {
                    running::listed(pipeline.seq.get(..position).unwrap_or_default(), self)
                };
            }
            if is_piped {
                self.apart(|walker| walker.command(command, timed));
            } else {
                self.command(command, timed);
            }
        }
        (self.beside, self.fed, self.fed_by_download) = (beside, fed, fed_by_download);
        (self.found, self.finds_litter) = (found, litter);
    }

    fn command(&mut self, command: &ast::Command, timed: bool) {
        if timed {
            self.program("time");
            if !matches!(command, ast::Command::Simple(_)) {
                self.refuse("`time` before a group of commands is not analysed; time one command");
            }
        }
        match command {
            ast::Command::Simple(simple) => self.simple(simple, timed),
            ast::Command::Compound(compound, redirects) => {
                self.compound(compound);
                self.redirects(redirects.as_ref());
            }
            ast::Command::Function(function) => self.function(function),
            ast::Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                self.redirects(redirects.as_ref());
            }
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand) {
        if self.enter() {
            self.compound_parts(compound);
        }
        self.leave();
    }

    fn compound_parts(&mut self, compound: &ast::CompoundCommand) {
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
            Compound::Subshell(subshell) => self.apart(|walker| walker.list(&subshell.list)),
            Compound::ForClause(clause) => {
                self.assigned(&clause.variable_name);
                let words: Vec<Word> = clause.values.iter().flatten().map(|value| self.word(&value.value)).collect();
                let is_number =
                    |word: &Word| word.literal().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
                // One number leads where another one leads.
                let number = words.first().and_then(Word::literal).filter(|_| words.iter().all(is_number));
                self.variables.assign(&clause.variable_name, number.map(str::to_owned));
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
                self.repeated(|walker| {
                    walker.list(&clause.0);
                    walker.list(&clause.1.list);
                });
            }
            Compound::Coprocess(_) => self.refuse("`coproc` is not analysed; run the command plainly"),
        }
    }

    /// A function is walked where it is defined. That it is called is never proven to be harmless.
    fn function(&mut self, function: &ast::FunctionDefinition) {
        self.taint();
        let name = &function.fname.value;
        if readonly::is_known(name) {
            self.refuse(format!("the function `{name}` takes the place of a program; give it another name"));
        }
        self.functions.push(name.clone());
        self.defined.insert(name.clone());
        let (beside, has_moved) = (std::mem::take(&mut self.beside), std::mem::take(&mut self.has_moved));
        // It runs later, in whichever folder that is.
        let folders = std::mem::replace(
            &mut self.folders,
            if self.moves_later { Folders::unknown() } else { Folders::default() },
        );
        self.compound(&function.body.0);
        self.functions_move |= self.has_moved;
        (self.beside, self.folders, self.has_moved) = (beside, folders, has_moved);
        self.functions.pop();
        self.redirects(function.body.1.as_ref());
    }

    fn arithmetic(&mut self, expression: &ast::UnexpandedArithmeticExpr) {
        let mut word = Word::known("");
        parameter::scan_arithmetic(&expression.value, &mut word);
        // Expressions assign, too.
        self.evaluates();
        self.expand(&word);
    }

    fn test(&mut self, test: &ast::ExtendedTestExpr) {
        use ast::{BinaryPredicate as Binary, ExtendedTestExpr as Test, UnaryPredicate as Unary};
        match test {
            Test::And(left, right) | Test::Or(left, right) => {
                self.test(left);
                self.test(right);
            }
            Test::Not(inner) | Test::Parenthesized(inner) => self.test(inner),
            Test::UnaryTest(predicate, word) => {
                // These evaluate subscripts, and those may hold commands.
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

    fn simple(&mut self, simple: &ast::SimpleCommand, timed: bool) {
        let (mut words, mut stdin, mut redirected) = (Vec::new(), Stdin::default(), false);
        let (downloads, written) = (self.downloads, self.effects.writes.len());
        if let Some(name) = &simple.word_or_name {
            self.names.push(if timed { "time".to_owned() } else { name.value.clone() });
            let name = Word::new(&name.value);
            // Before what is inside of its words, so that programs come in the order in which they are written.
            if let Some(name) = name.literal() {
                self.program(base_name(name));
            }
            self.expand(&name);
            words.push(name);
        }
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0).map(|item| (item, true));
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0).map(|item| (item, false));
        for (item, before) in prefix.chain(suffix) {
            match item {
                ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                    redirected |= self.redirect(redirect, &mut stdin);
                }
                ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) if before => self.assignment(assignment),
                ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word)
                | ast::CommandPrefixOrSuffixItem::Word(word) => {
                    self.descriptor(&word.value);
                    words.extend(braces::expand(&word.value).iter().map(|word| self.word(word)));
                }
                ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, inner) => {
                    self.apart(|walker| walker.list(&inner.list));
                    words.push(Word::new("/dev/fd/*"));
                }
            }
        }
        self.commands += 1;
        if self.commands > limits::COMMANDS {
            return self.refuse(limits::too_many());
        }
        let called = words.first().and_then(Word::literal);
        if self.beside && called.is_some_and(|name| self.functions.iter().any(|function| function == name)) {
            self.destroys("starts itself again without end", called.unwrap_or_default().to_owned().as_str());
        }
        // One function may call another that is defined later.
        let moves = self.functions_move && called.is_some_and(|name| self.defined.contains(name));
        if redirected && prints_nothing(&words) {
            let file = self.analysis.writes.last().cloned().unwrap_or_default();
            let places = self.effects.writes.iter().skip(written).cloned().collect();
            self.loses("empties a file", &format!("> {file}"), Excuse::New(places));
        }
        let fetched = std::mem::replace(&mut self.fetched_in_words, self.downloads > downloads);
        if !words.is_empty() {
            // What is written by redirection, before options name more files.
            let files: Vec<String> =
                self.effects.writes.iter().skip(written).map(|place| place.written.clone()).collect();
            let text = if redirected { running::printed(&words, &stdin) } else { None };
            let downloads = self.downloads;
            let is_copied = matches!(words.first().and_then(Word::literal), Some("tee" | "dd" | "sponge"));
            let outputs = self.effects.writes.len();
            Command { words, stdin }.inspect(self);
            let is_download = self.downloads > downloads || self.fed_by_download;
            for file in files {
                self.wrote(&Word::known(&file), text.clone(), is_download);
            }
            if self.downloads > downloads || is_copied {
                let is_download = self.downloads > downloads || self.fed_by_download;
                let outputs: Vec<String> =
                    self.effects.writes.iter().skip(outputs).map(|place| place.written.clone()).collect();
                outputs.iter().for_each(|file| self.wrote(&Word::known(file), None, is_download));
            }
        }
        self.fetched_in_words = fetched;
        if moves {
            self.moves();
        }
    }

    fn assignment(&mut self, assignment: &ast::Assignment) {
        match &assignment.name {
            ast::AssignmentName::VariableName(name) => {
                self.assigned(name);
                let value = match &assignment.value {
                    ast::AssignmentValue::Scalar(value) if !assignment.append => Some(Word::new(&value.value)),
                    _ => None,
                };
                self.assigned_value(name, value.as_ref());
            }
            ast::AssignmentName::ArrayElementName(name, index) => {
                self.assigned(name);
                self.subscript(index);
            }
        }
        if let ast::AssignmentName::VariableName(name) | ast::AssignmentName::ArrayElementName(name, _) =
            &assignment.name
            && !readonly::is_harmless_variable(name)
        {
            let value = match &assignment.value {
                ast::AssignmentValue::Scalar(value) => Word::new(&value.value).literal().map(str::to_owned),
                ast::AssignmentValue::Array(_) => None,
            };
            let plain = format!("{name}={}", value.as_deref().unwrap_or("…"));
            self.ran(Simple { plain, with_path: None });
        }
        match &assignment.value {
            ast::AssignmentValue::Scalar(value) => {
                self.word(&value.value);
            }
            ast::AssignmentValue::Array(elements) => {
                for (index, value) in elements {
                    if let Some(index) = index {
                        self.subscript(&index.value);
                    } else if value.value.starts_with('[') {
                        // `[x]+=1`: the parser does not see the subscript.
                        self.evaluates();
                    }
                    self.word(&value.value);
                }
            }
        }
    }

    /// A subscript is arithmetic unless the array is associative, which cannot be seen.
    fn subscript(&mut self, index: &str) {
        if !index.bytes().all(|b| b.is_ascii_digit()) {
            self.taint();
        }
        self.word(index);
    }

    /// `{x}<file` puts the number of a descriptor into a variable. The parser takes `{x}` for a word.
    fn descriptor(&mut self, raw: &str) {
        let Some(inner) = raw.strip_prefix('{').and_then(|raw| raw.strip_suffix('}')) else { return };
        let name = inner.split('[').next().unwrap_or_default();
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            // With a subscript it is no harmless name.
            self.assigned(inner);
        }
    }

    /// Notes that a variable gets another value.
    pub(super) fn assigned(&mut self, name: &str) {
        if !readonly::is_harmless_variable(name) {
            self.taint();
        }
    }

    /// Notes the value that a variable gets; `None` where it is no single word.
    pub(super) fn assigned_value(&mut self, name: &str, value: Option<&Word>) {
        let text = value.and_then(Word::literal);
        let known = text.map(str::to_owned).or_else(|| {
            let value = value?;
            variables::substituted(&value.raw).or_else(|| self.expand_known(value))
        });
        self.variables.assign(name, known);
        if let Some(value) = value {
            self.holds(value);
        }
        if variables::runs(name, text) {
            self.refuse(format!("programs run what the variable `{name}` is set to; leave it out"));
        }
    }

    /// Notes parts of subscripts and commands in a value that arithmetic may evaluate.
    pub(super) fn holds(&mut self, value: &Word) {
        let text = value.kept_text();
        self.bracketed |= subscript::opens(&text);
        self.dollars |= subscript::has_command(&text) || subscript::ends_in_dollar(&text);
    }

    /// Takes a word apart and walks the commands in it.
    pub(super) fn word(&mut self, raw: &str) -> Word {
        let word = Word::new(raw);
        self.expand(&word);
        word
    }

    pub(super) fn expand(&mut self, word: &Word) {
        if let Some(why) = word.opaque {
            self.refuse(why);
        }
        if word.effects {
            self.evaluates();
        }
        self.hides |= word.hides_command();
        for text in &word.substitutions {
            self.substitution(text);
        }
    }
}

/// Whether a pipeline is a command that ends the shell or the function.
fn leaves(pipeline: &ast::Pipeline) -> bool {
    let is_end = |simple: &ast::SimpleCommand| {
        simple.word_or_name.as_ref().is_some_and(|name| matches!(name.value.as_str(), "exit" | "return"))
    };
    matches!(pipeline.seq.as_slice(), [ast::Command::Simple(simple)] if is_end(simple))
}

/// Whether a command writes nothing, so that a redirection of its output empties a file.
fn prints_nothing(words: &[Word]) -> bool {
    let texts: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    matches!(
        texts.as_deref(),
        Some([] | [":" | "true", ..] | ["cat", "/dev/null"] | ["echo", "-n"] | ["echo", "-n", ""] | ["printf", ""])
    ) || matches!(words.first().and_then(Word::literal), Some(":" | "true"))
}

/// So much of a command is part of a reason.
fn shortened(command: &str) -> String {
    const LONGEST: usize = 200;
    if command.chars().count() <= LONGEST {
        return command.to_owned();
    }
    command.chars().take(LONGEST).chain(['…']).collect()
}
