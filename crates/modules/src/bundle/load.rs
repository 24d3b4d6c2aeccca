//! Loading of bundles with their includes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::{EventName, HookRole, catalog};
use amplifier_process::files::{is_executable, read_regular, read_regular_text};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::{Location, Spanned};
use sha2::{Digest as _, Sha256};

use super::{
    Bundle, BundleError, BundleTest, HookEntry, HostModules, InvalidEntry, OneOrMany, ProviderEntry, SessionSettings,
    Tools,
};
use crate::condition::did_you_mean;
use crate::trust::{MAX_BUNDLE_SIZE, Pin, PinnedFiles, read_pinned};

const MAX_DEPTH: usize = 8;
/// Maximum number of files. A depth limit alone is not enough: each file may include many.
const MAX_FILES: usize = 256;

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
    base: PathBuf,
    /// Content of each file; `None` for a text without a file.
    contents: Vec<Option<(Digest, HooksKey)>>,
    includes: usize,
    /// Names under `tools: only`, with their source positions.
    named_tools: Vec<NamedTool>,
    /// Pins of the files from the time of reading, for a trust decision.
    pub(crate) pins: BTreeMap<PathBuf, Pin>,
}

#[derive(Clone, Debug)]
struct NamedTool {
    name: String,
    file: PathBuf,
    location: Location,
    source: Arc<str>,
}

/// The part of a bundle with the positions of tool names.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolLocations {
    tools: ToolListLocations,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolListLocations {
    only: Option<Vec<Spanned<String>>>,
}

type Digest = [u8; 32];

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
enum HooksKey {
    BlankFile,
    /// No `hooks` key.
    Missing,
    /// An empty list.
    Empty,
    /// At least one hook.
    Present,
}

impl HooksKey {
    fn from_bundle(bundle: &Bundle, text: &str) -> Self {
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

fn digest_of(text: &[u8]) -> Digest {
    Sha256::digest(text).into()
}

impl LoadedBundle {
    /// Returns warnings about probable mistakes: unknown events, missing programs, rules with an action in the role of an observer, and duplicate
    /// names.
    pub fn warnings(&self) -> Vec<BundleError> {
        let known = || catalog().iter().map(|spec| spec.name);
        let warning = |definition: &HookDefinition, event: &str| {
            let suggestion = did_you_mean(event, known()).filter(|_| !event.contains('*'))?;
            let is_known = event.parse::<EventName>().is_ok_and(|name| known().any(|known| known == name.canonical()));
            (!is_known).then(|| definition.problem_in("on", format!("unknown event `{event}`; {suggestion}")))
        };
        let events = self.hooks.iter().flat_map(|definition| {
            definition.entry.on.iter().flat_map(OneOrMany::all).map(move |event| (definition, event.as_str()))
        });
        let events = events.filter_map(|(definition, event)| warning(definition, event));
        events.chain(self.hooks.iter().filter_map(HookDefinition::warning)).chain(self.duplicate_names()).collect()
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
            (!known.insert(name)).then(|| definition.problem_in("name", problem))
        })
    }

