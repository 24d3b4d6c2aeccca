//! File walks for `Glob` and `Grep`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use super::blocking::{StopFlag, blocking};
use super::files::failed;
use super::{ToolError, ToolOutput, Workspace, input};

const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Runs a search on a separate thread.
///
/// # Cancel safety
/// Dropping the future ends the search.
pub(super) async fn search<W>(work: W) -> Result<ToolOutput, ToolError>
where
    W: FnOnce(&StopFlag) -> Result<ToolOutput, ToolError> + Send + 'static,
{
    tokio::time::timeout(TIME_LIMIT, blocking(work)).await.unwrap_or_else(|_| {
        let seconds = TIME_LIMIT.as_secs();
        Err(ToolError::Failed(format!("the search took longer than {seconds} s: give a `path` with fewer files in it")))
    })
}

/// Returns the path to search; the workspace if none is given.
pub(super) fn search_root(workspace: &Workspace, path: Option<&str>) -> Result<PathBuf, ToolError> {
    let root = workspace.resolve(path.unwrap_or("."))?;
    match root.symlink_metadata() {
        Ok(_) => Ok(root),
        Err(error) => Err(failed(&workspace.display(&root), "searched", &error)),
    }
}

/// Returns the entries below a path, sorted, without ignored and unreadable ones. Links are not followed.
pub(super) fn entries(root: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    WalkBuilder::new(root)
        // Files like `.github/workflows/test.yml` are part of a project.
        .hidden(false)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
        .require_git(false)
        // A user's global ignores must not affect the agent.
        .git_global(false)
        .sort_by_file_name(Ord::cmp)
        .build()
        .filter_map(Result::ok)
}

/// Compiles a glob: `*` matches within a name, `**` any number of folders.
pub(super) fn glob(tool: &str, pattern: &str) -> Result<GlobMatcher, ToolError> {
    match GlobBuilder::new(pattern).literal_separator(true).build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(input::invalid(tool, error.to_string())),
    }
}
