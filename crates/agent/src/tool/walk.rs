//! Walking through the files of a workspace, for `Glob` and `Grep`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};

use super::blocking::{StopFlag, blocking};
use super::files::failed;
use super::{ToolError, ToolOutput, Workspace, input};

/// How long a search may take.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Searches on a thread that may block.
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

/// Where to search: a path of the workspace, or all of it.
pub(super) fn search_root(workspace: &Workspace, path: Option<&str>) -> Result<PathBuf, ToolError> {
    let place = workspace.resolve(path.unwrap_or("."))?;
    match place.symlink_metadata() {
        Ok(_) => Ok(place),
        Err(error) => Err(failed(&workspace.display(&place), "searched", &error)),
    }
}

/// What is in a place, sorted by path, without what `.gitignore` leaves out and without what cannot be read. Links are not followed.
pub(super) fn entries(place: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    WalkBuilder::new(place)
        // Files like `.github/workflows/test.yml` are part of a project.
        .hidden(false)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
        .require_git(false)
        // What one person ignores everywhere must not decide what an agent sees.
        .git_global(false)
        .sort_by_file_name(Ord::cmp)
        .build()
        .filter_map(Result::ok)
}

/// Reads a glob, in which `*` stands for a part of one name and `**` for any number of folders.
pub(super) fn glob(tool: &str, pattern: &str) -> Result<GlobMatcher, ToolError> {
    match GlobBuilder::new(pattern).literal_separator(true).build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(input::invalid(tool, error.to_string())),
    }
}
