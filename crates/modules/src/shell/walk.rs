//! The walk over every simple command of a text.

use std::collections::HashSet;

use brush_parser::ast;

use super::command::{Command, Stdin, base_name};
use super::dialect::Dialect;
use super::word::Word;
use super::{Analysis, braces, limits, parameter, parse, readonly};

/// What was found.
pub(super) struct Walked {
    pub(super) analysis: Analysis,
    /// The simple commands and assignments, in order.
    pub(super) commands: Vec<Simple>,
}

/// A simple command, or an assignment that may change what commands do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Simple {
    /// As it runs, with the program's name alone.
    pub(crate) plain: String,
    /// With the path of a program that need not be what its name says.
    pub(crate) with_path: Option<String>,
}

/// What has been found so far.
pub(super) struct Walker {
    analysis: Analysis,
    plain: Vec<Simple>,
    /// Names of simple commands of the text at hand as they are written, to compare the two grammars by.
    names: Vec<String>,
    /// The shell that runs the text at hand.
    dialect: Dialect,
    budget: parse::Budget,
    /// The words of all commands that were looked at.
    words: usize,
    /// The files in `analysis.writes`, to find them fast.
    written: HashSet<String>,
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
        let (names, functions) = (Vec::new(), Vec::new());
        let mut walker = Self {
            analysis,
            plain: Vec::new(),
            names,
            dialect: Dialect::Bash,
            budget: parse::Budget::default(),
            words: 0,
            written: HashSet::new(),
            commands: 0,
            sources: 0,
            depth: 0,
            functions,
            hides: false,
            evaluates: false,
            beside: false,
        };
        walker.source(command);
        // Another folder may hold a repository that came with the files, and its settings name programs.
        if walker.analysis.moves && walker.analysis.programs.iter().any(|name| name == "git") {
            walker.taint();
        }
        if walker.hides && walker.evaluates {
            walker.refuse("a subscript holds a command that arithmetic may run; write the command itself");
        }
        Walked { analysis: walker.analysis, commands: walker.plain }
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
    }

    /// Notes that text is evaluated as arithmetic or as the name of a variable: subscripts in it run commands.
    pub(super) fn evaluates(&mut self) {
        self.taint();
        self.evaluates = true;
    }

    /// Notes that the network is used.
    pub(super) fn network(&mut self) {
        self.taint();
        self.analysis.network = true;
    }

    /// Notes a simple command, as [`Command::plain`](super::command::Command::plain) writes it.
    pub(super) fn ran(&mut self, simple: Simple) {
        self.plain.push(simple);
    }

    /// Notes a program.
    pub(super) fn program(&mut self, name: &str) {
        push_new(&mut self.analysis.programs, name);
    }

    /// Notes a file that is written to.
    pub(super) fn write(&mut self, file: &Word) {
        self.taint();
        if self.written.insert(file.plain().to_owned()) {
            self.analysis.writes.push(file.plain().to_owned());
        }
    }

    /// Notes why something is destroyed. The first reason stays.
    pub(super) fn destroys(&mut self, why: &str, command: &str) {
        self.taint();
        self.analysis.destructive.get_or_insert_with(|| format!("{why} (`{command}`)"));
    }

    /// Walks a text that runs as part of the one at hand: the grammars saw its commands there, too.
    fn substitution(&mut self, text: &str) {
        let outer = std::mem::take(&mut self.names);
        self.source(text);
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
            let beside = self.beside;
            self.beside |= matches!(separator, ast::SeparatorOperator::Async);
            for (_, pipeline) in and_or {
                self.pipeline(pipeline);
            }
            self.beside = beside;
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline) {
        let beside = self.beside;
        self.beside |= pipeline.seq.len() > 1;
        for (position, command) in pipeline.seq.iter().enumerate() {
            let timed = position == 0 && pipeline.timed.is_some();
            self.command(command, timed);
        }
        self.beside = beside;
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
                self.list(&clause.body.list);
            }
            Compound::BraceGroup(group) => self.list(&group.list),
            Compound::Subshell(subshell) => self.list(&subshell.list),
            Compound::ForClause(clause) => {
                self.assigned(&clause.variable_name);
                for value in clause.values.iter().flatten() {
                    self.word(&value.value);
                }
                self.list(&clause.body.list);
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
                self.list(&clause.0);
                self.list(&clause.1.list);
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
        let beside = std::mem::take(&mut self.beside);
        self.compound(&function.body.0);
        self.beside = beside;
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
                    self.list(&inner.list);
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
        if redirected && matches!(called, None | Some(":" | "true")) {
            let file = self.analysis.writes.last().cloned().unwrap_or_default();
            self.destroys("empties a file", &format!("> {file}"));
        }
        if !words.is_empty() {
            Command { words, stdin }.inspect(self);
        }
    }

    fn assignment(&mut self, assignment: &ast::Assignment) {
        match &assignment.name {
            ast::AssignmentName::VariableName(name) => self.assigned(name),
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

fn push_new(list: &mut Vec<String>, item: &str) {
    if !list.iter().any(|known| known == item) {
        list.push(item.to_owned());
    }
}
