//! A sandbox as those see it who start programs.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use super::PinnedFile;
use super::policy::END;

/// The sandbox that programs are started in, or none.
#[derive(Clone, Default)]
pub struct Sandbox {
    /// The launcher: the words to put before a command.
    words: Arc<[OsString]>,
}

impl Sandbox {
    /// A launcher of the caller's own: the words to put before a command. It has to start a session (`setsid`) and then to run the command or to become it. No words mean
    /// no sandbox.
    pub fn through(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect() }
    }

    /// The words to put before a command.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// `true` if programs are started without a sandbox.
    pub fn is_none(&self) -> bool {
        self.words.is_empty()
    }

    /// The same sandbox with more pinned files: for programs that differ in nothing else.
    #[must_use]
    pub fn pinning(&self, files: &[PinnedFile]) -> Self {
        let mut words = self.words.to_vec();
        if files.is_empty() || words.pop_if(|word| word == END).is_none() {
            return self.clone();
        }
        words.extend(files.iter().flat_map(PinnedFile::arguments));
        words.push(END.into());
        Self { words: words.into() }
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Sandbox").field(&self.words).finish()
    }
}

impl PartialEq for Sandbox {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}
