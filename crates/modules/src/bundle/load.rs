//! Bundles from files, with what they include.

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

/// How deep bundles may include one another.
const MAX_DEPTH: usize = 8;
/// How many files a bundle may come to. Depth alone is no bound: each file may include many.
const MAX_FILES: usize = 256;

/// A bundle with everything that it includes, in order.
#[derive(Clone, Debug, Default)]
pub struct LoadedBundle {
    /// Settings of the session: those of the file that was loaded, else those of the last one it includes.
    pub session: SessionSettings,
    /// What the agent can do: every server, and the tools that no file leaves out.
    pub tools: Tools,
    /// Every model: those of the file that was loaded first.
    pub providers: Vec<ProviderEntry>,
    /// Every hook, with the place that it comes from.
    pub hooks: Vec<HookDefinition>,
    /// Every test, with the file that it comes from.
    pub tests: Vec<(PathBuf, BundleTest)>,
    /// Every file that was read, in the order in which it was, as it was named.
    pub files: Vec<PathBuf>,
    /// The folder from which relative names were looked for: the one that was current when it was loaded.
    base: PathBuf,
    /// What was in each of them; nothing for a text that is in no file.
    contents: Vec<Option<(Digest, HooksKey)>>,
    /// How often a file was included.
    includes: usize,
    /// Every name under `tools: only`, with the place that it comes from.
    named_tools: Vec<NamedTool>,
    /// What those files were when they were read, if somebody wants to trust them.
    pub(crate) pins: BTreeMap<PathBuf, Pin>,
}

/// A tool that a bundle names, and where.
#[derive(Clone, Debug)]
struct NamedTool {
    name: String,
    file: PathBuf,
    location: Location,
    source: Arc<str>,
}

/// As much of a bundle as tells where tools are named.
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

/// The SHA-256 of what is in a file.
type Digest = [u8; 32];

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileContent {
    /// As it was named.
    file: PathBuf,
    /// Where it is, whatever folder is current by now.
    pub(super) path: PathBuf,
    digest: Digest,
    hooks_key: HooksKey,
}

/// What a file says about hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HooksKey {
    /// Nothing, nor about anything else.
    BlankFile,
    /// Nothing.
    Missing,
    /// That there are none.
    Empty,
    /// Which there are.
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
        // An empty text is no YAML.
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
    /// What is no mistake, but looks like one: events that nobody emits, unless they are your own; programs that are not there; rules that
    /// answer where no answer counts; and hooks of one name.
    pub fn warnings(&self) -> Vec<BundleError> {
        let known = || catalog().iter().map(|spec| spec.name);
        let warning = |definition: &HookDefinition, event: &str| {
            let suggestion = did_you_mean(event, known()).filter(|_| !event.contains('*'))?;
            let is_known = event.parse::<EventName>().is_ok_and(|name| known().any(|known| known == name.canonical()));
            (!is_known).then(|| definition.problem_in("on", format!("there is no event `{event}`; {suggestion}")))
        };
        let events = self.hooks.iter().flat_map(|definition| {
            definition.entry.on.iter().flat_map(OneOrMany::all).map(move |event| (definition, event.as_str()))
        });
        let events = events.filter_map(|(definition, event)| warning(definition, event));
        events.chain(self.hooks.iter().filter_map(HookDefinition::warning)).chain(self.duplicate_names()).collect()
    }

    /// Hooks that cannot be told from an earlier one.
    fn duplicate_names(&self) -> impl Iterator<Item = BundleError> {
        let mut known = BTreeSet::new();
        // A module of the host says itself what its hooks are called, unless the bundle does.
        let is_named =
            |definition: &&HookDefinition| !definition.entry.is_host_module || definition.entry.name.is_some();
        let hooks = self.hooks.iter().filter(|definition| definition.entry.enabled != Some(false)).filter(is_named);
        hooks.filter_map(move |definition| {
            let name = definition.entry.shown_name();
            let problem = format!(
                "a hook before it is called `{name}`, too: an answer that lasts, such as `Allow always`, holds for both; \
                 give each a `name` of its own"
            );
            (!known.insert(name)).then(|| definition.problem_in("name", problem))
        })
    }

    /// Looks for names under `tools: only` that are none of these. Tools of MCP servers are known to their servers alone, so their names,
    /// `mcp__SERVER__TOOL`, are taken as they are.
    ///
    /// # Errors
    /// The first such name, with its place and a suggestion.
    pub fn check_tools(&self, known: &[String]) -> Result<(), BundleError> {
        let is_known = |tool: &&NamedTool| known.contains(&tool.name) || tool.name.starts_with("mcp__");
        let Some(NamedTool { name, file, location, source }) = self.named_tools.iter().find(|tool| !is_known(tool))
        else {
            return Ok(());
        };
        let hint = did_you_mean(name, known.iter().map(String::as_str));
        let hint = hint.unwrap_or_else(|| format!("there are {}, and `mcp__SERVER__TOOL`", known.join(", ")));
        Err(BundleError::at(*location, format!("there is no tool `{name}`; {hint}"), source, file))
    }

    /// The files that were read, and what was in them.
    pub(super) fn contents(&self) -> Vec<FileContent> {
        let all = self.files.iter().zip(self.paths()).zip(&self.contents);
        all.filter_map(|((file, path), contents)| {
            let (digest, hooks_key) = (*contents)?;
            Some(FileContent { file: file.clone(), path, digest, hooks_key })
        })
        .collect()
    }

    /// Where the files are that were read, whatever folder is current by now.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|file| self.base.join(file))
    }

    /// Loads it anew from where it was, also if another folder is current by now.
    ///
    /// # Errors
    /// As [`load`].
    pub fn reload(&self, source: BundleInput<'_>) -> Result<Self, BundleError> {
        load_from(self.base.clone(), source, ReadMode::Hosted)
    }

    /// `true` if there is a file that can change: a text that includes nothing has none.
    pub fn has_files(&self) -> bool {
        self.contents.iter().any(Option::is_some)
    }
}

