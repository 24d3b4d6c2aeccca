//! Files that a command writes and then runs, and downloads that it runs.

use super::command::{Command, Stdin};
use super::dialect::Dialect;
use super::emptying::OutputContent;
use super::grammar::{self, Argument, CommandPart, Descriptor, Redirection, RedirectionKind, RedirectionTarget};
use super::walk::Walker;
use super::word::Word;
use super::{emptying, exemption, program_text, scan, shells};

/// Maximum number of remembered files.
const FILES: usize = 64;

/// The user's start-up files, which shells run anyway.
const OWN: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".nvm/nvm.sh",
    ".cargo/env",
    ".sdkman/bin/sdkman-init.sh",
    ".asdf/asdf.sh",
    ".ghcup/env",
    ".local/bin/env",
];

#[derive(Clone, Debug)]
pub(super) struct WrittenFile {
    pub(super) path: String,
    text: Option<String>,
    pub(super) is_download: bool,
}

impl Walker {
    /// Records the output that a command writes to a file.
    pub(super) fn record_write(&mut self, file: &Word, text: Option<String>, is_download: bool) {
        if let Some(path) = file.literal() {
            let path = normalize(path);
            let before = self.written.iter().position(|written| written.path == path);
            // After a second write, the content is unknown.
            let text = text.filter(|_| before.is_none());
            if self.written.len() < FILES {
                self.written.push(WrittenFile { path, text, is_download });
            }
        }
    }

    /// Records a new name for a file written by the command.
    pub(super) fn record_rename(&mut self, from: &Word, to: &str) {
        let Some(from) = self.expand_known(from).map(|path| normalize(&path)) else { return };
        let mut written = self.written.iter().filter(|written| written.path == from);
        if let (Some(WrittenFile { text, is_download, .. }), None) = (written.next().cloned(), written.next()) {
            self.record_write(&Word::known(to), text, is_download);
        }
    }

    /// Records that a file is run, with an interpreter if named. A file written by the same command is analysed.
    pub(super) fn runs_file(&mut self, file: &Word, interpreter: Option<&str>) {
        let Some(path) = file.literal() else { return };
        let path = normalize(path);
        let written: Vec<WrittenFile> = self.written.iter().filter(|written| written.path == path).cloned().collect();
        if self.is_download(file) {
            return self.runs_download();
        }
        let [written] = written.as_slice() else {
            if !written.is_empty() {
                self.refuse(format!("`{path}` is written and run; review the content in between"));
            }
            return;
        };
        match (&written.text, interpreter) {
            (Some(text), Some(name)) if !shells::is_shell(name) => {
                let command = Command { words: vec![Word::known(name)], stdin: Stdin::Text(text.clone()) };
                program_text::inspect(name, &command, self);
            }
            (Some(text), None) if is_foreign(text) => {
                let name =
                    text.lines().next().and_then(|line| line.rsplit(['/', ' ']).next()).unwrap_or_default().to_owned();
                let command = Command { words: vec![Word::known(&name)], stdin: Stdin::Text(text.clone()) };
                if !program_text::inspect(&name, &command, self) {
                    self.refuse(format!("`{path}` is written and run; review the content in between"));
                }
            }
            (Some(text), _) => self.script(text, Dialect::Sh),
            (None, _) => self.refuse(format!("`{path}` is written and run; review the content in between")),
        }
    }

    /// Records that rules in a file with one of these names are run. Only rules written by the same command matter.
    pub(super) fn runs_rules(&mut self, names: &[&str]) {
        let is_rule = |written: &&WrittenFile| names.contains(&written.path.rsplit('/').next().unwrap_or_default());
        if self.written.iter().filter(is_rule).any(|rules| rules.is_download) {
            self.runs_download();
        }
        let rules = self.written.iter().find(|written| is_rule(written));
        if let Some(path) =
            rules.filter(|rules| rules.text.as_deref().is_some_and(scan::deletes)).map(|rules| rules.path.clone())
        {
            self.destroys("runs rules that delete", &path);
        }
        if self.hides_rules {
            self.refuse("the rules that are run are written by the same command, and hidden; review them in between");
        }
    }

