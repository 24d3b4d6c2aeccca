//! The files that a tool call changes, or may change.

use std::path::{Path, PathBuf};

use amplifier_core::EventData;
use amplifier_process::HOME_VARIABLE;

use super::Scope;
use super::overlap::{self, PathPattern};
use crate::shell::{self, ChangeExtent, FileChange, FileReference, ProgramRun};

/// Tools that change no file. Calls of sub-agents are events of their own.
const READING: [&str; 5] = ["Read", "Glob", "Grep", "Todo", "Task"];
/// Tools that change one file, named by `file_path`.
const WRITING: [&str; 3] = ["Write", "Edit", "MultiEdit"];

/// Maximum number of changes, and of files below a folder, that are compared with the patterns; more count as a match.
const CHANGES: usize = 1_000;
const FILES: usize = 50_000;

/// Maximum number of earlier changes that are compared with the source of a copy.
const EARLIER: usize = 64;

/// The globs of one call of `changes`.
#[derive(Debug)]
pub(super) struct ChangedPaths<'g, 's> {
    patterns: Vec<PathPattern>,
    /// Texts by which programs name such files.
    needles: Vec<&'g str>,
    scope: &'s Scope,
}

impl<'g, 's> ChangedPaths<'g, 's> {
    pub(super) fn new(globs: impl IntoIterator<Item = &'g str>, scope: &'s Scope) -> Self {
        let globs: Vec<&'g str> = globs.into_iter().collect();
        let patterns = globs.iter().flat_map(|glob| PathPattern::from_glob(glob, scope.workspace()));
        Self { patterns: patterns.collect(), needles: globs.iter().map(|glob| overlap::needle(glob)).collect(), scope }
    }

    /// `true` if a tool call changes one of the files, or is not known to leave all of them alone.
    pub(super) fn may_be_changed_by(&self, data: &EventData) -> bool {
        match data.text("tool_name") {
            Some(tool) if READING.contains(&tool) => false,
            Some(tool) if WRITING.contains(&tool) => {
                let path = data.text_at("/tool_input/file_path");
                path.is_none_or(|path| self.locations(path).iter().any(|file| self.contains(file)))
            }
            Some("Bash") => data.text_at("/tool_input/command").is_none_or(|command| self.command(command)),
            _ => true,
        }
    }

    fn command(&self, command: &str) -> bool {
        let (analysis, effects) = shell::inspect(command);
        if analysis.readonly {
            return false;
        }
        !analysis.analysable
            || effects.changes.len() + effects.unknown_programs.len() > CHANGES
            || effects
                .changes
                .iter()
                .enumerate()
                .any(|(at, change)| self.change(change, effects.changes.get(..at).unwrap_or_default()))
            || effects.unknown_programs.iter().any(|program| self.program(program))
    }

    /// `true` if a change may affect the files; `before` are the earlier changes of the command.
    fn change(&self, change: &FileChange, before: &[FileChange]) -> bool {
        let Some(paths) = &change.file.paths else { return true };
        paths.iter().any(|path| match self.changed_locations(path) {
            None => true,
            Some(places) => places.into_iter().any(|place| match &change.file.found {
                Some(pattern) => self.existing(&place.join(pattern)),
                None => self.extent(place, &change.extent, before),
            }),
        })
    }

    fn extent(&self, place: PathPattern, extent: &ChangeExtent, before: &[FileChange]) -> bool {
        match extent {
            ChangeExtent::File => self.contains(&place),
            ChangeExtent::Anything if place.path().is_some_and(|path| Path::new(&path).is_file()) => {
                self.contains(&place)
            }
            ChangeExtent::Anything => self.may_contain(&place),
            ChangeExtent::Existing => self.existing(&place),
            ChangeExtent::Copy(from) => self.contains(&place) || self.copied(&place, from, before),
            ChangeExtent::Repository => {
                let workspace = PathPattern::from_file(self.scope.workspace()).below();
                let is_here = place.overlaps(&workspace);
                if is_here { self.contains(&workspace) } else { self.may_contain(&place) }
            }
        }
    }

