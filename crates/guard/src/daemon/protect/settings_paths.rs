//! The paths of settings that could switch off the guard, in any folder.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::client::Client;

/// Settings of clients, below any folder. Some contain the guard, others could disable it or start other programs.
const SETTINGS: [&str; 36] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude.json",
    ".mcp.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/managed_config.toml",
    ".codex/.env",
    ".gemini/settings.json",
    ".gemini/.env",
    ".github/hooks",
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".copilot/hooks",
    ".copilot/settings.json",
    ".copilot/config.json",
    ".copilot/mcp-config.json",
    ".config/opencode/plugin",
    ".config/opencode/plugins",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".config/opencode/config.json",
    ".opencode/plugin",
    ".opencode/plugins",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
    "opencode.json",
    "opencode.jsonc",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".config/cursor/user/settings.json",
    ".vscode/settings.json",
    ".vscode/mcp.json",
    "claude-code/managed-settings.json",
    "claude-code/managed-settings.d",
    "codex/requirements.toml",
];

/// Folders that belong to clients alone. They are protected as a whole from being moved, replaced, linked or filled.
const CLIENT_FOLDERS: [&str; 6] = [".claude", ".codex", ".gemini", ".copilot", ".opencode", ".cursor"];

/// The position of a path among the settings of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsPath {
    /// Settings, or a file in a folder of settings.
    Settings,
    /// A folder that belongs to a client, with settings in it.
    ClientFolder,
}

/// Returns the position of a path; none for a path without settings. File systems may ignore case.
pub(super) fn position(path: &Path) -> Option<SettingsPath> {
    let names = names(path);
    let is_settings =
        |settings: &str| names.windows(settings.split('/').count()).any(|names| names.iter().eq(settings.split('/')));
    if SETTINGS.iter().any(|settings| is_settings(settings)) {
        return Some(SettingsPath::Settings);
    }
    is_folder(&names).then_some(SettingsPath::ClientFolder)
}

/// Returns `true` if the names end with a folder of a client, or with one in it that has settings.
fn is_folder(names: &[String]) -> bool {
    let of_clients = SETTINGS.iter().map(|settings| settings.split('/').collect::<Vec<_>>());
    let mut of_clients = of_clients.filter(|parts| CLIENT_FOLDERS.contains(&parts[0]));
    of_clients.any(|parts| (1..parts.len()).any(|length| ends_with(names, &parts[..length])))
}

fn ends_with(names: &[String], parts: &[&str]) -> bool {
    names.len() >= parts.len() && names[names.len() - parts.len()..].iter().eq(parts)
}

/// Returns the paths at which a folder may have settings, relative to it: `settings.json` in `.claude`. Those of a whole project count only if it
/// `is_project` of the agent.
fn paths_below(folder: &Path, is_project: bool) -> impl Iterator<Item = String> {
    let names = names(folder);
    SETTINGS.into_iter().flat_map(move |settings| {
        let parts: Vec<&str> = settings.split('/').collect();
        let lengths = (usize::from(!is_project)..parts.len()).filter(|length| ends_with(&names, &parts[..*length]));
        lengths.map(|length| parts[length..].join("/")).collect::<Vec<_>>()
    })
}

/// Returns `true` if a file or folder has settings at a place where they count for the target, to which it is copied, or which it is itself.
pub(super) fn has_settings_for(source: &Path, target: &Path, is_project: bool) -> bool {
    paths_below(target, is_project).any(|path| source.join(path).symlink_metadata().is_ok())
}

/// Returns `true` if a relative path may lead to settings from some folder: `settings.json` from `.claude`. A name with an expansion may be any name.
pub(super) fn may_be_settings(path: &str) -> bool {
    let path = path.to_lowercase();
    let parts = after_parents(&path);
    parts.last().is_none_or(|last| CLIENT_FOLDERS.contains(last))
        || SETTINGS.iter().any(|settings| may_end_with(settings.rsplit('/'), &parts))
}

/// Returns `true` if a relative path may be this file from some folder.
pub(super) fn may_lead_to(path: &str, file: &Path) -> bool {
    let (path, names) = (path.to_lowercase(), names(file));
    may_end_with(names.iter().rev().map(String::as_str), &after_parents(&path))
}

/// Returns `true` if the last name of a path is known, and that of settings.
pub(super) fn has_settings_name(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    SETTINGS.iter().any(|settings| settings.rsplit('/').next() == Some(last.as_str()) && last.contains('.'))
}

fn may_end_with<'a>(names: impl Iterator<Item = &'a str>, parts: &[&str]) -> bool {
    names.zip(parts.iter().rev()).all(|(name, part)| may_equal(part, name))
}

fn after_parents(path: &str) -> Vec<&str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let begin = parts.iter().rposition(|part| *part == "..").map_or(0, |at| at + 1);
    parts[begin..].to_vec()
}

