//! A bundle with its includes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::HookRole;
use amplifier_process::files::{is_executable, read_regular};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Location;
use sha2::{Digest as _, Sha256};

use super::position::find_part;
use super::{
    Bundle, BundleError, BundleTest, HookEntry, InvalidEntry, MistakeCode, ProviderEntry, SessionSettings, Tools,
};
use crate::condition::{ConditionError, did_you_mean};
use crate::trust::{MAX_BUNDLE_SIZE, Pin, PinnedFiles};

/// A bundle with all its includes, in order.
#[derive(Clone, Debug, Default)]
pub struct LoadedBundle {
    /// Session settings: those of the loaded file, then those of the last include.
    pub session: SessionSettings,
    /// Tools: all servers, and the tools that every file allows.
    pub tools: Tools,
    /// All models; those of the loaded file come first.
    pub providers: Vec<ProviderEntry>,
    /// All hooks, with their source positions.
    pub hooks: Vec<HookDefinition>,
    /// All tests, with their files.
    pub tests: Vec<(PathBuf, BundleTest)>,
    /// All files in reading order, by the names used.
    pub files: Vec<PathBuf>,
    /// Base folder of relative names: the current folder at the time of loading.
    pub(super) base: PathBuf,
    /// Content of each file; `None` for a text without a file.
    pub(super) contents: Vec<Option<(Digest, HooksKey)>>,
    pub(super) includes: usize,
    /// Names under `tools: only`, with their source positions.
    pub(super) named_tools: Vec<NamedTool>,
    /// Canonical names under `events`.
    pub(super) declared_events: BTreeSet<String>,
    /// Positions of the tests, with the text of their files.
    pub(super) test_locations: Vec<(Location, Arc<str>)>,
    /// Pins of the files from the time of reading, for a trust decision.
    pub(crate) pins: BTreeMap<PathBuf, Pin>,
}

#[derive(Clone, Debug)]
pub(super) struct NamedTool {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) location: Location,
    pub(super) source: Arc<str>,
}

pub(super) type Digest = [u8; 32];

/// The content of a file at the time of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileContent {
    file: PathBuf,
    pub(super) path: PathBuf,
    digest: Digest,
    hooks_key: HooksKey,
}

/// The state of the `hooks` key in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HooksKey {
    BlankFile,
    /// No `hooks` key.
    Missing,
    /// An empty list.
    Empty,
    /// At least one hook.
    Present,
}

impl HooksKey {
    pub(super) fn from_bundle(bundle: &Bundle, text: &str) -> Self {
        #[derive(Deserialize)]
        struct HookList {
            hooks: Option<Vec<IgnoredAny>>,
        }
        if !bundle.hooks.is_empty() {
            return Self::Present;
        }
        // An empty text is not valid YAML.
        match serde_saphyr::from_str::<Option<HookList>>(text) {
            Ok(Some(HookList { hooks: Some(_) })) => Self::Empty,
            Ok(Some(HookList { hooks: None })) => Self::Missing,
            Ok(None) | Err(_) => Self::BlankFile,
        }
    }
}

pub(super) fn digest_of(text: &[u8]) -> Digest {
    Sha256::digest(text).into()
}

impl LoadedBundle {
    /// Returns warnings about probable mistakes: missing programs, programs that load code from the workspace, rules with an action in the role of an
    /// observer, and duplicate names.
    pub fn warnings(&self) -> Vec<BundleError> {
        let of_hooks = |definition: &HookDefinition| [definition.warning(), definition.workspace_code_warning()];
        self.hooks.iter().flat_map(of_hooks).flatten().chain(self.duplicate_names()).collect()
    }

    fn duplicate_names(&self) -> impl Iterator<Item = BundleError> {
        let mut known = BTreeSet::new();
        // A host module names its own hooks, unless the bundle does.
        let is_named =
            |definition: &&HookDefinition| !definition.entry.is_host_module || definition.entry.name.is_some();
        let hooks = self.hooks.iter().filter(|definition| definition.entry.enabled != Some(false)).filter(is_named);
        hooks.filter_map(move |definition| {
            let name = definition.entry.shown_name();
            let problem =
                format!("duplicate hook name `{name}`: approval rules apply to both hooks; give each its own `name`");
            (!known.insert(name)).then(|| definition.problem_in("name", problem).coded(MistakeCode::DuplicateName))
        })
    }

    /// Returns the names under `tools: only` that are not known tools. Names of the form `mcp__SERVER__TOOL` are not checked, because only the servers
    /// know their tools.
    pub(super) fn unknown_tools(&self, known: &[&str]) -> Vec<BundleError> {
        let is_known = |tool: &&NamedTool| known.contains(&tool.name.as_str()) || tool.name.starts_with("mcp__");
        let unknown = self.named_tools.iter().filter(|tool| !is_known(tool));
        let mistake = |NamedTool { name, file, location, source }: &NamedTool| {
            let hint = did_you_mean(name, known.iter().copied());
            let hint = hint.unwrap_or_else(|| format!("expected one of {}, or `mcp__SERVER__TOOL`", known.join(", ")));
            let error = BundleError::at(*location, format!("unknown tool `{name}`"), source, file);
            error.coded(MistakeCode::UnknownTool).helped(Some(hint))
        };
        unknown.map(mistake).collect()
    }

