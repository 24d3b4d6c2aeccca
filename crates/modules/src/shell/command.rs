//! A simple command: a program with its arguments.

use super::calls::CallRecorder;
use super::options::Arguments;
use super::walk::{CommandText, Walker};
use super::word::Word;
use super::{
    ShellCommand, changes, copies, declarations, destructive, downloads, dry_run, embedded, emptying, exemption,
    force_push, git, git_changes, network, program_text, readonly, shells, syntax, wrappers, writes,
};

/// Folders with trusted programs: a program there is the one that its name suggests.
const SYSTEM: [&str; 7] =
    ["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];

/// Returns `true` for a folder with trusted programs.
pub(super) fn is_system(folder: &str) -> bool {
    SYSTEM.contains(&folder)
}

/// Standard input of a command.
#[derive(Clone, Debug, Default)]
pub(super) enum Stdin {
    #[default]
    Inherited,
    Text(String),
    Unknown,
}

impl Stdin {
    /// Adds a here-document; a second one makes the input unknown.
    pub(super) fn then(&self, text: &Word, strips_tabs: bool) -> Self {
        match (self, text.literal()) {
            (Self::Inherited, Some(text)) if strips_tabs => {
                Self::Text(text.lines().map(|line| line.trim_start_matches('\t')).collect::<Vec<_>>().join("\n"))
            }
            (Self::Inherited, Some(text)) => Self::Text(text.to_owned()),
            _ => Self::Unknown,
        }
    }
}

/// A simple command without its redirections and assignments.
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    pub(super) stdin: Stdin,
}

impl Command {
    pub(super) fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.arguments().iter().filter_map(Word::literal)
    }

    /// Returns `true` if every argument is known, or certainly not an option.
    pub(super) fn is_certain(&self) -> bool {
        self.arguments().iter().all(Word::is_certain)
    }

    /// Returns `true` if the program only prints its version or help.
    pub(super) fn asks_for_help(&self) -> bool {
        matches!(self.arguments(), [word] if matches!(word.literal(), Some("--version" | "--help")))
    }

    pub(super) fn source_text(&self) -> String {
        self.words.iter().map(|word| word.raw.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the command without quotes and folders, with `…` for unknown text.
    fn plain(&self, program: &str) -> String {
        let mut plain = program.to_owned();
        for word in self.arguments() {
            plain.push(' ');
            match word.literal() {
                Some(text) => plain.push_str(text),
                None => {
                    plain.push_str(word.lead());
                    plain.push('…');
                }
            }
        }
        plain
    }

    /// Returns the command in the form that rules receive.
    fn to_shell_command(&self, program: &str) -> ShellCommand {
        let text = |word: &Word| word.literal().map_or_else(|| format!("{}…", word.lead()), str::to_owned);
        ShellCommand {
            program: program.to_owned(),
            arguments: self.arguments().iter().map(text).collect(),
            resolved: self.arguments().iter().all(|word| word.literal().is_some()),
        }
    }

    /// Reports the effects of the command to the walker.
    pub(super) fn inspect(&self, walker: &mut Walker) {
        let call = CallRecorder::begin(self, walker);
        // Nested programs count towards the depth, too. The arguments of `git` are read from several starting points.
        let is_git = self.words.first().is_some_and(|word| base_name(word.lead()) == "git");
        let readings = if is_git { git::STARTS } else { 1 };
        if walker.enter() && walker.spend(self.words.len() * readings) {
            self.inspect_program(walker);
        }
        walker.leave();
        call.end(walker);
    }

    fn inspect_program(&self, walker: &mut Walker) {
        let Some(path) = self.words.first().and_then(Word::literal).filter(|path| !path.is_empty()) else {
            return walker.refuse("the program is the result of an expansion; write its name");
        };
        let name = base_name(path);
        walker.program(name);
        if path.starts_with("/proc/") {
            walker.refuse(format!("`{path}` is the running program itself; write the name of the program"));
        }
        walker.record_command(self.to_shell_command(name));
        let folder = path.rsplit_once('/').map(|(folder, _)| folder);
        let is_elsewhere = folder.is_some_and(|folder| !SYSTEM.contains(&folder));
        walker.record_command_text(CommandText {
            plain: self.plain(name),
            with_path: is_elsewhere.then(|| self.plain(path)),
        });
        if is_elsewhere {
            walker.taint();
        }
        if matches!(name, "cd" | "pushd" | "popd" | "chroot") {
            let before = walker.folders.clone();
            walker.moves();
            walker.folders = before;
            let folder =
                self.arguments().iter().find(|word| !matches!(word.literal(), Some("--" | "-P" | "-L" | "-n")));
            walker.enters(folder.filter(|_| matches!(name, "cd" | "pushd")));
        }
        if folder.is_none() && walker.installs_program(path) {
            walker.runs_download();
        }
        if is_elsewhere && let Some(file) = self.words.first() {
            walker.runs_file(file, None);
        }
        if let Some(program) = walker.copied(path).filter(|program| program != name) {
            walker.taint();
            let words = std::iter::once(Word::known(&program)).chain(self.arguments().iter().cloned()).collect();
            return Command { words, stdin: self.stdin.clone() }.inspect(walker);
        }
        // `git-push` is `git push`.
        if let Some(subcommand) = name.strip_prefix("git-").filter(|subcommand| !subcommand.is_empty()) {
            let words = ["git", subcommand].into_iter().map(Word::known).chain(self.arguments().iter().cloned());
            Command { words: words.collect(), stdin: self.stdin.clone() }.inspect(walker);
        }
        // File systems may ignore case.
        let lower = name.to_ascii_lowercase();
        let name = if readonly::is_known(&lower) { lower.as_str() } else { name };
        let name = name.strip_suffix(".exe").unwrap_or(name);
        let arguments = &Arguments::read(syntax::for_program(name), self.arguments());
        if readonly::evaluates(name, self, arguments) {
            walker.evaluates();
        }
        if name == "read" {
            arguments.operands().for_each(|word| walker.forget_listing(word.lead()));
        }
        declarations::note(name, self, arguments, walker);
        copies::note(name, self, arguments, walker);
        let is_dry_run = dry_run::is_dry_run(name, self, arguments);
        network::note(name, self, arguments, is_dry_run, walker);
        downloads::note(name, self, arguments, walker);
        if !is_dry_run {
            writes::note(name, self, arguments, walker);
            changes::note(name, self, arguments, walker);
            changes::note_folder(name, self, walker);
            emptying::note(name, self, arguments, walker);
            if let Some(why) = destructive::find_reason(name, self, arguments) {
                let exemption = exemption::for_command(name, self, arguments, walker);
                walker.loses(why, &self.source_text(), exemption);
            }
        }
        if name == "git" {
            git::note(self, walker);
            git_changes::note(self, walker);
        }
        force_push::note(name, self, arguments, walker);
        if shells::run(name, self, walker) {
            return changes::note_script(name, self, walker);
        }
        if wrappers::run(name, self, walker) {
            return;
        }
        if !program_text::inspect(name, self, walker) {
            embedded::inspect(name, self, walker);
        }
        match name {
            "git" => git::inspect(self, walker),
            _ if readonly::only_reads(name, self, arguments, walker) => {}
            _ => {
                walker.taint();
                downloads::note_project(name, self, walker);
                if !is_dry_run {
                    changes::note_unknown(name, self, walker);
                }
            }
        }
    }
}

pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
