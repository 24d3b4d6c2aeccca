use std::io;
use std::path::{Path, PathBuf};

use amplifier_audit::Hash;

use crate::FleetError;

/// A failure of a policy: the active one stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The centre failed.
    #[error(transparent)]
    Centre(#[from] FleetError),
    /// A file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The stored policy was changed.
    #[error("the policy in `{}` was changed: {cause}; run `amplifier fleet sync` to fetch it again", path.display())]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// The folder cannot be published.
    #[error("`{}` cannot be part of a policy: {cause}", path.display())]
    Unpublishable {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// The signature is not that of the organisation.
    #[error("the policy is not signed by the organisation")]
    BadSignature,
    /// The policy is for another group.
    #[error("the policy is for the group `{found}`, not for `{expected}`")]
    OtherGroup {
        /// The group of the policy.
        found: String,
        /// The group of this machine.
        expected: String,
    },
    /// A newer policy was active before.
    #[error("version {found} of the policy is not newer than version {active}, which is active")]
    Older {
        /// The version.
        found: u64,
        /// The active version.
        active: u64,
    },
    /// The content does not have the signed hash.
    #[error("the bundle of the policy has the hash {found}; expected {expected}")]
    OtherContent {
        /// The hash of the content.
        found: Hash,
        /// The signed hash.
        expected: Hash,
    },
    /// The centre does not have the content.
    #[error("the centre does not have the bundle {hash} of the policy")]
    NoContent {
        /// The hash.
        hash: Hash,
    },
    /// The bundle is invalid.
    #[error("the bundle of the policy cannot be used: {cause}")]
    BadBundle {
        /// The cause.
        cause: String,
    },
    /// A message of a policy is malformed.
    #[error("invalid policy: {cause}")]
    Malformed {
        /// The cause.
        cause: String,
    },
    /// No such version is known.
    #[error("the group `{group}` has no version {version}; `amplifier fleet policy list {group}` shows all versions")]
    NoVersion {
        /// The group.
        group: String,
        /// The version.
        version: u64,
    },
}

impl PolicyError {
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::File { path: path.to_owned(), source }
    }

    pub(super) fn malformed(cause: impl ToString) -> Self {
        Self::Malformed { cause: cause.to_string() }
    }

    /// Returns `true` if the policy itself is at fault, so that the machine reports a refusal.
    pub(super) fn is_refusal(&self) -> bool {
        !matches!(self, Self::Centre(_) | Self::File { .. })
    }
}