    /// `true` if new files in a folder may match. A relative glob is about folders of the workspace.
    fn may_contain(&self, folder: &PathPattern) -> bool {
        let files = folder.clone().below();
        let patterns = self.patterns.iter().filter(|pattern| !pattern.is_elsewhere || self.contains(folder));
        patterns.into_iter().any(|pattern| pattern.clone().below().overlaps(&files))
    }

    /// `true` if a path matches one of the patterns, or is below a folder that does.
    fn contains(&self, path: &PathPattern) -> bool {
        self.patterns.iter().any(|pattern| pattern.clone().below().overlaps(path))
    }

    /// `true` if files that exist at a place or below match. Folders on the way to a pattern count without a look at the files.
    fn existing(&self, place: &PathPattern) -> bool {
        let below = place.clone().below();
        self.patterns.iter().any(|pattern| {
            let files = pattern.clone().below();
            let base = pattern.base();
            let is_within = files.overlaps(&place.base());
            let is_above = place.is_plain() && self.has_own_folder(&base) && below.overlaps(&base);
            let matches = |file: &PathPattern| below.overlaps(file) && files.overlaps(file);
            is_within || is_above || files.overlaps(&below) && any_file(&place.base(), &base, matches)
        })
    }

    /// `true` if a pattern begins with a folder other than those that contain the workspace.
    fn has_own_folder(&self, base: &PathPattern) -> bool {
        base.path().is_some_and(|base| !self.scope.workspace().starts_with(base))
    }

    /// `true` if a copy of a file or folder has files that match.
    fn copied(&self, to: &PathPattern, from: &FileReference, before: &[FileChange]) -> bool {
        if !self.contains(&to.clone().below()) {
            return false;
        }
        let Some(target) = to.path() else { return true };
        let Some(paths) = from.paths.as_ref().filter(|_| from.found.is_none()) else { return true };
        if before.len() > EARLIER || paths.iter().any(|path| before.iter().any(|change| self.fills(change, path))) {
            // The files to copy do not exist yet.
            return true;
        }
        paths.iter().any(|path| {
            let sources =
                self.changed_locations(path).and_then(|places| places.iter().map(PathPattern::path).collect());
            let Some(sources): Option<Vec<String>> = sources else { return true };
            sources.iter().any(|source| {
                let is_copied = |file: &Path| {
                    let rest = file.strip_prefix(source).unwrap_or(file);
                    self.contains(&PathPattern::from_file(&Path::new(&target).join(rest)))
                };
                any_file_below(Path::new(source), is_copied)
            })
        })
    }

    /// `true` if a change may create files in a folder.
    fn fills(&self, change: &FileChange, folder: &str) -> bool {
        let Some(folders) = self.changed_locations(folder) else { return true };
        let Some(paths) = &change.file.paths else { return true };
        let is_within = |path: &String| {
            let Some(places) = self.changed_locations(path) else { return true };
            places.iter().any(|place| match change.extent {
                ChangeExtent::Anything | ChangeExtent::Repository => {
                    folders.iter().any(|folder| folder.clone().below().overlaps(&place.clone().below()))
                }
                ChangeExtent::File | ChangeExtent::Copy(_) => {
                    folders.iter().any(|folder| folder.clone().join("*").below().overlaps(place))
                }
                ChangeExtent::Existing => false,
            })
        };
        paths.iter().any(is_within)
    }

