//! Changes of protected files by a command: in other folders, by patterns, by links.

use std::fs;
use std::path::{Path, PathBuf};

use amplifier_agent::tool::PathCheck;
use amplifier_modules::shell::{ChangeReach, ChangedPath, CommandChanges, UnknownProgram};

use super::paths::{ProtectedFiles, Protection};
use super::settings_paths::{self, SettingsPath, UNKNOWN, WILD, may_be_settings, may_equal};

/// The most folders that a pattern may stand for.
const MAX_FOLDERS: usize = 1_000;
/// Programs that make other names of files.
const LINKING: [&str; 3] = ["ln", "link", "mount"];
/// Programs that close or remove a folder.
const CLOSING: [&str; 6] = ["chattr", "chgrp", "chmod", "chown", "rmdir", "setfacl"];

/// The folders in which a command may start.
pub(super) struct StartFolders {
    pub(super) folders: Vec<PathBuf>,
    /// `true` if the client may start it in another folder, too.
    pub(super) may_be_elsewhere: bool,
}

/// Returns the reason to deny a command that changes a protected file, or that may do so in a folder which its text does not show.
pub(super) fn find_change(
    changes: &CommandChanges,
    text: &str,
    starts: &StartFolders,
    files: &ProtectedFiles,
) -> Option<String> {
    let is_suspicious = changes.analysis.moves || settings_paths::is_named_in(text);
    let check = Check { starts, files, paths: files.unchanged.check_paths(), is_suspicious };
    let changed = changes.paths.iter().find_map(|change| check.change(change));
    changed
        .or_else(|| check.folders(changes))
        .or_else(|| changes.programs.iter().find_map(|program| check.program(program)))
}

struct Check<'a> {
    starts: &'a StartFolders,
    files: &'a ProtectedFiles,
    paths: PathCheck<'a>,
    /// `true` if the command changes its folder, or names that of a client.
    is_suspicious: bool,
}