    /// Remembers scripts set by `npm pkg set`, and analyses them when a later command may run them.
    pub(super) fn runs_project_scripts(&mut self, command: &Command) {
        if !command.texts().take(2).eq(["pkg", "set"]) {
            for script in std::mem::take(&mut self.scripts_set) {
                match script {
                    Some(text) => self.script(&text, Dialect::Sh),
                    None => self.refuse("a script is set and run; review the content in between"),
                }
            }
            return;
        }
        for word in command.arguments().iter().filter(|word| word.lead().starts_with("scripts.")).take(FILES) {
            let text = word.literal().and_then(|text| text.split_once('=')).map(|(_, text)| text.to_owned());
            self.scripts_set.push(text);
        }
    }

    /// Records that a shell reads commands from a file.
    pub(super) fn runs_script(&mut self, shell: &str, file: &Word) {
        self.taint();
        let text = file.lead();
        let home = ["~/", "$HOME/", "\"$HOME/", "${HOME}/", "\"$HOME\"/", "\"${HOME}/"];
        let own = home.iter().find_map(|home| file.raw.strip_prefix(home)).map(|path| path.trim_end_matches('"'));
        if own.is_some_and(|path| OWN.contains(&path)) || text.ends_with("/bin/activate") && file.literal().is_some() {
            return;
        }
        if file.literal().is_none()
            || matches!(text, "-" | "/dev/stdin")
            || text.starts_with("/dev/fd")
            || text.starts_with("/proc")
        {
            if self.fetched_in_words {
                self.runs_download();
            }
            return self.refuse(format!("`{shell}` runs a file that is unknown until run time"));
        }
        let reference = self.file_reference(file);
        self.effects.scripts.push(reference);
        self.runs_file(file, Some("sh"));
        let path = normalize(text);
        if self.written.iter().all(|written| written.path != path) {
            self.advise(format!("runs the commands in `{text}`, which are not analysed"));
        }
    }

    /// Returns `true` if the command reads the output of another one.
    pub(super) fn is_fed(&self) -> bool {
        self.fed
    }

    /// Records that an interpreter runs its input.
    pub(super) fn runs_input(&mut self, name: &str) {
        if self.fed_by_download {
            self.runs_download();
        }
        self.refuse(format!("`{name}` runs its input; write the program out"));
    }

    pub(super) fn runs_download(&mut self) {
        self.taint();
        self.analysis.runs_download = true;
        // Takes the place of a weaker reason, so that a rule about downloads can show it.
        if !self.analysis.force_push {
            self.analysis.caution = None;
        }
        self.advise("runs a download; review it in between");
    }
}

/// Returns `true` if the output of a command may differ from its words, or may be unreadable.
pub(super) fn hides_text(words: &[Word]) -> bool {
    const HIDES: [&str; 9] = ["echo", "printf", "base64", "base32", "xxd", "rev", "openssl", "gunzip", "uudecode"];
    words.first().and_then(Word::literal).is_some_and(|name| HIDES.contains(&name))
}

/// Returns `true` if a file contains rules for programs such as `make`.
pub(super) fn is_rules(file: &str) -> bool {
    const RULES: [&str; 7] =
        ["Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Rakefile", "package.json"];
    RULES.contains(&file.rsplit('/').next().unwrap_or(file))
}

/// Returns `true` if a script names an interpreter other than a shell.
fn is_foreign(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.starts_with("#!") && !line.trim_end().ends_with("sh"))
}

pub(super) fn normalize(path: &str) -> String {
    path.trim_start_matches("./").replace("/./", "/")
}

pub(super) fn printed(words: &[Word], stdin: &Stdin) -> Option<String> {
    let (name, arguments) = words.split_first()?;
    match (name.literal()?, stdin) {
        ("cat", Stdin::Text(text)) if arguments.is_empty() => Some(text.clone()),
        ("echo" | "printf", _) => {
            let texts: Vec<&str> = arguments.iter().map(Word::literal).collect::<Option<_>>()?;
            // Escapes stand for other characters.
            let text = texts.join(" ").replace("\\n", "\n").replace("\\t", "\t");
            (!text.contains('\\')).then_some(text)
        }
        _ => None,
    }
}