    /// `true` if a program of unknown effect runs among the files, or names them.
    fn program(&self, program: &ProgramRun) -> bool {
        let Some(folders) = &program.folders else { return true };
        let is_inside = |path: &String| {
            // In the folder of a pattern, any file may be one of those meant.
            let places = self.locations(path);
            places.iter().any(|place| self.contains(&place.clone().join("…")))
        };
        let is_code = |text: &str| text.contains([' ', '\n', '(', ';', '\'', '"']);
        let names = |text: &String| match is_code(text) {
            true => self.needles.iter().any(|needle| text.contains(needle)),
            false => parts(text).any(|path| {
                folders.iter().any(|folder| {
                    let path = if path.starts_with(['/', '~']) { path.to_owned() } else { format!("{folder}/{path}") };
                    self.locations(&path).iter().any(|file| self.contains(file))
                })
            }),
        };
        let files = program.files.iter().flat_map(|file| file.paths.iter().flatten());
        folders.iter().any(is_inside)
            || program.texts.iter().any(names)
            || files
                .filter(|path| !is_code(path))
                .any(|path| self.locations(path).iter().any(|file| self.contains(file)))
    }

    /// Returns the places that a changed path may be; `None` if it may be anywhere.
    fn changed_locations(&self, path: &str) -> Option<Vec<PathPattern>> {
        let is_known = !expand_home(path).is_some_and(|path| path.contains(['$', '`', '…', '{', '\\']));
        is_known.then(|| self.locations(path)).filter(|places| !places.is_empty())
    }

    /// Returns a path as written and with links resolved; empty if the home folder is needed and unknown.
    fn locations(&self, path: &str) -> Vec<PathPattern> {
        let Some(path) = expand_home(path) else { return Vec::new() };
        let written = PathPattern::from_path(&self.scope.workspace().join(&path).to_string_lossy());
        let base = if written.is_plain() { Some(path) } else { written.base().path() };
        let resolved = base.and_then(|base| self.scope.resolve(&base).ok()).map(|base| written.rebase(&base));
        resolved.into_iter().chain([written]).collect()
    }
}

/// Returns the parts of an argument that may be a path: `--out=x`, `-Cx`, `a:b`.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let attached = text.strip_prefix('-').and_then(|option| option.get(1..));
    let assigned = text.split(['=', ':', ',']).skip(1);
    std::iter::once(text).chain(attached).chain(assigned).filter(|part| !part.is_empty() && part.len() < 4_096)
}

/// Returns the path with the home folder; `None` if the folder is unknown.
fn expand_home(path: &str) -> Option<String> {
    let forms = ["~/", "$HOME/", "${HOME}/", "\"$HOME\"/", "\"${HOME}\"/"];
    let bare = matches!(path, "~" | "$HOME" | "${HOME}" | "\"$HOME\"").then_some("");
    let quoted = path.strip_prefix("\"$HOME/").and_then(|rest| rest.strip_suffix('"'));
    let rest = forms.iter().find_map(|form| path.strip_prefix(form)).or(bare).or(quoted);
    match rest {
        Some(rest) => {
            let home = std::env::var_os(HOME_VARIABLE).map(PathBuf::from).filter(|home| home.is_absolute())?;
            Some(home.join(rest).to_string_lossy().into_owned())
        }
        None if path.starts_with('~') => None,
        None => Some(path.to_owned()),
    }
}

/// `true` if a file below both folders passes a test, or if there are too many.
fn any_file(one: &PathPattern, other: &PathPattern, test: impl Fn(&PathPattern) -> bool) -> bool {
    let (Some(one), Some(other)) = (one.path(), other.path()) else { return true };
    let begin = if Path::new(&other).starts_with(&one) { other } else { one };
    any_file_below(Path::new(&begin), |file| test(&PathPattern::from_file(file)))
}

/// `true` if a file below a folder, or the file itself, passes a test; also if there are too many, or they cannot be read.
fn any_file_below(begin: &Path, test: impl Fn(&Path) -> bool) -> bool {
    let mut open = vec![begin.to_owned()];
    let mut count = 0;
    while let Some(path) = open.pop() {
        count += 1;
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if count > FILES || test(&path) {
            return true;
        }
        if metadata.is_dir() {
            let Ok(entries) = std::fs::read_dir(&path) else { return true };
            open.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    false
}
