//! The paths that a command changes, for policies about certain files.

use super::effects::{ChangeExtent, FileChange, ProgramRun};
use super::{Analysis, inspect};

/// The changes of files by a command, as far as its text shows them.
///
/// ```
/// use amplifier_modules::shell::CommandChanges;
///
/// let changes = CommandChanges::analyse("cd sub && echo a > b");
/// let paths = changes.paths[0].paths.as_ref().expect("a known folder");
/// assert!(paths.contains(&"sub/b".to_owned()));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CommandChanges {
    /// The analysis of the command.
    pub analysis: Analysis,
    /// The changed files and folders, in order.
    pub paths: Vec<ChangedPath>,
    /// Runs of programs whose changes are unknown, or that run code of files which they read.
    pub programs: Vec<UnknownProgram>,
}

/// A file or folder that a command changes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChangedPath {
    /// The path as written.
    pub written: String,
    /// All possible paths, relative to the folder in which the command starts; `None` if the working folder is unknown. A path
    /// may contain a pattern or an expansion.
    pub paths: Option<Vec<String>>,
    /// The affected files.
    pub reach: ChangeReach,
}

/// The files that a change of a path affects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeReach {
    /// The named file alone.
    File,
    /// The named file or folder, with everything in it.
    Existing,
    /// New files anywhere in the folder, too.
    Anything,
    /// The copy of another file or folder, with its possible paths; `None` if unknown.
    Copy(Option<Vec<String>>),
    /// The files in the folder that match a pattern.
    Selected(String),
    /// All files of the folder's git repository.
    Repository,
}

/// A run of a program whose changes of files are unknown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnknownProgram {
    /// The program, its arguments and its input, without quotes.
    pub texts: Vec<String>,
    /// All possible working folders; `None` if unknown.
    pub folders: Option<Vec<String>>,
}

impl CommandChanges {
    /// Analyses a command.
    #[must_use]
    pub fn analyse(command: &str) -> Self {
        let (analysis, effects) = inspect(command);
        let programs = effects.unknown_programs.into_iter().chain(effects.code_loaders);
        let programs = programs.map(|ProgramRun { texts, folders, .. }| UnknownProgram { texts, folders });
        Self {
            analysis,
            paths: effects.changes.into_iter().map(ChangedPath::from).collect(),
            programs: programs.collect(),
        }
    }
}

impl From<FileChange> for ChangedPath {
    fn from(FileChange { file, extent }: FileChange) -> Self {
        let reach = match (file.found, extent) {
            (Some(pattern), _) => ChangeReach::Selected(pattern),
            (None, ChangeExtent::File) => ChangeReach::File,
            (None, ChangeExtent::Existing) => ChangeReach::Existing,
            (None, ChangeExtent::Anything) => ChangeReach::Anything,
            (None, ChangeExtent::Copy(from)) => ChangeReach::Copy(from.paths.filter(|_| from.found.is_none())),
            (None, ChangeExtent::Repository) => ChangeReach::Repository,
        };
        Self { written: file.written, paths: file.paths, reach }
    }
}