/// Whether files are as they were read. What is in them counts, because clocks are coarse.
pub(super) fn are_current(contents: &[FileContent]) -> bool {
    // A few small files: this takes microseconds.
    contents.iter().all(|content| {
        read_regular(&content.path, MAX_BUNDLE_SIZE).is_ok_and(|text| digest_of(&text) == content.digest)
    })
}

/// Fails if a file had hooks before and says nothing about any now, or is empty and was not so before: some editors empty a file before they write it,
/// or write a part first, and for that moment the guards in it must not be gone. The error names the file.
pub(super) fn refuse_emptied(now: Vec<FileContent>, before: &[FileContent]) -> Result<(), BundleError> {
    for now in now {
        let before = before.iter().find(|before| before.path == now.path);
        let had_hooks = before.is_some_and(|before| before.hooks_key == HooksKey::Present);
        let what = match now.hooks_key {
            HooksKey::BlankFile if before.is_none_or(|before| before.hooks_key != HooksKey::BlankFile) => "it is empty",
            HooksKey::Missing if had_hooks => "its hooks are gone",
            _ => continue,
        };
        let problem = format!("{what}; write `hooks: []` if it is to have no hooks");
        return Err(BundleError::whole(&now.file, problem));
    }
    Ok(())
}

/// A hook, and where it stands.
#[derive(Clone, Debug)]
pub struct HookDefinition {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The folder of the file, wherever the process is by now.
    folder: PathBuf,
    /// Where in the file.
    pub location: Location,
    /// The hook.
    pub entry: HookEntry,
    /// What stands in the file, for whoever is told about a mistake.
    pub(crate) source: Arc<str>,
    /// The files that its program needs to be as they were trusted.
    pub(crate) pinned_files: Option<Arc<PinnedFiles>>,
    /// `true` if the bundle is the user's own, not one that comes with a project.
    pub(crate) is_own: bool,
}

