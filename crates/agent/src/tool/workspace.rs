//! The workspace of tools.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_process::follow_links;
use amplifier_process::sandbox::Sandbox;

use super::edit_history::EditHistory;
use super::protected_paths::{ProtectedFileIds, ProtectedPaths};

/// The folder to which tools are confined. Cheap to clone; clones share state.
///
/// ```
/// # use amplifier_agent::tool::Workspace;
/// # let folder = tempfile::tempdir()?;
/// let workspace = Workspace::new(folder.path())?;
/// assert!(workspace.resolve("src/main.rs").is_ok());
/// assert!(workspace.resolve("../elsewhere").is_err());
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct Workspace {
    root: Arc<Path>,
    // A std lock: it is only ever held on threads that may block.
    edits: Arc<Mutex<EditHistory>>,
    protected: Arc<ProtectedPaths>,
    sandbox: Sandbox,
}

/// A check of several paths against the protected files of a workspace, which are looked up once. It is for one call of a tool: files may be replaced later.
#[derive(Debug)]
pub struct PathCheck<'a> {
    workspace: &'a Workspace,
    ids: ProtectedFileIds<'a>,
}

impl<'a> PathCheck<'a> {
    /// Returns the protected path that a path leads to, into or above.
    pub fn protects(&self, path: &str) -> Option<&'a Path> {
        let resolved = follow_links(&self.workspace.root, Path::new(path)).ok()?;
        self.workspace.protected.protecting_path_among(&resolved, &self.ids)
    }
}

/// A path outside the workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is outside the workspace `{}`: only files within the workspace can be used", root.display())]
pub struct OutsideWorkspace {
    /// The path as given.
    pub path: String,
    /// The root of the workspace.
    pub root: PathBuf,
}

impl Workspace {
    /// A workspace in a folder.
    ///
    /// # Errors
    /// If the folder does not exist.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<Self> {
        let root = folder.as_ref().canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root: root.into(), edits: Arc::default(), protected: Arc::default(), sandbox: Sandbox::default() })
    }

    /// Protects files and folders from changes by tools, under any path. They need not exist.
    ///
    /// Commands are only restricted by the [sandbox](Self::sandboxed).
    ///
    /// ```
    /// # use amplifier_agent::tool::Workspace;
    /// # let folder = tempfile::tempdir()?;
    /// let workspace = Workspace::new(folder.path())?.protect([".amplifier"]);
    /// assert!(workspace.protects("src/../.amplifier/bundle.yaml").is_some());
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn protect(mut self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| self.resolve_or_join(path.as_ref())).collect();
        Arc::make_mut(&mut self.protected).paths.extend(paths);
        self
    }

    /// Protects files and folders from tools that read or change them. They need not exist.
    #[must_use]
    pub fn hide(mut self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let files: Vec<PathBuf> = files.into_iter().map(|file| self.resolve_or_join(file.as_ref())).collect();
        Arc::make_mut(&mut self.protected).hidden.extend(files);
        self
    }

    /// Sets the sandbox for commands of `Bash`.
    #[must_use]
    pub fn sandboxed(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Returns the protected path that a path leads to, into or above.
    pub fn protects(&self, path: &str) -> Option<&Path> {
        self.check_paths().protects(path)
    }

    /// Begins to check several paths at once: the protected files are looked up only once.
    pub fn check_paths(&self) -> PathCheck<'_> {
        PathCheck { workspace: self, ids: ProtectedFileIds::default() }
    }

    /// Returns the paths that tools cannot change.
    pub fn protected(&self) -> impl Iterator<Item = &Path> {
        self.protected.paths.iter().chain(&self.protected.hidden).map(PathBuf::as_path)
    }

    /// Returns the folder as a path without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves a path, absolute or relative to the root. The file need not exist. The result contains neither `..` nor links.
    ///
    /// # Errors
    /// If the path is outside the workspace.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, OutsideWorkspace> {
        match follow_links(&self.root, Path::new(path)) {
            Ok(resolved) if resolved.starts_with(&self.root) => Ok(resolved),
            _ => Err(OutsideWorkspace { path: path.to_owned(), root: self.root.to_path_buf() }),
        }
    }

    /// Returns a resolved path for display, relative to the root.
    pub fn display(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Ok(relative) => relative.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    pub(super) fn protected_paths(&self) -> &ProtectedPaths {
        &self.protected
    }

    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Resolves a path to protect; unresolved if there are too many links.
    fn resolve_or_join(&self, path: &Path) -> PathBuf {
        follow_links(&self.root, path).unwrap_or_else(|_| self.root.join(path))
    }

    /// Locks edits, so that no other tool changes a file between reading and replacing.
    pub(super) fn lock_edits(&self) -> MutexGuard<'_, EditHistory> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
