//! Build outputs: what a build makes again, and git does not keep.

use std::ffi::OsString;
use std::path::{Component, Path};
use std::time::Duration;

use super::places::{folder, plain};
use crate::builtin::status_context::git::git;
use crate::condition::Scope;

/// How long git may take. After that a folder counts as no output.
const PATIENCE: Duration = Duration::from_secs(2);

/// Folders that tools make, and the files one of which lies beside them; none where the name alone says it.
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

/// Files that tools make, which are often deleted with folders.
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

/// Whether a path, or the folder of a pattern, is a build output in the workspace: by its name, and because git ignores it and
/// keeps nothing of it. Where there is no repository, a file of the project has to lie beside it. What does not exist is no loss.
pub(super) async fn is_output(path: &str, scope: &Scope, launcher: &[OsString]) -> bool {
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
    match is_ignored(relative, scope.workspace(), launcher).await {
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

/// Whether git ignores a path and keeps nothing below it; `None` where there is no repository, or git gives no answer.
async fn is_ignored(path: &Path, workspace: &Path, launcher: &[OsString]) -> Option<bool> {
    // Ignored, though it may hold files that were added all the same.
    let mut ignored = git(workspace, launcher);
    ignored.args(["check-ignore", "--quiet", "--"]).arg(path);
    let ended = tokio::time::timeout(PATIENCE, ignored.status()).await;
    let Ok(ended) = ended else { return Some(false) };
    match ended.ok()?.code() {
        Some(0) => {}
        Some(1) => return Some(false),
        // Git refuses repositories of others; what it keeps is not known then.
        _ => return workspace.ancestors().any(|folder| folder.join(".git").exists()).then_some(false),
    }
    let mut kept = git(workspace, launcher);
    kept.args(["ls-files", "--cached", "--"]).arg(path);
    let kept = tokio::time::timeout(PATIENCE, kept.output()).await.ok().and_then(Result::ok);
    Some(kept.is_some_and(|kept| kept.status.success() && kept.stdout.is_empty()))
}

/// `true` if git keeps one of these files.
pub(super) async fn is_kept(paths: &[String], scope: &Scope, launcher: &[OsString]) -> bool {
    let mut kept = git(scope.workspace(), launcher);
    kept.args(["ls-files", "--cached", "--"]).args(paths);
    let kept = tokio::time::timeout(PATIENCE, kept.output()).await.ok().and_then(Result::ok);
    kept.is_some_and(|kept| kept.status.success() && !kept.stdout.is_empty())
}