/// Returns the paths of the files that a pipeline lists so far; `None` if unknown.
pub(super) fn listed(commands: &[grammar::Command<'_>], walker: &mut Walker) -> Option<Vec<String>> {
    let (first, filters) = commands.split_first()?;
    let filter = |command: &grammar::Command<'_>| {
        let words = words(command);
        let name = words.first().and_then(Word::literal);
        // Only the end of a line may be another one.
        let keeps_names =
            || words.iter().skip(1).all(|word| matches!(word.raw.as_str(), "'\\n'" | "'\\0'" | "\"\\n\"" | "\"\\0\""));
        matches!(name, Some("grep" | "egrep" | "head" | "tail" | "sort" | "uniq"))
            || name == Some("tr") && keeps_names()
    };
    if !filters.iter().all(filter) {
        return None;
    }
    let command = Command { words: words(first), stdin: Stdin::default() };
    let operands = || command.arguments().iter().filter(|word| !word.lead().starts_with('-')).cloned();
    let starts: Vec<Word> = match command.words.first()?.literal()? {
        "find" => {
            walker.finds_litter = exemption::is_litter(&command);
            walker.found_name = exemption::found_name(&command);
            exemption::find_starts(&command)
        }
        "grep" | "egrep" | "rg" => operands().skip(1).collect(),
        "fd" => Vec::new(),
        "ls" => operands().collect(),
        "git" if matches!(operands().next()?.literal()?, "ls-files" | "diff" | "grep") => Vec::new(),
        _ => return None,
    };
    let starts = if starts.is_empty() { vec![Word::known(".")] } else { starts };
    let paths: Option<Vec<Vec<String>>> =
        starts.iter().map(|start| start.literal().and_then(|_| walker.file_reference(start).paths)).collect();
    Some(paths?.concat())
}

/// Returns the variable that the condition of a loop reads lines into, if the condition does nothing else.
pub(super) fn read_variable(condition: &grammar::List<'_>) -> Option<String> {
    let [and_or] = condition.as_slice() else { return None };
    let [pipeline] = and_or.pipelines.as_slice() else { return None };
    let [command] = pipeline.commands.as_slice() else { return None };
    let words = words(command);
    let texts: Vec<&str> = words.iter().map(Word::literal).collect::<Option<_>>()?;
    match texts.as_slice() {
        ["read", name] | ["read", "-r", name] | ["read", "-r", "-d", "", name] => Some((*name).to_owned()),
        _ => None,
    }
}

/// Returns the commands whose output is the input of a group, as in `done < <(git ls-files)`.
pub(super) fn substituted_input<'a, 'b>(redirections: &'b [Redirection<'a>]) -> Option<&'b grammar::List<'a>> {
    match redirections {
        [
            Redirection {
                descriptor: Descriptor::Implied | Descriptor::Number(0),
                kind: RedirectionKind::Read,
                target: RedirectionTarget::File(Argument::ProcessSubstitution(list)),
            },
        ] => Some(list),
        _ => None,
    }
}

/// Returns the words of a command that may be input files.
pub(super) fn read_by(command: &grammar::Command<'_>) -> Vec<String> {
    emptying::read_by(&words(command))
}

/// Returns the kind of output of a command; `fed` is the kind of its input.
pub(super) fn printed_content(command: &grammar::Command<'_>, fed: OutputContent) -> OutputContent {
    let grammar::Command::Simple(simple) = command else { return OutputContent::Anything };
    let is_word =
        |part: &CommandPart<'_>| matches!(part, CommandPart::Argument(Argument::Word(_)) | CommandPart::Assignment(_));
    let words = words(command);
    if words.is_empty() || !simple.parts.iter().all(is_word) {
        return OutputContent::Anything;
    }
    OutputContent::printed_by(&words, &Stdin::Inherited, fed)
}

fn words(command: &grammar::Command<'_>) -> Vec<Word> {
    let grammar::Command::Simple(simple) = command else { return Vec::new() };
    let arguments = simple.parts.iter().filter_map(|part| match part {
        CommandPart::Argument(Argument::Word(word)) => Some(*word),
        _ => None,
    });
    simple.name.into_iter().chain(arguments).map(Word::new).collect()
}
