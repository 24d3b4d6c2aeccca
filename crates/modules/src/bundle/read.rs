//! Reading of bundles with their includes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use amplifier_core::EventName;
use amplifier_process::files::read_regular_text;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::load::{HooksKey, NamedTool, digest_of};
use super::{Bundle, BundleError, HookDefinition, HostModules, LoadedBundle, MistakeCode, ProviderEntry};
use crate::trust::{MAX_BUNDLE_SIZE, Pin, read_pinned};

const MAX_DEPTH: usize = 8;
/// Maximum number of files. A depth limit alone is not enough: each file may include many.
const MAX_FILES: usize = 256;

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

/// Loads a bundle without the parts that have mistakes. Returns all mistakes.
pub(super) fn load_all(file: &Path) -> (LoadedBundle, Vec<BundleError>) {
    let base = match base_of(file) {
        Ok(base) => base,
        Err(error) => return (LoadedBundle::default(), vec![error]),
    };
    let mut reader = Reader::new(base, ReadMode::Plain);
    reader.mistakes = Some(Vec::new());
    // Every mistake is collected, so none ends the reading.
    if let Err(error) = reader.add(file) {
        reader.mistakes.get_or_insert_default().push(error);
    }
    (reader.loaded, reader.mistakes.unwrap_or_default())
}

impl LoadedBundle {
    /// Loads the bundle again from its original folder, even if the current folder has changed.
    ///
    /// # Errors
    /// As [`load`].
    pub fn reload(&self, source: BundleInput<'_>) -> Result<Self, BundleError> {
        load_from(self.base.clone(), source, ReadMode::Hosted)
    }
}

/// INVARIANT: a relative name means the same file for as long as the bundle is used, even if the process changes to another folder.
fn load_as(source: BundleInput<'_>, mode: ReadMode) -> Result<LoadedBundle, BundleError> {
    let (BundleInput::File(file) | BundleInput::Text(_, file)) = source;
    load_from(base_of(file)?, source, mode)
}

/// Returns the base folder of relative names.
fn base_of(file: &Path) -> Result<PathBuf, BundleError> {
    match file.is_absolute() {
        true => Ok(PathBuf::new()),
        false => std::env::current_dir().map_err(|error| {
            BundleError::whole(file, format!("current folder unknown: {error}; use an absolute path"))
        }),
    }
}

