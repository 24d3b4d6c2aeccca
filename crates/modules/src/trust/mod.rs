//! Trust in bundles that come with a project.
//!
//! A project's bundle comes from the project's authors, so nothing of it runs until the user trusts it. Trust pins content: that of the bundle, its
//! includes, and every file that its hooks name. Changed content must be trusted again. Sessions decide in the crate `host`: `project_bundle.rs`.
//!
//! ```
//! use amplifier_modules::bundle::load_pinned;
//! use amplifier_modules::trust::{TrustStore, TrustStatus};
//!
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("bundle.yaml");
//! # std::fs::write(&file, "hooks:\n  - command: ./lint.sh\n    on: tool:post\n")?;
//! # std::fs::write(folder.path().join("lint.sh"), "exit 0\n")?;
//! let store = TrustStore::new(folder.path().join("trust.json"));
//! let pinned = load_pinned(&file)?.pin()?;
//! assert_eq!(store.status(&pinned)?, TrustStatus::Unknown);
//! store.trust(&pinned)?;
//! assert_eq!(store.status(&pinned)?, TrustStatus::Trusted);
//!
//! std::fs::write(folder.path().join("lint.sh"), "exit 2\n")?;
//! let pinned = load_pinned(&file)?.pin()?;
//! assert!(matches!(store.status(&pinned)?, TrustStatus::Changed(files) if files.len() == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bundle_pins;
mod opaque;
mod pin;
mod recheck;
mod references;
mod status;
mod store;
mod user_hooks;

use std::path::PathBuf;

pub use bundle_pins::BundlePins;
pub use opaque::opaque_reason;
pub(crate) use opaque::{RUNNERS, opaque_command_reason};
pub use pin::Pin;
pub(crate) use pin::{MAX_BUNDLE_SIZE, read_pinned};
pub(crate) use recheck::PinnedFiles;
pub use status::{Difference, FileChange, TrustStatus};
pub use store::{TrustStore, TrustedBundle};
pub(crate) use user_hooks::is_changeable;

/// An error while a bundle is pinned or its trust is checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// A file whose content cannot be pinned.
    #[error("`{}` cannot be pinned: {why}", file.display())]
    Pin {
        /// The file.
        file: PathBuf,
        /// The cause.
        why: std::io::Error,
    },
    /// A hook or an MCP server with more text than is searched for files.
    #[error("cannot find all files that {owner} uses: {what}; move the commands to a script, and refer to that script")]
    TooManyReferences {
        /// The hook or server.
        owner: String,
        /// The exceeded limit.
        what: String,
    },
    /// A hook whose settings cannot be searched for files.
    #[error("cannot find the files that {owner} uses: its settings have a value that JSON cannot express")]
    NotJson {
        /// The hook.
        owner: String,
    },
    /// A damaged store, which trusts nothing.
    #[error("the trust store `{}` is damaged, so nothing is trusted: {why}; remove the file and trust your bundles again", file.display())]
    Damaged {
        /// The store.
        file: PathBuf,
        /// The cause.
        why: String,
    },
    /// The store cannot be read or written.
    #[error("cannot use the trust store `{}`: {why}", file.display())]
    Store {
        /// The store.
        file: PathBuf,
        /// The cause.
        why: std::io::Error,
    },
}
