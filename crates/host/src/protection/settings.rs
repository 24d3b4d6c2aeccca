//! Changes of the user's configuration to the protected paths.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::environment::Environment;

/// `[sandbox]` in the configuration file: changes to the built-in lists of paths that programs cannot change or read.
///
/// Bundles cannot change these settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SandboxSettings {
    /// More files and folders that programs cannot change.
    pub read_only: Vec<PathBuf>,
    /// More files and folders that programs cannot read.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that programs can change and read despite the built-in lists or a hook file beside them.
    pub allow: Vec<PathBuf>,
}

impl SandboxSettings {
    /// Expands `~`, and resolves links.
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
