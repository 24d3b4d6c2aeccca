//! The walk over all simple commands of a text.

mod assignment;
mod compound;
mod notes;
mod redirect;
mod simple;

use std::collections::{HashMap, HashSet};

use super::calls::ProgramCall;
use super::copies::CopiedProgram;
use super::dialect::Dialect;
use super::effects::Effects;
use super::emptying::OutputContent;
use super::folders::Folders;
use super::grammar::List;
use super::variables::Variables;
use super::word::Word;
use super::written_files::{self, WrittenFile};
use super::{Analysis, limits, parse};

#[derive(Clone, Debug)]
pub(super) struct WalkResult {
    pub(super) analysis: Analysis,
    pub(super) commands: Vec<CommandText>,
    pub(super) effects: Effects,
    pub(super) calls: Vec<ProgramCall>,
    /// The files that redirections read; `None` for an unknown one.
    pub(super) inputs: Vec<Option<String>>,
    /// `true` if the command defines functions, or a loop sets a variable that programs may read.
    pub(super) defines: bool,
}

/// A simple command, or an assignment that may change what commands do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandText {
    /// The command with the program's name only.
    pub(crate) plain: String,
    /// The command with the program's path, if the folder is not trusted.
    pub(crate) with_path: Option<String>,
}

/// A list in the analysis without duplicates.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum AnalysisList {
    Hosts,
    Programs,
    Writes,
    Deletes,
}

/// The state of a walk, with its results so far.
#[derive(Default)]
pub(super) struct Walker {
    pub(super) analysis: Analysis,
    pub(super) effects: Effects,
    /// The programs that run, in the order of writing.
    pub(super) calls: Vec<ProgramCall>,
    inputs: Vec<Option<String>>,
    pub(super) folders: Folders,
    pub(super) variables: Variables,
    /// The paths of the files that another command passes to the next one.
    pub(super) found: Option<Vec<String>>,
    /// The pattern for the names of these files, if they have only one.
    pub(super) found_name: Option<String>,
    /// `true` if these files are only leftovers of programs.
    pub(super) finds_litter: bool,
    pub(super) written: Vec<WrittenFile>,
    /// Folders that hold downloads, and `true` if others may.
    pub(super) downloaded_folders: Vec<String>,
    pub(super) downloads_anywhere: bool,
    /// Copies of programs under other names.
    pub(super) copies: Vec<CopiedProgram>,
    /// Words that stand for listed files, with the paths of those files.
    pub(super) listings: HashMap<String, Vec<String>>,
    /// The paths of the files that the last walked text lists.
    listed: Option<Vec<String>>,
    /// Files that the command has filled with worthless content: noise, nothing, ciphertext.
    pub(super) worthless: Vec<String>,
    /// `true` if the command has written rules, such as a makefile, without revealing their content.
    pub(super) hides_rules: bool,
    /// The values of variables that are set for the current command only.
    pub(super) settings: Vec<String>,
    /// Names that the command gives to `git push`.
    pub(super) push_aliases: Vec<String>,
    /// Project scripts set by the command; `None` for an unknown text.
    pub(super) scripts_set: Vec<Option<String>>,
    /// `true` if the current command reads the output of another one, and if that one downloads.
    pub(super) fed: bool,
    pub(super) fed_by_download: bool,
    /// The content that the pipeline passes to the current command.
    pub(super) fed_content: OutputContent,
    /// The words of earlier commands in the pipeline, including the files that they read.
    pub(super) fed_words: Vec<String>,
    /// Number of downloads, and `true` if a word of the current command contains one.
    downloads: usize,
    pub(super) fetched_in_words: bool,
    pub(super) elevated: bool,
    /// `true` if a git remote is named, and if something is pushed.
    pub(super) sets_remote: bool,
    pub(super) pushes: bool,
    /// `true` if the text changes the folder anywhere.
    pub(super) moves_later: bool,
    /// `true` if the current shell has changed its folder.
    has_moved: bool,
    /// The defined functions, and `true` if one of them changes the folder.
    defined: HashSet<String>,
    /// `true` if a loop sets a variable that programs may read.
    pub(super) sets_variable: bool,
    functions_move: bool,
    /// `true` if values of variables contain parts of a subscript, and parts of a command.
    bracketed: bool,
    dollars: bool,
    plain: Vec<CommandText>,
    /// Names of the simple commands of the current text as written, to compare the two grammars.
    names: Vec<String>,
    dialect: Dialect,
    budget: parse::ParseBudget,
    words: usize,
    /// The items of the lists, for fast lookup.
    noted: HashSet<(AnalysisList, String)>,
    commands: usize,
    sources: usize,
    depth: usize,
    functions: Vec<String>,
    /// `true` if a text has a subscript with a command, and if such texts are evaluated.
    hides: bool,
    evaluates: bool,
    /// `true` if the current commands run concurrently.
    is_concurrent: bool,
}