fn load_from(base: PathBuf, source: BundleInput<'_>, mode: ReadMode) -> Result<LoadedBundle, BundleError> {
    let mut reader = Reader::new(base, mode);
    match source {
        BundleInput::File(file) => reader.add(file)?,
        BundleInput::Text(text, file) => {
            reader.above.push(reader.loaded.base.join(file));
            reader.add_text(text, file)?;
            if let Some(own) = reader.loaded.contents.last_mut() {
                *own = None;
            }
        }
    }
    match reader.loaded.unknown_events().into_iter().next() {
        Some(unknown) => Err(unknown),
        None => Ok(reader.loaded),
    }
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

    fn host_modules(self) -> HostModules {
        match self {
            Self::Hosted => HostModules::Allowed,
            Self::Plain | Self::Pinned => HostModules::Refused,
        }
    }
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

/// Reads a file and its includes.
struct Reader {
    loaded: LoadedBundle,
    mode: ReadMode,
    /// The files that include the current one, and itself.
    above: Vec<PathBuf>,
    /// The collected mistakes; `None` if the first one ends the reading.
    mistakes: Option<Vec<BundleError>>,
}

impl Reader {
    fn new(base: PathBuf, mode: ReadMode) -> Self {
        Self { loaded: LoadedBundle { base, ..LoadedBundle::default() }, mode, above: Vec::new(), mistakes: None }
    }

    /// Collects a mistake, or returns it as an error.
    fn report(&mut self, mistake: BundleError) -> Result<(), BundleError> {
        match &mut self.mistakes {
            Some(mistakes) => {
                mistakes.push(mistake);
                Ok(())
            }
            None => Err(mistake),
        }
    }

    fn add(&mut self, file: &Path) -> Result<(), BundleError> {
        let unreadable = |error: std::io::Error| BundleError::whole(file, format!("the file cannot be read: {error}"));
        let absolute = self.loaded.base.join(file);
        let text = self.mode.read(&absolute, &mut self.loaded.pins).map_err(unreadable)?;
        let real = absolute.canonicalize().map_err(unreadable)?;
        self.above.push(real);
        self.add_text(&text, file)?;
        self.above.pop();
        Ok(())
    }

    fn parse(&mut self, text: &str, file: &Path) -> Result<Bundle, BundleError> {
        let Some(mistakes) = &mut self.mistakes else {
            return Bundle::parse_with(text, file, self.mode.host_modules());
        };
        let (bundle, found) = Bundle::parse_all(text, file);
        mistakes.extend(found);
        Ok(bundle)
    }

    fn add_text(&mut self, text: &str, file: &Path) -> Result<(), BundleError> {
        let bundle = self.parse(text, file)?;
        for include in &bundle.includes {
            let included = self.include(&include.value, file);
            let mistake =
                |message| BundleError::at(include.referenced, message, text, file).coded(MistakeCode::Include);
            included.or_else(|error| match error {
                IncludeError::Here(message) => self.report(mistake(message)),
                IncludeError::There(error) => self.report(error),
            })?;
        }
        let hooks_key = HooksKey::from_bundle(&bundle, text);
        let source: Arc<str> = text.into();
        if bundle.tools.only.is_some() {
            self.name_tools(&source, file)?;
        }
        let loaded = &mut self.loaded;
        let declared = bundle.events.iter().filter_map(|event| event.value.parse::<EventName>().ok());
        loaded.declared_events.extend(declared.map(|name| name.canonical().to_owned()));
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
        let is_own = !matches!(self.mode, ReadMode::Pinned);
        loaded.hooks.extend(bundle.hooks.into_iter().map(|Spanned { value: entry, referenced: location, .. }| {
            let (file, folder, source) = (file.to_owned(), folder.to_owned(), source.clone());
            HookDefinition { file, folder, location, entry, source, pinned_files: None, is_own }
        }));
        loaded.test_locations.extend(bundle.tests.iter().map(|case| (case.referenced, source.clone())));
        loaded.tests.extend(bundle.tests.into_iter().map(|case| (file.to_owned(), case.value)));
        loaded.files.push(file.to_owned());
        loaded.contents.push(Some((digest_of(text.as_bytes()), hooks_key)));
        Ok(())
    }

    fn include(&mut self, name: &str, file: &Path) -> Result<(), IncludeError> {
        let path = file.parent().unwrap_or(Path::new(".")).join(name);
        let absolute = self.loaded.base.join(&path);
        let real = absolute
            .canonicalize()
            .map_err(|error| IncludeError::Here(format!("`{}` cannot be read: {error}", path.display())))?;
        if self.above.contains(&real) {
            let problem = format!("`{}` includes this file: a cycle of includes", path.display());
            return Err(IncludeError::Here(problem));
        }
        self.loaded.includes += 1;
        if self.loaded.includes >= MAX_FILES {
            return Err(IncludeError::Here(format!("too many files: a bundle has at most {MAX_FILES}")));
        }
        // Hooks of a repeated include would run twice. The file is pinned by this name, too.
        if self.loaded.paths().any(|file| file.canonicalize().is_ok_and(|file| file == real)) {
            let read = self.mode.read(&absolute, &mut self.loaded.pins);
            return read.map(drop).map_err(|error| IncludeError::Here(format!("the file cannot be read: {error}")));
        }
        if self.above.len() >= MAX_DEPTH {
            return Err(IncludeError::Here(format!("includes are nested more than {MAX_DEPTH} levels deep")));
        }
        self.add(&path).map_err(IncludeError::There)
    }

    /// Notes the positions of the names under `tools: only`.
    fn name_tools(&mut self, source: &Arc<str>, file: &Path) -> Result<(), BundleError> {
        let locations = match serde_saphyr::from_str::<ToolLocations>(source) {
            Ok(locations) => locations,
            // The mistake was found before.
            Err(_) if self.mistakes.is_some() => return Ok(()),
            Err(error) => return Err(BundleError::yaml(&error, source, file)),
        };
        let named = locations.tools.only.into_iter().flatten();
        self.loaded.named_tools.extend(named.map(|Spanned { value: name, referenced: location, .. }| NamedTool {
            name,
            file: file.to_owned(),
            location,
            source: source.clone(),
        }));
        Ok(())
    }
}

/// The reason why a file cannot be included.
enum IncludeError {
    /// A problem with the include itself.
    Here(String),
    /// A mistake in the included file.
    There(BundleError),
}
