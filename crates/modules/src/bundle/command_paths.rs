//! Paths in the command of a hook. Its program runs in the workspace; the files of the bundle that it names have absolute paths.

use std::path::{Path, PathBuf};

use super::shell_line::{self, LineWord, Place};
use super::{HookDefinition, OneOrMany};

/// Shells, whose first operand is a script and which run the text after `-c`.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];

/// Other programs whose first operand is a script.
const INTERPRETERS: [&str; 11] =
    [".", "source", "python", "pypy", "node", "nodejs", "perl", "ruby", "php", "lua", "luajit"];

const MAX_DEPTH: usize = 16;

/// Words before a program.
const BEFORE_PROGRAM: [&str; 19] = [
    "!", "{", "command", "do", "elif", "else", "env", "exec", "if", "ionice", "nice", "nohup", "setsid", "stdbuf",
    "then", "time", "timeout", "until", "while",
];

/// Builtins that run a text.
const RUN_TEXT: [&str; 2] = ["eval", "trap"];

impl HookDefinition {
    /// Returns the command with absolute paths of the bundle's files: of its program, of the script of an interpreter, and of other words that name
    /// an existing file.
    ///
    /// INVARIANT: a program or script with a relative path belongs to the bundle, even if it is missing there. Otherwise the agent could write it.
    pub(crate) fn absolute_command(&self, command: &OneOrMany) -> OneOrMany {
        let paths = BundlePaths { folder: self.folder() };
        match command {
            OneOrMany::One(line) => OneOrMany::One(paths.line(line, 0, shell_line::quoted)),
            OneOrMany::Many(words) => OneOrMany::Many(paths.words(words)),
        }
    }

    /// Returns the value of a variable, with an absolute path if it names a file of the bundle.
    pub(crate) fn absolute_value(&self, value: &str) -> String {
        BundlePaths { folder: self.folder() }.file(value).unwrap_or_else(|| value.to_owned())
    }
}

impl OneOrMany {
    /// Returns the command as a line for the shell.
    pub(crate) fn to_line(&self) -> String {
        match self {
            Self::One(line) => line.clone(),
            Self::Many(words) => words.iter().map(|word| shell_line::quoted(word)).collect::<Vec<_>>().join(" "),
        }
    }
}

/// Quotes a word for the place where it is inserted.
type Quote = fn(&str) -> String;

struct BundlePaths<'a> {
    folder: &'a Path,
}

impl BundlePaths<'_> {
    fn words(&self, words: &[String]) -> Vec<String> {
        let mut role = WordRole::Program;
        let mut absolute = Vec::new();
        for word in words {
            absolute.push(self.word(word, role, 0, str::to_owned).unwrap_or_else(|| word.clone()));
            role = role.next(word);
        }
        absolute
    }

    /// Rewrites a line, and the lines in it up to a depth that no bundle needs.
    fn line(&self, line: &str, depth: usize, quoted: Quote) -> String {
        if depth == MAX_DEPTH {
            return line.to_owned();
        }
        let mut role = WordRole::Program;
        let map = |word: LineWord<'_>| {
            match word.place {
                Place::Begin => role = WordRole::Program,
                Place::Inside => {}
                Place::Input if word.is_literal => return self.file(word.text).map(|file| quoted(&file)),
                Place::Input => return None,
            }
            let given = role;
            role = given.next(word.text);
            if word.is_literal {
                return self.word(word.text, given, depth, quoted);
            }
            // The outer shell expands the text in the quotes, and the inner one runs it.
            let text = word.text.strip_prefix('"')?.strip_suffix('"').filter(|_| given == WordRole::Line)?;
            Some(format!("\"{}\"", self.line(text, depth + 1, shell_line::quoted_within_quotes)))
        };
        shell_line::map_words(line, map, |nested| self.line(nested, depth + 1, shell_line::quoted))
    }

    /// Returns the text that takes the place of a word; `None` if the word stays.
    fn word(&self, word: &str, role: WordRole, depth: usize, quoted: Quote) -> Option<String> {
        if role == WordRole::Line {
            return Some(quoted(&self.line(word, depth + 1, shell_line::quoted)));
        }
        let is_own = match role {
            WordRole::Program => word.contains('/') && !is_assignment(word),
            WordRole::Script { .. } => !word.starts_with('-'),
            WordRole::Line | WordRole::OptionValue | WordRole::BehindShell | WordRole::Argument => false,
        };
        if is_own && Path::new(word).is_relative() && !word.is_empty() {
            return Some(quoted(&self.absolute(word)));
        }
        if let Some(file) = self.file(word) {
            return Some(quoted(&file));
        }
        let (name, value) = word.split_once('=')?;
        Some(format!("{name}={}", quoted(&self.file(value)?)))
    }

    /// Returns the absolute path of an existing file of the bundle.
    fn file(&self, name: &str) -> Option<String> {
        let is_file = Path::new(name).is_relative() && self.folder.join(name).is_file();
        is_file.then(|| self.absolute(name))
    }

    fn absolute(&self, name: &str) -> String {
        // Without the `.` of `./lint.sh`. A folder that is not UTF-8 becomes another one, in which no file is found.
        self.folder.join(name).components().collect::<PathBuf>().to_string_lossy().into_owned()
    }
}