    /// Checks the names under `tools: only` against the known tools. Names of the form `mcp__SERVER__TOOL` are not checked, because only the servers
    /// know their tools.
    ///
    /// # Errors
    /// The first unknown name, with its position and a suggestion.
    pub fn check_tools(&self, known: &[String]) -> Result<(), BundleError> {
        let is_known = |tool: &&NamedTool| known.contains(&tool.name) || tool.name.starts_with("mcp__");
        let Some(NamedTool { name, file, location, source }) = self.named_tools.iter().find(|tool| !is_known(tool))
        else {
            return Ok(());
        };
        let hint = did_you_mean(name, known.iter().map(String::as_str));
        let hint = hint.unwrap_or_else(|| format!("expected one of {}, or `mcp__SERVER__TOOL`", known.join(", ")));
        Err(BundleError::at(*location, format!("unknown tool `{name}`; {hint}"), source, file))
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

    /// Loads the bundle again from its original folder, even if the current folder has changed.
    ///
    /// # Errors
    /// As [`load`].
    pub fn reload(&self, source: BundleInput<'_>) -> Result<Self, BundleError> {
        load_from(self.base.clone(), source, ReadMode::Hosted)
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
    folder: PathBuf,
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
    /// Returns the absolute folder of the file, in which programs run.
    pub fn folder(&self) -> &Path {
        &self.folder
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
                return Some(self.problem(message.replace("{program}", program)));
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
        is_observer
            .then(|| self.problem_in("role", format!("`{answer}` has no effect with `role: observer`; remove `role`")))
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
}

/// Loads a bundle and its includes.
///
/// # Errors
/// If a file cannot be read or is not a valid bundle, or includes form a cycle.
pub fn load(file: &Path) -> Result<LoadedBundle, BundleError> {
    load_as(BundleInput::File(file), ReadMode::Plain)
}

/// Loads a bundle for a host with modules of its own: unknown module names become [host modules](super::HookKind::HostModule), which the host
/// registers.
///
/// # Errors
/// As [`load`].
pub fn load_hosted(source: BundleInput<'_>) -> Result<LoadedBundle, BundleError> {
    load_as(source, ReadMode::Hosted)
}

/// The source of a bundle.
#[derive(Clone, Copy, Debug)]
pub enum BundleInput<'a> {
    /// A file.
    File(&'a Path),
    /// A text. The file name is for errors; includes and programs are relative to its folder.
    Text(&'a str, &'a Path),
}

/// Loads a bundle that comes with a project, so that it can be [pinned](LoadedBundle::pin): from exactly the bytes that are hashed, and only from
/// regular files of limited size.
///
/// # Errors
/// As [`load`].
pub fn load_pinned(file: &Path) -> Result<LoadedBundle, BundleError> {
    load_as(BundleInput::File(file), ReadMode::Pinned)
}

/// INVARIANT: a relative name means the same file for as long as the bundle is used, even if the process changes to another folder.
fn load_as(source: BundleInput<'_>, mode: ReadMode) -> Result<LoadedBundle, BundleError> {
    let (BundleInput::File(file) | BundleInput::Text(_, file)) = source;
    let base = match file.is_absolute() {
        true => PathBuf::new(),
        false => std::env::current_dir().map_err(|error| {
            BundleError::whole(file, format!("current folder unknown: {error}; use an absolute path"))
        })?,
    };
    load_from(base, source, mode)
}

fn load_from(base: PathBuf, source: BundleInput<'_>, mode: ReadMode) -> Result<LoadedBundle, BundleError> {
    let mut loaded = LoadedBundle { base, ..LoadedBundle::default() };
    match source {
        BundleInput::File(file) => add(&mut loaded, file, &mut Vec::new(), mode)?,
        BundleInput::Text(text, file) => {
            let mut above = vec![loaded.base.join(file)];
            add_text(&mut loaded, text, file, &mut above, mode)?;
            if let Some(own) = loaded.contents.last_mut() {
                *own = None;
            }
        }
    }
    Ok(loaded)
}

#[derive(Clone, Copy)]
enum ReadMode {
    /// Without pins: files that the user has named.
    Plain,
    /// Without pins, for a host with modules of its own.
    Hosted,
    /// With pins: files of a project.
    Pinned,
}

impl ReadMode {
    fn read(self, file: &Path, pins: &mut BTreeMap<PathBuf, Pin>) -> std::io::Result<String> {
        match self {
            Self::Plain | Self::Hosted => read_regular_text(file, MAX_BUNDLE_SIZE),
            Self::Pinned => {
                let (text, absolute, pin) = read_pinned(file)?;
                match pins.insert(absolute, pin.clone()) {
                    // A file that is included twice has one pin, so both reads must be equal.
                    Some(before) if before != pin => Err(std::io::Error::other("the file changes while being read")),
                    _ => Ok(text),
                }
            }
        }
    }
}

fn add(loaded: &mut LoadedBundle, file: &Path, above: &mut Vec<PathBuf>, mode: ReadMode) -> Result<(), BundleError> {
    let unreadable = |error: std::io::Error| BundleError::whole(file, format!("the file cannot be read: {error}"));
    let absolute = loaded.base.join(file);
    let text = mode.read(&absolute, &mut loaded.pins).map_err(unreadable)?;
    let real = absolute.canonicalize().map_err(unreadable)?;
    above.push(real);
    add_text(loaded, &text, file, above, mode)?;
    above.pop();
    Ok(())
}

fn add_text(
    loaded: &mut LoadedBundle,
    text: &str,
    file: &Path,
    above: &mut Vec<PathBuf>,
    mode: ReadMode,
) -> Result<(), BundleError> {
    let foreign = match mode {
        ReadMode::Hosted => HostModules::Allowed,
        ReadMode::Plain | ReadMode::Pinned => HostModules::Refused,
    };
    let bundle = Bundle::parse_with(text, file, foreign)?;
    for include in &bundle.includes {
        let path = file.parent().unwrap_or(Path::new(".")).join(&include.value);
        let absolute = loaded.base.join(&path);
        let problem = |message: String| BundleError::at(include.referenced, message, text, file);
        let real = absolute
            .canonicalize()
            .map_err(|error| problem(format!("`{}` cannot be read: {error}", path.display())))?;
        if above.contains(&real) {
            return Err(problem(format!("`{}` includes this file: a cycle of includes", path.display())));
        }
        loaded.includes += 1;
        if loaded.includes >= MAX_FILES {
            return Err(problem(format!("too many files: a bundle has at most {MAX_FILES}")));
        }
        // Hooks of a repeated include would run twice. The file is pinned by this name, too.
        if loaded.paths().any(|file| file.canonicalize().is_ok_and(|file| file == real)) {
            mode.read(&absolute, &mut loaded.pins)
                .map_err(|error| problem(format!("the file cannot be read: {error}")))?;
            continue;
        }
        if above.len() >= MAX_DEPTH {
            return Err(problem(format!("includes are nested more than {MAX_DEPTH} levels deep")));
        }
        add(loaded, &path, above, mode)?;
    }
    let hooks_key = HooksKey::from_bundle(&bundle, text);
    let source: Arc<str> = text.into();
    if bundle.tools.only.is_some() {
        let locations: ToolLocations =
            serde_saphyr::from_str(text).map_err(|error| BundleError::yaml(&error, text, file))?;
        let named = locations.tools.only.into_iter().flatten();
        loaded.named_tools.extend(named.map(|Spanned { value: name, referenced: location, .. }| NamedTool {
            name,
            file: file.to_owned(),
            location,
            source: source.clone(),
        }));
    }
    loaded.session.overlay(bundle.session);
    let absolute = loaded.base.join(file);
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let mut tools = bundle.tools;
    tools.mcp = tools.mcp.into_iter().map(|(name, server)| (name, server.resolve_from(folder))).collect();
    loaded.tools.join(tools);
    let providers = bundle.providers.into_iter().map(|provider| {
        let script = provider.script.map(|script| folder.join(script).to_string_lossy().into_owned());
        ProviderEntry { script, ..provider }
    });
    loaded.providers.splice(0..0, providers);
    loaded.hooks.extend(bundle.hooks.into_iter().map(|Spanned { value: entry, referenced: location, .. }| {
        HookDefinition {
            file: file.to_owned(),
            folder: folder.to_owned(),
            location,
            entry,
            source: source.clone(),
            pinned_files: None,
            is_own: !matches!(mode, ReadMode::Pinned),
        }
    }));
    loaded.tests.extend(bundle.tests.into_iter().map(|case| (file.to_owned(), case.value)));
    loaded.files.push(file.to_owned());
    loaded.contents.push(Some((digest_of(text.as_bytes()), hooks_key)));
    Ok(())
}
