//! What a command does to files and services, for those who know the workspace.

use super::walk::Walker;
use super::word::Word;

/// Files and services that a command touches, in more detail than [`Analysis`](super::Analysis) tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// The files that are written to, moved or deleted.
    pub(crate) writes: Vec<Place>,
    /// What is destroyed.
    pub(crate) losses: Vec<Loss>,
    /// The files that a shell reads its commands from.
    pub(crate) scripts: Vec<Place>,
    /// Programs that are downloaded if they are not installed in the project, and where they would be installed.
    pub(crate) tools: Vec<Place>,
}

/// A file as a command names it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
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
    pub(crate) excuse: Excuse,
}

/// When a loss is none.
#[derive(Clone, Debug, Default)]
pub(crate) enum Excuse {
    /// Never.
    #[default]
    Never,
    /// If all of these are temporary files or build outputs.
    Outputs(Vec<Place>),
    /// If all of these are in the workspace or temporary: they are single files, or what programs leave behind.
    Inside(Vec<Place>),
    /// If all of these are in the workspace, and not among temporary files.
    Workspace(Vec<Place>),
    /// If none of these is a file: then they are names of branches.
    NoFile(Vec<Place>),
    /// If none of these is a file yet that holds something worth keeping.
    New(Vec<Place>),
    /// If git keeps at most one of these files, and that one as it is.
    Deleted(Vec<Place>),
    /// If the target is no file that holds something worth keeping, or the source is one that git does not keep, so that it was
    /// made to take the place of the target.
    Copied { from: Place, to: Place },
}

impl Walker {
    /// The files that a word may stand for.
    pub(super) fn place(&self, word: &Word) -> Place {
        let written = word.plain().to_owned();
        if word.literal().is_none()
            && matches!(word.raw.as_str(), "{}" | "…")
            && let Some(found) = &self.found
        {
            return Place { written, paths: Some(found.clone()) };
        }
        if let Some(listed) = self.listing(word) {
            return Place { written, paths: Some(listed.clone()) };
        }
        let text = match word.literal() {
            Some(text) => text.to_owned(),
            None => self.variables.expand(&word.raw, &self.folders).unwrap_or_else(|| word.raw.clone()),
        };
        let paths = self.folders.join(&text);
        Place { written, paths }
    }

    /// The files that words may stand for.
    pub(super) fn places<'a>(&self, words: impl IntoIterator<Item = &'a Word>) -> Vec<Place> {
        words.into_iter().map(|word| self.place(word)).collect()
    }
}