/// The role of the next word of a simple command.
#[derive(Clone, Copy, PartialEq)]
enum WordRole {
    Program,
    /// The file that an interpreter runs, or an option before it.
    Script {
        is_shell: bool,
    },
    /// The text that a shell runs.
    Line,
    /// The value of an option of a shell.
    OptionValue,
    /// Behind a word that may be a shell which another program runs.
    BehindShell,
    Argument,
}

impl WordRole {
    /// Returns the role of the word after this one.
    fn next(self, word: &str) -> Self {
        match self {
            Self::Program if is_assignment(word) || BEFORE_PROGRAM.contains(&word) => Self::Program,
            // Options and times of a program that runs another one.
            Self::Program if word.starts_with('-') || is_time(word) => self,
            Self::Program if RUN_TEXT.contains(&word) => Self::Line,
            Self::Program if is_shell(word) => Self::Script { is_shell: true },
            Self::Program if INTERPRETERS.contains(&program_name(word)) => Self::Script { is_shell: false },
            Self::Program => Self::Argument,
            Self::Script { is_shell: true } => match word.strip_prefix(['-', '+']) {
                Some(letters) if letters.starts_with('-') => self,
                Some(letters) if letters.contains('c') => Self::Line,
                Some(letters) if letters.ends_with('o') => Self::OptionValue,
                Some(letters) if !letters.is_empty() && !letters.contains('s') => self,
                _ => Self::Argument,
            },
            // Options without a value, such as those of `python3 -u FILE`.
            Self::Script { is_shell: false } => match word.strip_prefix('-') {
                Some(letters) if !letters.is_empty() && letters.chars().all(|letter| "uBEIsSOvw".contains(letter)) => {
                    self
                }
                _ => Self::Argument,
            },
            Self::OptionValue => Self::Script { is_shell: true },
            Self::BehindShell if word.starts_with('-') => {
                if word.contains('c') {
                    Self::Line
                } else {
                    self
                }
            }
            Self::Argument if is_shell(word) => Self::BehindShell,
            Self::Line | Self::BehindShell | Self::Argument => Self::Argument,
        }
    }
}

fn is_shell(word: &str) -> bool {
    SHELLS.contains(&program_name(word))
}

/// Returns the name of a program without its folder and version.
fn program_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    if name == "." { name } else { name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') }
}

/// `true` for a time such as `5` or `0.5m`.
fn is_time(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.bytes().all(|byte| b"0123456789.smhd".contains(&byte))
}

/// `true` for `NAME=VALUE`.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
