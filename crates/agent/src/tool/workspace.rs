//! The folder that tools are confined to.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amplifier_process::sandbox::Sandbox;

use super::edit_history::EditHistory;
use super::protected_paths::ProtectedPaths;

/// How many links a path may lead through; as many as Linux allows.
const MAX_LINKS: usize = 40;

/// The folder that tools are confined to. Clones are cheap and share it.
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

/// A path leads out of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is outside the workspace `{}`: only files within the workspace can be used", root.display())]
pub struct OutsideWorkspace {
    /// The path, as it was given.
    pub path: String,
    /// The root of the workspace.
    pub root: PathBuf,
}

impl Workspace {
    /// The workspace in a folder.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<Self> {
        let root = folder.as_ref().canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root: root.into(), edits: Arc::default(), protected: Arc::default(), sandbox: Sandbox::default() })
    }

    /// Keeps tools from changing these files, and what is in these folders, by whatever path. They need not exist.
    ///
    /// Commands are kept from it by the [sandbox](Self::sandboxed), if it does that.
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

    /// Keeps tools from reading these files, or what is in these folders, and from changing them. They need not exist.
    #[must_use]
    pub fn hide(mut self, files: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let files: Vec<PathBuf> = files.into_iter().map(|file| self.resolve_or_join(file.as_ref())).collect();
        Arc::make_mut(&mut self.protected).hidden.extend(files);
        self
    }

    /// Runs every command of `Bash` in a sandbox.
    #[must_use]
    pub fn sandboxed(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// The protected place that a path leads to or into, or that is within what it leads to.
    pub fn protects(&self, path: &str) -> Option<&Path> {
        let resolved = follow_links(&self.root, Path::new(path))?;
        self.protected.protecting_path(&resolved)
    }

    /// The places and files that tools may not change.
    pub fn protected(&self) -> impl Iterator<Item = &Path> {
        self.protected.paths.iter().chain(&self.protected.hidden).map(PathBuf::as_path)
    }

    /// The folder, without links in its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path leads, be it absolute or relative to the root. The file need not exist. The path that is given back has neither `..` nor
    /// links in it.
    ///
    /// # Errors
    /// If it leads out of the workspace.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, OutsideWorkspace> {
        match follow_links(&self.root, Path::new(path)) {
            Some(resolved) if resolved.starts_with(&self.root) => Ok(resolved),
            _ => Err(OutsideWorkspace { path: path.to_owned(), root: self.root.to_path_buf() }),
        }
    }

    /// A resolved path as people and models read it: relative to the root.
    pub fn display(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Ok(relative) => relative.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    /// What tools may not change.
    pub(super) fn protected_paths(&self) -> &ProtectedPaths {
        &self.protected
    }

    /// The sandbox of commands.
    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Where a path that is named to be protected leads; as it is if that cannot be said.
    fn resolve_or_join(&self, path: &Path) -> PathBuf {
        follow_links(&self.root, path).unwrap_or_else(|| self.root.join(path))
    }

    /// Keeps other tools from changing files between the moment that one reads a file and the moment that it replaces it.
    pub(super) fn lock_edits(&self) -> MutexGuard<'_, EditHistory> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows a path as the kernel would, but also past what does not exist: a link to a file that is still to be made must not lead out either.
/// `None` if there are too many links.
fn follow_links(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut resolved = root.to_path_buf();
    let mut ahead = VecDeque::new();
    let mut links = 0;
    put_in_front(&mut ahead, path);
    while let Some(step) = ahead.pop_front() {
        match Path::new(&step).components().next() {
            None | Some(Component::CurDir) => {}
            Some(Component::RootDir | Component::Prefix(_)) => resolved = PathBuf::from(&step),
            Some(Component::ParentDir) => {
                resolved.pop();
            }
            Some(Component::Normal(name)) => {
                resolved.push(name);
                if let Ok(target) = resolved.read_link() {
                    links += 1;
                    if links > MAX_LINKS {
                        return None;
                    }
                    resolved.pop();
                    put_in_front(&mut ahead, &target);
                }
            }
        }
    }
    Some(resolved)
}

fn put_in_front(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        ahead.push_front(component.as_os_str().to_owned());
    }
}
