//! Trust in bundles that come with a project.
//!
//! A project's bundle is written by whoever wrote the project, so nothing of it runs until the person has trusted it. Trust pins content: of the
//! bundle, of what it includes, and of every file that its hooks name. Whatever is different afterwards has to be trusted again.
//!
//! ```
//! use amplifier_modules::bundle::load_pinned;
//! use amplifier_modules::trust::{TrustStore, Verdict};
//!
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("bundle.yaml");
//! # std::fs::write(&file, "hooks:\n  - command: ./lint.sh\n    on: tool:post\n")?;
//! # std::fs::write(folder.path().join("lint.sh"), "exit 0\n")?;
//! let store = TrustStore::new(folder.path().join("trust.json"));
//! let pinned = load_pinned(&file)?.pin()?;
//! assert_eq!(store.verdict(&pinned)?, Verdict::Unknown);
//! store.trust(&pinned)?;
//! assert_eq!(store.verdict(&pinned)?, Verdict::Trusted);
//!
//! std::fs::write(folder.path().join("lint.sh"), "exit 2\n")?;
//! let pinned = load_pinned(&file)?.pin()?;
//! assert!(matches!(store.verdict(&pinned)?, Verdict::Changed(files) if files.len() == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod change;
mod held;
mod opaque;
mod own;
mod pin;
mod pinned;
mod store;
mod words;

use std::path::PathBuf;

pub use change::{Change, Difference, Verdict};
pub(crate) use held::Held;
pub use opaque::opaque_reason;
pub(crate) use own::is_changeable;
pub use pin::Pin;
pub(crate) use pin::{LARGEST_BUNDLE, read_pinned};
pub use pinned::Pinned;
pub use store::{TrustStore, TrustedBundle};

/// Why something can neither be trusted nor be known to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// A file whose content cannot be pinned.
    #[error("`{}` cannot be pinned: {why}", file.display())]
    Pin {
        /// The file.
        file: PathBuf,
        /// What is in the way.
        why: std::io::Error,
    },
    /// A hook or an MCP server with more text than is searched for files.
    #[error("{who} names too much to look for files in it: {what}; please put it into a script, and name that")]
    TooMuch {
        /// Which.
        who: String,
        /// Of what there is too much, and how much there may be.
        what: String,
    },
    /// The store is not what it was written as, so nothing is trusted.
    #[error("the trust store `{}` is damaged, so it trusts nothing: {why}; please remove it and trust again what you trust", file.display())]
    Damaged {
        /// The store.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The store cannot be read or written.
    #[error("the trust store `{}`: {why}", file.display())]
    Store {
        /// The store.
        file: PathBuf,
        /// What is in the way.
        why: std::io::Error,
    },
}
