//! A sandbox as those see it who start programs.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use super::policy::{Arguments, END};
use super::system::SandboxPool;
use super::{PinnedFile, SandboxPolicy};
use crate::{Command, Process};

/// The sandbox that programs are started in, or none.
#[derive(Clone, Default)]
pub struct Sandbox {
    /// The launcher: the words to put before a command.
    words: Arc<[OsString]>,
    /// Where the policy begins in the words.
    policy_start: usize,
    /// Those that are made before they are needed; none for a launcher of the caller's own.
    pool: Option<Arc<SandboxPool>>,
}

impl Sandbox {
    /// A launcher of the caller's own: the words to put before a command. It has to start a session (`setsid`) and then to run the command or to become it. No words mean
    /// no sandbox.
    pub fn through(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect(), policy_start: 0, pool: None }
    }

    /// A launcher of this program: the words that start it, and then those of a policy.
    pub(super) fn from_launcher(words: Vec<OsString>, policy_start: usize) -> Self {
        Self { words: words.into(), policy_start, pool: Some(Arc::default()) }
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
        Self { words: words.into(), policy_start: self.policy_start, pool: self.pool.clone() }
    }

    /// Makes a sandbox for the next program, in the background. Without a tokio runtime, it does nothing.
    pub fn prepare(&self) {
        let (Some(pool), Ok(runtime)) = (self.pool.clone(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let (words, policy_start) = (self.words.clone(), self.policy_start);
        runtime.spawn_blocking(move || {
            if let Ok(Arguments { policy, .. }) = SandboxPolicy::read(words[policy_start..].iter().cloned()) {
                pool.fill(&words, policy);
            }
        });
    }

    /// `true` if a sandbox is ready for the next program.
    pub fn is_ready(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.is_ready(&self.words))
    }

    /// Starts a command in a sandbox that was made before, if there is one.
    pub(crate) fn start_prepared(&self, command: &Command) -> Option<Process> {
        self.pool.as_ref()?.start(self, command)
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
