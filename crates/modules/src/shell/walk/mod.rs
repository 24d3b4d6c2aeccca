//! The walk over every simple command of a text.

mod assignment;
mod compound;
mod notes;
mod redirect;
mod simple;

use std::collections::{HashMap, HashSet};

use super::copies::CopiedProgram;
use super::dialect::Dialect;
use super::effects::Effects;
use super::emptying::OutputContent;
use super::folders::Folders;
use super::variables::Variables;
use super::word::Word;
use super::written_files::{self, WrittenFile};
use super::{Analysis, limits, parse};

/// What was found.
pub(super) struct WalkResult {
    pub(super) analysis: Analysis,
    /// The simple commands and assignments, in order.
    pub(super) commands: Vec<CommandText>,
    /// What happens to files and services.
    pub(super) effects: Effects,
}

/// A simple command, or an assignment that may change what commands do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandText {
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
    pub(super) written: Vec<WrittenFile>,
    /// The programs that the command has put under other names.
    pub(super) copies: Vec<CopiedProgram>,
    /// The words that stand for listed files, as they are written, and where those files are.
    pub(super) listings: HashMap<String, Vec<String>>,
    /// Where the files are that the text walked last lists.
    listed: Option<Vec<String>>,
    /// Files that the command has filled with what replaces no work: noise, nothing, ciphertext.
    pub(super) worthless: Vec<String>,
    /// Whether the command has written rules, as those of `make`, in a way that hides what they are.
    pub(super) hides_rules: bool,
    /// Scripts of a project that the command has set; `None` where a text is not known.
    pub(super) scripts_set: Vec<Option<String>>,
    /// Whether the command at hand reads what another one writes, and whether that one downloads.
    pub(super) fed: bool,
    pub(super) fed_by_download: bool,
    /// What a pipeline gives the command at hand to read.
    pub(super) fed_content: OutputContent,
    /// The words of the commands before the one at hand in its pipeline, among them the files that they read.
    pub(super) fed_words: Vec<String>,
    /// How many commands download, and whether one of them stands in the words of the command at hand.
    downloads: usize,
    pub(super) fetched_in_words: bool,
    /// Whether the command at hand runs with the rights of another account.
    pub(super) elevated: bool,
    /// Whether a remote of git is named, and whether anything is pushed.
    pub(super) sets_remote: bool,
    pub(super) pushes: bool,
    /// Whether the text as a whole changes folders anywhere.
    pub(super) moves_later: bool,
    /// Whether the shell at hand has changed its folder.
    has_moved: bool,
    /// The functions that are defined, and whether one of them changes the folder of its caller.
    defined: HashSet<String>,
    functions_move: bool,
    /// Whether values of variables hold parts of a subscript, and parts of a command.
    bracketed: bool,
    dollars: bool,
    plain: Vec<CommandText>,
    /// Names of simple commands of the text at hand as they are written, to compare the two grammars by.
    names: Vec<String>,
    /// The shell that runs the text at hand.
    dialect: Dialect,
    budget: parse::ParseBudget,
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
    pub(super) fn walk(command: &str) -> WalkResult {
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
        WalkResult { analysis: walker.analysis, commands: walker.plain, effects: walker.effects }
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

    /// Walks a text that runs as part of the one at hand: the grammars saw its commands there, too.
    fn substitution(&mut self, text: &str) {
        let outer = std::mem::take(&mut self.names);
        self.listed = None;
        self.apart(|walker| walker.source(text));
        let listed = self.listed.take();
        self.lists(text, listed);
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

    fn parsed(&mut self, parsed: &parse::ParsedText) {
        let listed = match parsed.program.complete_commands.as_slice() {
            [list] => self.listed_by(list),
            _ => None,
        };
        for list in &parsed.program.complete_commands {
            self.list(list);
        }
        self.listed = listed;
        self.names.sort_unstable();
        if self.names != parsed.names {
            self.refuse("two readings of the command differ in what it runs; write it more simply");
        }
    }

    /// Where the files are that a text lists, if it is one short pipeline.
    fn listed_by(&mut self, list: &brush_parser::ast::CompoundList) -> Option<Vec<String>> {
        let [brush_parser::ast::CompoundListItem(and_or, _)] = list.0.as_slice() else { return None };
        if !and_or.additional.is_empty() || and_or.first.seq.len() > 8 {
            return None;
        }
        let litter = self.finds_litter;
        let listed = written_files::listed(&and_or.first.seq, self);
        self.finds_litter = litter;
        listed
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