impl HookDefinition {
    /// The folder of the file, in which programs run. It is absolute.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What looks like a mistake about what it does.
    fn warning(&self) -> Option<BundleError> {
        let entry = &self.entry;
        if let Some(program) = entry.named_program() {
            let message = match self.folder().join(program).metadata() {
                Err(_) => Some("there is no program `{program}`; programs are looked for from the bundle's folder"),
                Ok(found) if found.is_file() && !is_executable(&found) => {
                    Some("nobody may run the program `{program}`; `chmod +x` it, or name what runs it before it")
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
        is_observer.then(|| {
            self.problem_in("role", format!("`{answer}` does nothing with `role: observer`; leave `role` out"))
        })
    }

    /// Something that is wrong with it.
    pub(crate) fn problem(&self, message: impl Into<String>) -> BundleError {
        BundleError::at(self.location, message, &self.source, &self.file)
    }

    /// Why it is no hook.
    pub(super) fn invalid_entry(&self, invalid_entry: InvalidEntry) -> BundleError {
        BundleError::invalid_entry(self.location, invalid_entry, &self.source, &self.file)
    }

    /// Something that is wrong with what stands under a key of it.
    pub fn problem_in(&self, key: &str, message: impl Into<String>) -> BundleError {
        BundleError::at_key(self.location, key, message, &self.source, &self.file)
    }
}

/// Loads a bundle and what it includes.
///
/// # Errors
/// If a file cannot be read or is no bundle, or bundles include one another without an end.
pub fn load(file: &Path) -> Result<LoadedBundle, BundleError> {
    load_as(BundleInput::File(file), ReadMode::Plain)
}

/// Loads a bundle for a host that brings modules of its own: names that no module of ours has are left to it. Their hooks are
/// [foreign](super::HookKind::HostModule) ones, and the host registers them.
///
/// # Errors
/// As [`load`].
pub fn load_hosted(source: BundleInput<'_>) -> Result<LoadedBundle, BundleError> {
    load_as(source, ReadMode::Hosted)
}

/// Where a bundle is.
#[derive(Clone, Copy, Debug)]
pub enum BundleInput<'a> {
    /// In a file.
    File(&'a Path),
    /// In a text. The file is what it is called in errors; what it includes and runs is looked for from its folder.
    Text(&'a str, &'a Path),
}

/// Loads a bundle that somebody else has written, and what it includes, so that it can be [pinned](LoadedBundle::pin): from the very bytes that are
/// hashed, and from regular files of a bounded size only.
///
/// # Errors
/// As [`load`].
pub fn load_pinned(file: &Path) -> Result<LoadedBundle, BundleError> {
    load_as(BundleInput::File(file), ReadMode::Pinned)
}

/// INVARIANT: a relative name means the same file for as long as the bundle is used. A process may go to another folder, and the guards of
/// that one are not those that were loaded.
fn load_as(source: BundleInput<'_>, mode: ReadMode) -> Result<LoadedBundle, BundleError> {
    let (BundleInput::File(file) | BundleInput::Text(_, file)) = source;
    let base = match file.is_absolute() {
        true => PathBuf::new(),
        false => std::env::current_dir().map_err(|error| {
            BundleError::whole(file, format!("the folder that it is in cannot be told: {error}; name its whole path"))
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

/// How files are read.
#[derive(Clone, Copy)]
enum ReadMode {
    /// As they are: the person has named them.
    Plain,
    /// The same, for a host that brings modules of its own.
    Hosted,
    /// With care, and pinned.
    Pinned,
}

impl ReadMode {
    fn read(self, file: &Path, pins: &mut BTreeMap<PathBuf, Pin>) -> std::io::Result<String> {
        match self {
            Self::Plain | Self::Hosted => read_regular_text(file, MAX_BUNDLE_SIZE),
            Self::Pinned => {
                let (text, absolute, pin) = read_pinned(file)?;
                match pins.insert(absolute, pin.clone()) {
                    // Included twice, it would be pinned once: both have to be the same.
                    Some(before) if before != pin => Err(std::io::Error::other("it changes while it is read")),
                    _ => Ok(text),
                }
            }
        }
    }
}

fn add(loaded: &mut LoadedBundle, file: &Path, above: &mut Vec<PathBuf>, mode: ReadMode) -> Result<(), BundleError> {
    let unreadable = |error: std::io::Error| BundleError::whole(file, format!("it cannot be read: {error}"));
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
            return Err(problem(format!("`{}` includes this file, without an end", path.display())));
        }
        loaded.includes += 1;
        if loaded.includes >= MAX_FILES {
            return Err(problem(format!("a bundle comes to {MAX_FILES} files at most")));
        }
        // Its hooks would ask and run twice. It is pinned by this name, too.
        if loaded.paths().any(|file| file.canonicalize().is_ok_and(|file| file == real)) {
            mode.read(&absolute, &mut loaded.pins).map_err(|error| problem(format!("it cannot be read: {error}")))?;
            continue;
        }
        if above.len() >= MAX_DEPTH {
            return Err(problem(format!("bundles include one another more than {MAX_DEPTH} times")));
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
