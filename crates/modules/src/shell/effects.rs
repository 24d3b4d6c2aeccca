//! Effects of a command on files and services, to be judged with knowledge of the workspace.

use super::walk::Walker;
use super::word::Word;

/// Effects on files and services, in more detail than in [`Analysis`](super::Analysis).
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub(crate) writes: Vec<FileReference>,
    pub(crate) losses: Vec<Loss>,
    /// The files that a shell reads commands from.
    pub(crate) scripts: Vec<FileReference>,
    /// Programs that are downloaded unless installed in the project, with their expected paths.
    pub(crate) tools: Vec<FileReference>,
    /// The changes of files, in more detail than `writes`.
    pub(crate) changes: Vec<FileChange>,
    /// Programs whose changes of files are unknown.
    pub(crate) unknown_programs: Vec<ProgramRun>,
    /// Programs that change no files themselves, but run code of files that they read.
    pub(crate) code_loaders: Vec<ProgramRun>,
}

/// A change of files.
#[derive(Clone, Debug)]
pub(crate) struct FileChange {
    pub(crate) file: FileReference,
    pub(crate) extent: ChangeExtent,
}

/// The files that a change affects.
#[derive(Clone, Debug)]
pub(crate) enum ChangeExtent {
    /// The named file alone.
    File,
    /// The named file or folder, with everything in it.
    Existing,
    /// New files anywhere in the folder, too.
    Anything,
    /// The copy of another file or folder.
    Copy(FileReference),
    /// All files of the folder's git repository.
    Repository,
}

/// A run of a program, with everything that it is given.
#[derive(Clone, Debug)]
pub(crate) struct ProgramRun {
    /// The program, its arguments and its input, without quotes.
    pub(crate) texts: Vec<String>,
    /// The same, as files.
    pub(crate) files: Vec<FileReference>,
    /// All possible working folders; `None` if unknown.
    pub(crate) folders: Option<Vec<String>>,
}

/// A file named by a command.
#[derive(Clone, Debug)]
pub(crate) struct FileReference {
    pub(crate) written: String,
    /// All possible paths, relative to the workspace; `None` if the working folder is unknown. A path may contain a pattern or
    /// an expansion.
    pub(crate) paths: Option<Vec<String>>,
    /// A pattern, if the paths are folders and another command has found the files in them.
    pub(crate) found: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// The reason, such as "deletes recursively (`rm -rf build`)".
    pub(crate) why: String,
    pub(crate) exemption: Exemption,
}

/// Condition under which a destructive effect is harmless.
#[derive(Clone, Debug, Default)]
pub(crate) enum Exemption {
    #[default]
    Never,
    /// All files are temporary files or build outputs.
    Outputs(Vec<FileReference>),
    /// All files are in the workspace or temporary, and are single files or leftovers of programs.
    Inside(Vec<FileReference>),
    /// All files are in the workspace and not temporary.
    Workspace(Vec<FileReference>),
    /// None of the names is a file: then they are names of branches.
    NoFile(Vec<FileReference>),
    /// None of the files holds work yet.
    New(Vec<FileReference>),
    /// Git tracks at most one of these files, without uncommitted changes.
    Deleted(Vec<FileReference>),
    /// The target holds no work, or git does not track the source, which was then created to replace the target.
    Copied { from: FileReference, to: FileReference },
}

impl Walker {
    pub(super) fn file_reference(&self, word: &Word) -> FileReference {
        let written = word.plain().to_owned();
        if word.literal().is_none()
            && matches!(word.raw.as_str(), "{}" | "…")
            && let Some(found) = &self.found
        {
            let pattern = self.found_name.clone().unwrap_or_else(|| "*".to_owned());
            return FileReference { written, paths: Some(found.clone()), found: Some(format!("**/{pattern}")) };
        }
        if let Some(listed) = self.listing(word) {
            return FileReference { written, paths: Some(listed.clone()), found: Some("**".to_owned()) };
        }
        let text = match word.literal() {
            Some(text) => text.to_owned(),
            None => self.variables.expand(&word.raw, &self.folders).unwrap_or_else(|| word.raw.clone()),
        };
        let paths = self.folders.join(&text);
        FileReference { written, paths, found: None }
    }

    pub(super) fn file_references<'a>(&self, words: impl IntoIterator<Item = &'a Word>) -> Vec<FileReference> {
        words.into_iter().map(|word| self.file_reference(word)).collect()
    }
}
