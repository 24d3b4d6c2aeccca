use std::io;
use std::path::{Path, PathBuf};

use amplifier_audit::KeyError;

/// A failure of an enrolment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnrolError {
    /// A file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file has invalid content.
    #[error("invalid file `{}`: {cause}; restore it from a copy", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// The folder exists already.
    #[error("`{}` exists already; choose another folder for the organisation", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The addresses of the servers are invalid.
    #[error("invalid servers: {cause}; expected one or three of the form `tls://HOST:PORT`")]
    Servers {
        /// The cause.
        cause: String,
    },
    /// The name is in use.
    #[error("the name `{name}` is in use; revoke it first, or choose another one")]
    Taken {
        /// The name.
        name: String,
    },
    /// No identity has the name.
    #[error("unknown name `{name}`; `amplifier fleet list` shows all names")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The token is invalid.
    #[error("invalid token: {cause}; copy the whole line that `amplifier fleet add` has printed")]
    Token {
        /// The cause.
        cause: String,
    },
    /// The machine belongs to an organisation already.
    #[error("this machine is `{name}` already; leave first: `amplifier fleet leave`")]
    Joined {
        /// The name of the machine.
        name: String,
    },
    /// A key cannot be used.
    #[error("a key cannot be used: {0}")]
    Key(String),
    /// A certificate cannot be created.
    #[error("a certificate cannot be created: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A key file cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyError),
}

impl EnrolError {
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::File { path: path.to_owned(), source }
    }

    pub(super) fn damaged(path: &Path, cause: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), cause: cause.to_string() }
    }
}

impl From<nkeys::error::Error> for EnrolError {
    fn from(error: nkeys::error::Error) -> Self {
        Self::Key(error.to_string())
    }
}
