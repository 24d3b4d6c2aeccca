//! The protected files, and the files that a path may mean.

use std::path::{Component, Path, PathBuf};

use amplifier_agent::tool::{PathCheck, Workspace};
use amplifier_process::follow_links;

use super::settings_paths::{self, SettingsPath};

/// The longest path of the system.
const MAX_PATH: usize = 4096;

/// The files that tools of guarded agents cannot change, and those that they cannot read either.
#[derive(Clone)]
pub(super) struct ProtectedFiles {
    /// Files that commands cannot even name.
    pub(super) workspace: Workspace,
    /// These files, and the programs of the guard.
    pub(super) unchanged: Workspace,
    pub(super) programs: Vec<PathBuf>,
    pub(super) secrets: Vec<PathBuf>,
    pub(super) home: Option<PathBuf>,
}

/// The way in which a path leads to a protected file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    /// The path is a protected file, or in a protected folder.
    Within,
    /// The path is a folder that belongs to a client.
    ClientFolder,
    /// A protected file is below the path.
    Below,
}

impl ProtectedFiles {
    /// Returns the files that a path may mean: as the system resolves `..` and links, and as programs do that remove `..` from the text first.
    ///
    /// # Errors
    /// The reason why the path cannot be checked.
    pub(super) fn candidates(&self, folder: &Path, text: &str) -> Result<Vec<PathBuf>, &'static str> {
        if text.len() > MAX_PATH {
            return Err("is longer than the paths of the system");
        }
        if text.contains(|c: char| c.is_control()) {
            return Err("has a line break or another control character");
        }
        let written = folder.join(self.without_home(text));
        let lexical = without_parents(&written);
        let resolved = |path: &Path| follow_links(Path::new("/"), path).map_err(|_| "has too many links");
        let mut found = vec![resolved(&written)?];
        // Following links asks the system about each part of the path.
        if lexical.as_os_str() != written.as_os_str() {
            found.push(resolved(&lexical)?);
        }
        found.push(lexical);
        found.dedup();
        Ok(found)
    }

    /// Returns `true` if programs understand a path differently: one resolves links before it goes up, another one after.
    pub(super) fn is_ambiguous(&self, folder: &Path, text: &str) -> bool {
        let written = folder.join(self.without_home(text));
        let resolved = |path: &Path| follow_links(Path::new("/"), path).ok();
        resolved(&written) != resolved(&without_parents(&written))
    }

    /// Returns the protection of a file, as one of several in the check of a call.
    pub(super) fn protection(&self, path: &Path, check: &PathCheck<'_>) -> Option<Protection> {
        if settings_paths::position(path) == Some(SettingsPath::Settings) || self.is_secret(path) {
            return Some(Protection::Within);
        }
        let found = path.to_str().and_then(|text| check.protects(text));
        let is_above = |found: &Path| found != path && found.starts_with(path);
        match found {
            Some(found) if !is_above(found) => Some(Protection::Within),
            _ if settings_paths::position(path).is_some() => Some(Protection::ClientFolder),
            Some(_) => Some(Protection::Below),
            None if self.secrets.iter().any(|secret| secret.starts_with(path)) => Some(Protection::Below),
            None => None,
        }
    }

    /// Returns `true` if a file cannot be read by tools.
    pub(super) fn is_secret(&self, path: &Path) -> bool {
        self.secrets.iter().any(|secret| path.starts_with(secret))
    }

    /// Returns `true` for a program of the guard.
    pub(super) fn is_program(&self, path: &Path) -> bool {
        self.programs.iter().any(|program| program == path)
    }

    /// Returns the files and folders that commands cannot name.
    pub(super) fn named(&self) -> impl Iterator<Item = &Path> {
        self.workspace.protected().chain(self.secrets.iter().map(PathBuf::as_path))
    }

    /// Returns all protected files and folders that are known by their paths.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        self.named().chain(self.programs.iter().map(PathBuf::as_path))
    }

    /// Returns a command with the home folder in the place of `~`, which approximates the expansions of a shell.
    pub(super) fn with_home(&self, command: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let home = self.home.as_deref().and_then(Path::to_str).filter(|home| home.chars().all(is_plain));
        let Some(home) = home else { return command.to_owned() };
        let mut text = command.replace("${HOME}", home).replace("$HOME", home);
        // `~` stands for it at the beginning of a word that ends there, or goes on with a slash.
        let is_begin = |before: &str| before.ends_with(|c: char| c.is_whitespace() || "=:(;|&<>`".contains(c));
        let is_end =
            |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || "/;|&)<>`".contains(c));
        let found: Vec<usize> = text.match_indices('~').map(|(at, _)| at).collect();
        for at in found.into_iter().rev().filter(|at| *at == 0 || is_begin(&text[..*at])).collect::<Vec<_>>() {
            if is_end(&text[at + 1..]) {
                text.replace_range(at..=at, home);
            }
        }
        text
    }

    /// Returns a path with the home folder in the place of `~`, and an address of a file as its path.
    fn without_home(&self, text: &str) -> PathBuf {
        let address = text.strip_prefix("file://").map(decode);
        let text = address.as_deref().unwrap_or(text);
        let below = |home: &Path, rest: &str| home.join(rest.trim_start_matches('/'));
        let rest = ["~", "$HOME", "${HOME}"].iter().find_map(|home| text.strip_prefix(home));
        match (rest.filter(|rest| rest.is_empty() || rest.starts_with('/')), &self.home) {
            (Some(rest), Some(home)) => below(home, rest),
            _ => PathBuf::from(text),
        }
    }
}

/// Decodes the path of an address. Anything else than text stays as it is.
fn decode(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

/// Removes `.` and `..` from the text of a path.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