impl Check<'_> {
    fn change(&self, change: &ChangedPath) -> Option<String> {
        let Some(paths) = &change.paths else {
            let written = without_quotes(&change.written);
            let is_known = |file: &Path| settings_paths::may_lead_to(&written, file);
            let may_be = may_be_settings(&written) || self.files.all().any(is_known);
            return may_be.then(|| unknown(&change.written));
        };
        paths.iter().find_map(|path| self.path(&without_quotes(path), &change.reach))
    }

    /// Returns the reason to deny a change of a path, relative to the folder in which the command starts.
    fn path(&self, path: &str, reach: &ChangeReach) -> Option<String> {
        let is_relative = !path.starts_with(['/', '~', '$']);
        if is_relative && self.starts.may_be_elsewhere && *reach == ChangeReach::File && may_be_settings(path) {
            return Some(unknown(path));
        }
        let known = path.replace("${HOME}", "~").replace("$HOME", "~");
        if known.contains(UNKNOWN) {
            // Files that a program has listed are named in this way, too.
            let is_named = settings_paths::has_settings_name(path);
            return (is_named || self.is_suspicious && may_be_settings(path)).then(|| unknown(path));
        }
        self.starts.folders.iter().find_map(|folder| self.below(folder, &known, reach))
    }

    fn below(&self, folder: &Path, path: &str, reach: &ChangeReach) -> Option<String> {
        let Some(wild) = path.find(WILD) else {
            return match self.files.candidates(folder, path) {
                Ok(found) => found.iter().find_map(|path| self.affected(folder, path, reach)),
                Err(problem) => Some(format!("the path `{path}` {problem}, so it cannot be checked")),
            };
        };
        // The part before the first pattern is a folder.
        let (head, rest) = path[..wild].rfind('/').map_or(("", path), |at| path.split_at(at + 1));
        let head = if head.is_empty() { "." } else { head };
        let Ok(heads) = self.files.candidates(folder, head) else { return Some(unknown(path)) };
        let names: Vec<&str> = rest.split('/').filter(|name| !name.is_empty()).collect();
        let (last, between) = names.split_last()?;
        let Some(folders) = matching_folders(heads, between) else { return Some(unknown(path)) };
        folders.iter().find_map(|matched| {
            if !last.contains(WILD) {
                let found = self.files.candidates(matched, last).ok()?;
                return found.iter().find_map(|path| self.affected(folder, path, reach));
            }
            let protected = self.files.all().filter(|protected| {
                let name = protected.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
                protected.parent() == Some(matched) && may_equal(last, &name)
            });
            let selected = protected.map(Path::to_owned).chain(settings_paths::selected_in(matched, last));
            // A pattern stands for files that exist.
            let mut existing = selected.filter(|path| path.symlink_metadata().is_ok());
            existing.find_map(|path| self.affected(folder, &path, reach))
        })
    }

    /// Returns the reason to deny a change of this file or folder.
    fn affected(&self, start: &Path, path: &Path, reach: &ChangeReach) -> Option<String> {
        let is_project = self.starts.folders.iter().any(|folder| folder.starts_with(path));
        let is_denied = match (self.files.protection(path, &self.paths), reach) {
            (Some(Protection::ClientFolder), ChangeReach::Repository) => true,
            (_, ChangeReach::Repository) => false,
            (Some(Protection::Within), _) => true,
            (_, ChangeReach::File) => false,
            (protection, ChangeReach::Copy(sources)) => {
                let is_folder = protection == Some(Protection::ClientFolder);
                let found = sources.iter().flatten().filter_map(|source| self.files.candidates(start, source).ok());
                let mut found = found.flatten();
                // A file in a folder of a client is another change; a folder may have any content by then.
                sources.is_none() && is_folder
                    || found.any(|source| {
                        let is_filled = is_folder && !source.is_file();
                        is_filled
                            || self.files.is_program(&source)
                            || settings_paths::has_settings_for(&source, path, is_project)
                    })
            }
            (Some(Protection::ClientFolder), _) => true,
            (_, ChangeReach::Selected(pattern)) => {
                let name = pattern.rsplit('/').next().unwrap_or(pattern);
                let is_selected = |file: &&Path| {
                    file.starts_with(path)
                        && file.file_name().is_some_and(|one| may_equal(name, &one.to_string_lossy()))
                };
                settings_paths::selects_settings(pattern)
                    || !name.trim_matches('*').is_empty() && self.files.all().any(|file| is_selected(&file))
            }
            (_, ChangeReach::Anything) => false,
            (protection, _) => {
                settings_paths::has_settings_for(path, path, is_project)
                    || protection.is_some() && self.files.all().any(|file| file.starts_with(path) && file.exists())
            }
        };
        is_denied.then(|| {
            let path = self.files.workspace.display(path);
            format!("the command changes `{path}`, which decides what tools may do or records what they did")
        })
    }

    /// Returns the reason to deny another name of settings or their folder, or a folder that is closed.
    fn folders(&self, changes: &CommandChanges) -> Option<String> {
        changes.analysis.commands.iter().find_map(|command| {
            let is_linking = LINKING.contains(&command.program.as_str());
            if !is_linking && !CLOSING.contains(&command.program.as_str()) {
                return None;
            }
            let mut paths = command.arguments.iter().filter(|argument| !argument.starts_with('-'));
            paths.find_map(|path| match is_linking && settings_paths::has_settings_name(path) {
                true => Some(unknown(path)),
                false => self.path(path, &ChangeReach::Existing),
            })
        })
    }

    /// Returns the reason to deny a program that runs in a folder with settings, or whose text names it.
    fn program(&self, program: &UnknownProgram) -> Option<String> {
        let is_code = |text: &str| text.contains([' ', '\n', '(', ';', '\'', '"']);
        let code = program.texts.iter().filter(|text| is_code(text));
        if code.into_iter().any(|text| settings_paths::is_named_in(text)) {
            return Some(
                "the text of a program names settings of an agent, and does not show what it does with them".to_owned(),
            );
        }
        let texts = program.texts.iter().skip(1).filter(|text| !is_code(text) && !text.contains(UNKNOWN));
        let named = texts.flat_map(|text| text.split(['=', ','])).find_map(|text| {
            let folders = || self.starts.folders.iter();
            let named = folders().filter_map(|folder| self.files.candidates(folder, text).ok()).flatten();
            let is_folder = |path: &PathBuf| settings_paths::position(path) == Some(SettingsPath::ClientFolder);
            let folder = named.into_iter().find(is_folder).map(|path| self.files.workspace.display(&path));
            let folder = folder.map(|folder| format!("a program whose changes are unknown names `{folder}`"));
            folder.or_else(|| folders().find_map(|folder| self.below(folder, text, &ChangeReach::File)))
        });
        let folders = program.folders.iter().flatten();
        named.or_else(|| {
            let is_settings = |path: &PathBuf| settings_paths::position(path) == Some(SettingsPath::ClientFolder);
            let starts = || self.starts.folders.iter();
            let mut found =
                folders.flat_map(|folder| starts().filter_map(move |start| self.files.candidates(start, folder).ok()));
            let folder = found.find_map(|found| found.into_iter().find(is_settings))?;
            let folder = self.files.workspace.display(&folder);
            Some(format!("the command runs a program in `{folder}`, where the settings of an agent are"))
        })
    }
}

/// Returns the folders that patterns stand for; none if there are too many.
fn matching_folders(heads: Vec<PathBuf>, patterns: &[&str]) -> Option<Vec<PathBuf>> {
    let mut folders = heads;
    for pattern in patterns {
        let mut next = Vec::new();
        for folder in folders {
            if !pattern.contains(WILD) {
                next.push(folder.join(pattern));
                continue;
            }
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if may_equal(pattern, &entry.file_name().to_string_lossy()) && entry.path().is_dir() {
                    next.push(entry.path());
                }
            }
        }
        if next.len() > MAX_FOLDERS {
            return None;
        }
        // A link leads to another folder.
        let resolved = next.iter().filter_map(|folder| folder.canonicalize().ok()).collect::<Vec<_>>();
        next.extend(resolved);
        next.sort();
        next.dedup();
        folders = next;
    }
    Some(folders)
}

fn unknown(path: &str) -> String {
    format!("the folder of `{path}` is unknown, and it may be settings of an agent; write its whole path")
}

fn without_quotes(text: &str) -> String {
    text.chars().filter(|c| !"\"'".contains(*c)).collect()
}