impl Walker {
    pub(super) fn walk(command: &str) -> WalkResult {
        let analysis = Analysis { analysable: true, readonly: true, ..Analysis::default() };
        let mut walker = Self { analysis, ..Self::default() };
        walker.moves_later =
            command.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| matches!(word, "cd" | "pushd" | "popd"));
        walker.source(command);
        // Another folder may contain a repository from elsewhere, and its configuration names programs.
        if walker.analysis.moves && walker.analysis.programs.iter().any(|name| name == "git") {
            walker.taint();
        }
        if (walker.hides || walker.bracketed && walker.dollars) && walker.evaluates {
            walker.refuse("a subscript holds a command that arithmetic may run; write the command itself");
        }
        if walker.sets_remote && walker.pushes {
            walker.sends("pushes to a remote that it has named itself", "git push");
        }
        WalkResult {
            analysis: walker.analysis,
            commands: walker.plain,
            effects: walker.effects,
            calls: walker.calls,
            inputs: walker.inputs,
            defines: !walker.defined.is_empty() || walker.sets_variable,
        }
    }

    pub(super) fn is_elevated(&self) -> bool {
        self.elevated
    }

    /// Returns the text of a word if all its variables are known.
    pub(super) fn expand_known(&self, word: &Word) -> Option<String> {
        self.variables.expand(&word.raw, &self.folders)
    }

    /// Returns the address of a word if all its variables are known, or if the address is on this machine, with any port.
    pub(super) fn expand_address(&self, word: &Word) -> Option<String> {
        let raw = self.variables.with_port(&word.raw);
        self.variables.expand(raw.as_deref().unwrap_or(&word.raw), &self.folders)
    }

    pub(super) fn enters(&mut self, folder: Option<&Word>) {
        let text = folder.and_then(|word| word.literal().map(str::to_owned).or_else(|| self.expand_known(word)));
        self.folders = text.map_or_else(Folders::unknown, |text| self.folders.enter(&text));
    }

    /// Walks a substitution: the grammars already saw its commands in the outer text.
    fn substitution(&mut self, text: &str) {
        let outer = std::mem::take(&mut self.names);
        self.listed = None;
        self.in_subshell(|walker| walker.source(text));
        let listed = self.listed.take();
        self.lists(text, listed);
        self.names.extend(outer);
    }

    pub(super) fn script(&mut self, text: &str, dialect: Dialect) {
        let outer = (std::mem::take(&mut self.names), std::mem::replace(&mut self.dialect, dialect));
        match limits::admit(text).and_then(|()| dialect.admit(text)) {
            Ok(()) => self.source(text),
            Err(why) => self.refuse(why),
        }
        (self.names, self.dialect) = outer;
    }

    /// Walks a script for the current shell, as `eval` does.
    pub(super) fn same_shell(&mut self, text: &str) {
        self.script(text, self.dialect);
    }

    /// Counts words; returns `false` if there are too many.
    pub(super) fn spend(&mut self, words: usize) -> bool {
        self.words += words;
        let allowed = self.words <= limits::WORDS;
        if !allowed {
            self.refuse(limits::too_many_words());
        }
        allowed
    }

    /// Enters a nesting level; returns `false` if the nesting is too deep.
    pub(super) fn enter(&mut self) -> bool {
        self.depth += 1;
        let allowed = self.depth <= limits::NESTING;
        if !allowed {
            self.refuse(limits::too_deep());
        }
        allowed
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Parses and walks a text, and stores the names of its commands in `names`.
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

    fn parsed(&mut self, parsed: &parse::ParsedText<'_>) {
        let listed = self.listed_by(&parsed.list);
        self.list(&parsed.list);
        self.listed = listed;
        self.names.sort_unstable();
        if self.names != parsed.names {
            self.refuse("two readings of the command differ in what it runs; simplify the command");
        }
    }

    /// Returns the paths of the files that a text lists, if the text is one short pipeline.
    fn listed_by(&mut self, list: &List<'_>) -> Option<Vec<String>> {
        let [and_or] = list.as_slice() else { return None };
        let [pipeline] = and_or.pipelines.as_slice() else { return None };
        if pipeline.commands.len() > 8 {
            return None;
        }
        let (litter, name) = (self.finds_litter, self.found_name.take());
        let listed = written_files::listed(&pipeline.commands, self);
        (self.finds_litter, self.found_name) = (litter, name);
        listed
    }

    /// Parses a word and walks the commands in it.
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
