//! Build outputs: files that a build can create again and that git does not track.

use std::ffi::OsString;
use std::path::{Component, Path};
use std::time::Duration;

use amplifier_process::sandbox::Sandbox;

use super::locations::{folder, plain};
use crate::builtin::status_context::git::git;
use crate::condition::Scope;

/// Time limit for git. After a timeout, a folder does not count as a build output.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum output of git, in bytes: one line is enough for an answer.
const MOST_LISTED: usize = 4096;

/// Folders that tools create, with their marker files. Folders without markers are recognized by name alone.
const OUTPUTS: [(&str, &[&str]); 36] = [
    ("node_modules", &["package.json"]),
    ("bower_components", &["bower.json"]),
    ("dist", PROJECT),
    ("build", PROJECT),
    ("out", PROJECT),
    ("target", &["Cargo.toml", "pom.xml", "build.sbt"]),
    ("coverage", PROJECT),
    ("htmlcov", PROJECT),
    ("__pycache__", &[]),
    (".pytest_cache", &[]),
    (".mypy_cache", &[]),
    (".ruff_cache", &[]),
    (".tox", &["tox.ini", "pyproject.toml"]),
    (".nox", &["noxfile.py"]),
    (".venv", PYTHON),
    ("venv", PYTHON),
    ("env", PYTHON),
    (".eggs", &[]),
    (".next", &["package.json"]),
    (".nuxt", &["package.json"]),
    (".output", &["package.json"]),
    (".svelte-kit", &["package.json"]),
    (".turbo", &["package.json"]),
    (".parcel-cache", &["package.json"]),
    (".cache", PROJECT),
    (".vite", &["package.json"]),
    (".angular", &["package.json"]),
    (".gradle", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    (".nyc_output", &["package.json"]),
    ("storybook-static", &["package.json"]),
    ("test-results", &["package.json"]),
    ("playwright-report", &["package.json"]),
    (".terraform", &[]),
    ("cmake-build-debug", &["CMakeLists.txt"]),
    ("obj", &[]),
    (".dart_tool", &["pubspec.yaml"]),
];

/// Generated files that are often deleted together with folders.
const FILES: [&str; 13] = [
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lockb",
    "bun.lock",
    "poetry.lock",
    "uv.lock",
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
    ".eslintcache",
    ".coverage",
    "tsconfig.tsbuildinfo",
];

const PYTHON: &[&str] = &["pyproject.toml", "setup.py", "requirements.txt", "setup.cfg", "Pipfile"];
const PROJECT: &[&str] = &[
    "package.json",
    "pyproject.toml",
    "setup.py",
    "Cargo.toml",
    "CMakeLists.txt",
    "Makefile",
    "build.gradle",
    "build.gradle.kts",
    "go.mod",
    "meson.build",
    "composer.json",
];

/// Returns `true` if a path, or the folder of a pattern, is a build output in the workspace: it has the name of one, and git
/// ignores it and tracks no file in it. Without a repository, a marker file has to exist beside it. A missing path counts as an
/// output.
pub(super) async fn is_output(path: &str, scope: &Scope, sandbox: &Sandbox) -> bool {
    let Some(path) = plain(path).or_else(|| folder(path)) else { return false };
    let Ok(place) = scope.resolve(path) else { return false };
    let Ok(relative) = place.strip_prefix(scope.workspace()) else { return false };
    let names: Vec<&str> = relative
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    if names.last().is_some_and(|name| FILES.contains(name)) {
        return place.symlink_metadata().is_err() || place.is_file();
    }
    let Some(at) = names.iter().position(|name| is_named(name)) else { return false };
    if place.symlink_metadata().is_err() {
        return true;
    }
    match is_ignored(relative, scope.workspace(), sandbox).await {
        Some(ignored) => ignored,
        None => {
            let above: std::path::PathBuf = names.iter().take(at).collect();
            has_marker(names.get(at).copied().unwrap_or_default(), &scope.workspace().join(above))
        }
    }
}

fn is_named(name: &str) -> bool {
    name.ends_with(".egg-info") || OUTPUTS.iter().any(|(output, _)| *output == name)
}

fn has_marker(name: &str, folder: &Path) -> bool {
    let markers = OUTPUTS.iter().find(|(output, _)| *output == name).map_or(&[] as &[&str], |(_, markers)| markers);
    markers.is_empty() || markers.iter().any(|marker| folder.join(marker).is_file())
}

/// Returns `true` if git ignores a path and tracks no file below it; `None` without a repository, or if git fails.
async fn is_ignored(path: &Path, workspace: &Path, sandbox: &Sandbox) -> Option<bool> {
    // An ignored folder may still hold tracked files.
    let ignored = git(workspace, sandbox).args(["check-ignore", "--quiet", "--"]).args([path]);
    let ended = ignored.run(&[], PATIENCE, MOST_LISTED).await.ok()?;
    if !ended.in_time {
        return Some(false);
    }
    match ended.status?.code() {
        Some(0) => {}
        Some(1) => return Some(false),
        // Git refuses to work in another user's repository; its tracked files are unknown then.
        _ => return has_repository(workspace).then_some(false),
    }
    Some(lists_any([path], workspace, sandbox).await == Some(false))
}

/// Returns `true` if git tracks one of these files, or fails.
pub(super) async fn is_tracked(paths: &[String], scope: &Scope, sandbox: &Sandbox) -> bool {
    let workspace = scope.workspace();
    lists_any(paths, workspace, sandbox).await.unwrap_or_else(|| has_repository(workspace))
}

/// Returns `true` if git tracks several of these files, or one with uncommitted changes.
pub(super) async fn is_tracked_work(paths: &[String], scope: &Scope, sandbox: &Sandbox) -> bool {
    let list = async |arguments: &[&str]| {
        let listing = git(scope.workspace(), sandbox).args(arguments.iter().copied()).args(["--"]).args(paths);
        let listed = listing.run(&[], PATIENCE, MOST_LISTED).await.ok()?;
        let is_answer = listed.in_time && listed.status.is_some_and(|status| status.success());
        is_answer.then(|| listed.stdout.bytes.iter().filter(|byte| **byte == b'\n').count())
    };
    match list(&["ls-files", "--cached"]).await {
        Some(0) => false,
        // `diff-index` compares timestamps, so that no filter of the repository runs.
        Some(1) => list(&["diff-index", "--name-only", "HEAD"]).await != Some(0),
        Some(_) => true,
        None => has_repository(scope.workspace()),
    }
}

fn has_repository(workspace: &Path) -> bool {
    workspace.ancestors().any(|folder| folder.join(".git").exists())
}

/// Returns `true` if git tracks any file at or below these paths; `None` if git fails.
async fn lists_any(
    paths: impl IntoIterator<Item = impl Into<OsString>>,
    workspace: &Path,
    sandbox: &Sandbox,
) -> Option<bool> {
    let listing = git(workspace, sandbox).args(["ls-files", "--cached", "--"]).args(paths);
    let listed = listing.run(&[], PATIENCE, MOST_LISTED).await.ok()?;
    // A truncated list is not empty.
    let is_answer = listed.stdout.exceeds_limit() || listed.status.is_some_and(|status| status.success());
    (listed.in_time && is_answer).then_some(!listed.stdout.bytes.is_empty())
}