    pub(super) fn contents(&self) -> Vec<FileContent> {
        let all = self.files.iter().zip(self.paths()).zip(&self.contents);
        all.filter_map(|((file, path), contents)| {
            let (digest, hooks_key) = (*contents)?;
            Some(FileContent { file: file.clone(), path, digest, hooks_key })
        })
        .collect()
    }

    /// Returns the absolute paths of all files.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|file| self.base.join(file))
    }

    /// `true` if the bundle has a file that can change: a text without includes has none.
    pub fn has_files(&self) -> bool {
        self.contents.iter().any(Option::is_some)
    }
}

/// `true` if all files have the content from the time of reading. Compares content, because file times are coarse.
pub(super) fn are_current(contents: &[FileContent]) -> bool {
    // A few small files: this takes microseconds.
    contents.iter().all(|content| {
        read_regular(&content.path, MAX_BUNDLE_SIZE).is_ok_and(|text| digest_of(&text) == content.digest)
    })
}

/// Fails if a file has lost its `hooks` key or has become empty: some editors empty a file before they write to it, or write a part first, and guards
/// must stay active during that moment.
pub(super) fn refuse_emptied(now: Vec<FileContent>, before: &[FileContent]) -> Result<(), BundleError> {
    for now in now {
        let before = before.iter().find(|before| before.path == now.path);
        let had_hooks = before.is_some_and(|before| before.hooks_key == HooksKey::Present);
        let what = match now.hooks_key {
            HooksKey::BlankFile if before.is_none_or(|before| before.hooks_key != HooksKey::BlankFile) => {
                "the file is empty"
            }
            HooksKey::Missing if had_hooks => "the `hooks` key is missing",
            _ => continue,
        };
        let problem = format!("{what}; write `hooks: []` for a bundle without hooks");
        return Err(BundleError::whole(&now.file, problem));
    }
    Ok(())
}

/// A hook entry, with its source position.
#[derive(Clone, Debug)]
pub struct HookDefinition {
    /// File name used by the bundle.
    pub file: PathBuf,
    pub(super) folder: PathBuf,
    /// Position in the file.
    pub(crate) location: Location,
    /// The entry.
    pub entry: HookEntry,
    /// Text of the file, for error messages.
    pub(crate) source: Arc<str>,
    /// Files that must be unchanged when the hook's program starts.
    pub(crate) pinned_files: Option<Arc<PinnedFiles>>,
    /// `true` if the bundle belongs to the user, not to a project.
    pub(crate) is_own: bool,
}

impl HookDefinition {
    /// Returns the absolute folder of the file, where relative paths of the hook begin.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the line in the file, from 1.
    pub fn line(&self) -> u64 {
        self.location.line()
    }

    fn warning(&self) -> Option<BundleError> {
        let entry = &self.entry;
        if let Some(program) = entry.named_program() {
            let message = match self.folder().join(program).metadata() {
                Err(_) => Some("program `{program}` not found; paths are relative to the bundle's folder"),
                Ok(found) if found.is_file() && !is_executable(&found) => {
                    Some("program `{program}` is not executable; run `chmod +x`, or name its interpreter first")
                }
                Ok(_) => None,
            };
            if let Some(message) = message {
                return Some(self.problem(message.replace("{program}", program)).coded(MistakeCode::Program));
            }
        }
        let answers = [
            ("deny", entry.deny.is_some()),
            ("ask", entry.ask.is_some()),
            ("modify", entry.modify.is_some()),
            ("inject", entry.inject.is_some()),
        ];
        let (answer, _) = answers.into_iter().find(|(_, given)| *given)?;
        let is_observer = entry.role == Some(HookRole::Observer);
        let problem = || format!("`{answer}` has no effect with `role: observer`; remove `role`");
        is_observer.then(|| self.problem_in("role", problem()).coded(MistakeCode::NoEffect))
    }

    pub(crate) fn problem(&self, message: impl Into<String>) -> BundleError {
        BundleError::at(self.location, message, &self.source, &self.file)
    }

    pub(super) fn invalid_entry(&self, invalid_entry: InvalidEntry) -> BundleError {
        BundleError::invalid_entry(self.location, invalid_entry, &self.source, &self.file)
    }

    /// Creates an error at the position of a key.
    pub fn problem_in(&self, key: &str, message: impl Into<String>) -> BundleError {
        BundleError::at_key(self.location, key, message, &self.source, &self.file)
    }

    /// Creates an error for a part of an expression or template, at its position in the file if it is found there.
    pub(super) fn expression_error(&self, field: &str, error: &ConditionError) -> BundleError {
        let key = field.split('.').next().unwrap_or_default();
        let coded = |message: String| self.problem_in(key, message).coded(MistakeCode::Expression);
        match find_part(self.location, field, error.source_text(), error.span(), &self.source) {
            Some((line, column, text)) => {
                let help = error.help().map(str::to_owned);
                coded(error.message().to_owned()).helped(help).moved(line, column, text)
            }
            // With the line of the expression.
            None => coded(format!("{error}\n  in `{field}`")),
        }
    }
}
