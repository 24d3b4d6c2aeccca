//! The handle of a sandbox, for code that starts programs.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use super::policy::{Arguments, END};
use super::system::SandboxPool;
use super::{PinnedFile, SandboxPolicy};
use crate::{Command, Process};

/// The sandbox in which programs are started, or none.
#[derive(Clone, Default)]
pub struct Sandbox {
    /// The words of the launcher, which precede a command.
    words: Arc<[OsString]>,
    /// The index at which the policy begins in the words.
    policy_start: usize,
    /// Sandboxes prepared in advance; none for a custom launcher.
    pool: Option<Arc<SandboxPool>>,
}

impl Sandbox {
    /// A custom launcher: the words that precede a command. It must start a session (`setsid`) and then run the command. No words mean no sandbox.
    pub fn through(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect(), policy_start: 0, pool: None }
    }

    /// A launcher of this program: the words that start it, followed by those of a policy.
    pub(super) fn from_launcher(words: Vec<OsString>, policy_start: usize) -> Self {
        Self { words: words.into(), policy_start, pool: Some(Arc::default()) }
    }

    /// Returns the words that precede a command.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Returns `true` if there is no sandbox.
    pub fn is_none(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the same sandbox with more pinned files.
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

    /// Prepares a sandbox for the next program in the background. No effect without a tokio runtime.
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

    /// Returns `true` if a prepared sandbox is ready.
    pub fn is_ready(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.is_ready(&self.words))
    }

    /// Starts a command in a prepared sandbox, if there is one.
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
