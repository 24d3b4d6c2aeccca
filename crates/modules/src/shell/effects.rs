//! What a command does to files and services, for those who know the workspace.

use super::walk::Walker;
use super::word::Word;

/// Files and services that a command touches, in more detail than [`Analysis`](super::Analysis) tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// The files that are written to, moved or deleted.
    pub(crate) writes: Vec<FileReference>,
    /// What is destroyed.
    pub(crate) losses: Vec<Loss>,
    /// The files that a shell reads its commands from.
    pub(crate) scripts: Vec<FileReference>,
    /// Programs that are downloaded if they are not installed in the project, and where they would be installed.
    pub(crate) tools: Vec<FileReference>,
}

/// A file as a command names it.
#[derive(Clone, Debug)]
pub(crate) struct FileReference {
    /// The name as it is written.
    pub(crate) written: String,
    /// All paths that it may stand for, from the workspace; `None` where the folder that it begins in is not known. A path may
    /// hold a pattern or an expansion.
    pub(crate) paths: Option<Vec<String>>,
}

/// Something that is destroyed.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// Why, such as "deletes recursively (`rm -rf build`)".
    pub(crate) why: String,
    pub(crate) exemption: Exemption,
}

/// When a loss is none.
#[derive(Clone, Debug, Default)]
pub(crate) enum Exemption {
    /// Never.
    #[default]
    Never,
    /// If all of these are temporary files or build outputs.
    Outputs(Vec<FileReference>),
    /// If all of these are in the workspace or temporary: they are single files, or what programs leave behind.
    Inside(Vec<FileReference>),
    /// If all of these are in the workspace, and not among temporary files.
    Workspace(Vec<FileReference>),
    /// If none of these is a file: then they are names of branches.
    NoFile(Vec<FileReference>),
    /// If none of these is a file yet that holds something worth keeping.
    New(Vec<FileReference>),
    /// If git keeps at most one of these files, and that one as it is.
    Deleted(Vec<FileReference>),
    /// If the target is no file that holds something worth keeping, or the source is one that git does not keep, so that it was
    /// made to take the place of the target.
    Copied { from: FileReference, to: FileReference },
}

impl Walker {
    /// The files that a word may stand for.
    pub(super) fn file_reference(&self, word: &Word) -> FileReference {
        let written = word.plain().to_owned();
        if word.literal().is_none()
            && matches!(word.raw.as_str(), "{}" | "…")
            && let Some(found) = &self.found
        {
            return FileReference { written, paths: Some(found.clone()) };
        }
        if let Some(listed) = self.listing(word) {
            return FileReference { written, paths: Some(listed.clone()) };
        }
        let text = match word.literal() {
            Some(text) => text.to_owned(),
            None => self.variables.expand(&word.raw, &self.folders).unwrap_or_else(|| word.raw.clone()),
        };
        let paths = self.folders.join(&text);
        FileReference { written, paths }
    }

    /// The files that words may stand for.
    pub(super) fn file_references<'a>(&self, words: impl IntoIterator<Item = &'a Word>) -> Vec<FileReference> {
        words.into_iter().map(|word| self.file_reference(word)).collect()
    }
}
