//! What the user's configuration adds to what is protected, and takes away from it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::environment::Environment;

/// `[sandbox]` in the configuration file: what programs of a session cannot change or read, beside what is always so.
///
/// A bundle cannot set any of this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// Files and folders that programs cannot change either.
    pub read_only: Vec<PathBuf>,
    /// Files and folders that programs cannot read either.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that programs can change and read, although they are on the built-in lists or beside a file of a hook.
    pub allow: Vec<PathBuf>,
}

impl SandboxSettings {
    /// Replaces `~` by the home folder, and takes links out of the paths.
    ///
    /// # Errors
    /// If a path is neither absolute nor begins with `~/`.
    pub(crate) fn resolve(self, environment: &Environment) -> Result<Self, String> {
        let paths = |key: &str, paths: Vec<PathBuf>| {
            let resolved = paths.into_iter().map(|path| resolve(&path, environment).ok_or_else(|| invalid(key, &path)));
            resolved.collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            read_only: paths("read_only", self.read_only)?,
            hidden: paths("hidden", self.hidden)?,
            allow: paths("allow", self.allow)?,
        })
    }

    /// `true` if programs may change and read a path of the built-in lists.
    pub(super) fn allows(&self, path: &Path) -> bool {
        self.allow.iter().any(|allowed| path.starts_with(allowed))
    }
}

fn resolve(path: &Path, environment: &Environment) -> Option<PathBuf> {
    let path = match path.strip_prefix("~") {
        Ok(rest) => environment.home()?.join(rest),
        Err(_) => path.to_owned(),
    };
    path.is_absolute().then(|| path.canonicalize().unwrap_or(path))
}

fn invalid(key: &str, path: &Path) -> String {
    format!(
        "invalid path `{}` in `{key}` of `[sandbox]`; expected an absolute path, or one that begins with `~/`",
        path.display()
    )
}