/// Returns the settings of a client, below its home folder or that of a project.
pub(super) fn of_client(client: Client) -> impl Iterator<Item = &'static str> {
    let folders: &[&str] = match client {
        Client::Claude => &[".claude/"],
        Client::Codex => &[".codex/"],
        Client::Gemini => &[".gemini/"],
        Client::Copilot => &[".copilot/", ".github/", ".claude/"],
        Client::Opencode => &[".config/opencode/", ".opencode/", "opencode.json"],
        Client::Cursor => &[".cursor/", ".claude/"],
    };
    SETTINGS.into_iter().filter(|settings| folders.iter().any(|folder| settings.starts_with(folder)))
}

/// Returns the settings in a folder, or the folders with settings, whose names a pattern may select.
pub(super) fn selected_in<'a>(folder: &'a Path, pattern: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let first = |path: String| path.split('/').next().map(str::to_owned);
    paths_below(folder, true).filter_map(first).filter(|name| may_equal(pattern, name)).map(|name| folder.join(name))
}

/// Returns `true` if a pattern of files below a folder selects settings by their name. `*` selects all files, and no settings in particular.
pub(super) fn selects_settings(pattern: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or(pattern).to_lowercase();
    let names = SETTINGS.iter().filter_map(|settings| settings.rsplit('/').next());
    !name.trim_matches('*').is_empty() && names.chain(CLIENT_FOLDERS).any(|one| may_equal(&name, one))
}

/// Returns `true` if a text, such as a program, names settings or a folder of a client. `.claude/skills` has none, and `db.cursor()` is no folder.
pub(super) fn is_named_in(text: &str) -> bool {
    let text = text.to_lowercase();
    let of_clients = CLIENT_FOLDERS.iter().flat_map(|folder| text.match_indices(folder));
    let mut of_clients = of_clients.filter(|(at, folder)| {
        let (before, rest) = (&text[..*at], &text[at + folder.len()..]);
        let is_name = |c: char| c.is_alphanumeric() || "_-)]".contains(c);
        !before.ends_with(is_name) && !rest.starts_with(|c: char| c.is_alphanumeric() || "_-(".contains(c))
    });
    let has_settings = |folder: &str, rest: &str| {
        let next: String = rest.chars().skip(1).take_while(|c| c.is_alphanumeric() || "._-".contains(*c)).collect();
        let inside = SETTINGS.iter().filter_map(|settings| settings.strip_prefix(folder)?.strip_prefix('/'));
        !rest.starts_with('/') || next.is_empty() || inside.into_iter().any(|inside| inside.starts_with(&next))
    };
    let is_own = |settings: &&&str| CLIENT_FOLDERS.contains(&settings.split('/').next().unwrap_or_default());
    of_clients.any(|(at, folder)| has_settings(folder, &text[at + folder.len()..]))
        || SETTINGS.iter().filter(|settings| !is_own(settings)).any(|settings| text.contains(settings))
}

/// Returns `true` if a text has the name of a settings file.
pub(super) fn has_name_in(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut names = SETTINGS.iter().filter_map(|settings| settings.rsplit('/').next());
    names.any(|name| name.contains('.') && text.contains(name))
}

/// Returns settings whose whole path a text has.
pub(super) fn path_in(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    SETTINGS.into_iter().find(|settings| settings.contains('/') && text.contains(settings))
}

/// Returns `true` if a part of a path with patterns and expansions may be this name. A pattern does not match a leading dot.
pub(super) fn may_equal(part: &str, name: &str) -> bool {
    match () {
        () if part.contains(UNKNOWN) || part.len() > MAX_PATTERN => true,
        () if part.starts_with(WILD) && name.starts_with('.') => false,
        () => is_match(part.as_bytes(), name.as_bytes()),
    }
}

/// The longest pattern that is compared, in bytes. A longer one may be any name.
const MAX_PATTERN: usize = 32;

/// Characters of patterns.
pub(super) const WILD: [char; 3] = ['*', '?', '['];
/// Characters of expansions whose text is unknown.
pub(super) const UNKNOWN: [char; 5] = ['$', '`', '…', '{', '\\'];

fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            is_match(rest, name) || name.split_first().is_some_and(|(_, name)| is_match(pattern, name))
        }
        (Some((b'?', rest)), Some((_, name))) => is_match(rest, name),
        (Some((b'[', rest)), Some((_, name))) => {
            let end = rest.iter().skip(1).position(|byte| *byte == b']');
            end.is_some_and(|end| is_match(&rest[end + 2..], name))
        }
        (Some((one, rest)), Some((other, name))) => one.eq_ignore_ascii_case(other) && is_match(rest, name),
        _ => false,
    }
}

fn names(path: &Path) -> Vec<String> {
    let name = |name: &OsStr| name.to_string_lossy().to_lowercase();
    path.components()
        .filter_map(|part| if let Component::Normal(part) = part { Some(name(part)) } else { None })
        .collect()
}
