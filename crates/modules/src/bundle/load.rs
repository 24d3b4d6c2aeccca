//! Bundles from files, with what they include.

use std::path::{Path, PathBuf};

use serde_saphyr::{Location, Spanned};

use super::{Bundle, BundleError, Case, HookEntry, SessionSettings};

/// How deep bundles may include one another.
const DEEPEST: usize = 8;

/// A bundle with everything that it includes, in order.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Settings of the session: those of the file that was loaded, else those of the last one it includes.
    pub session: SessionSettings,
    /// Every hook, with the place that it comes from.
    pub hooks: Vec<Placed>,
    /// Every test, with the file that it comes from.
    pub tests: Vec<(PathBuf, Case)>,
    /// Every file that was read, in the order in which it was.
    pub files: Vec<PathBuf>,
}

/// A hook, and where it stands.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The file.
    pub file: PathBuf,
    /// Where in the file.
    pub location: Location,
    /// The hook.
    pub entry: HookEntry,
    /// The line in the file, for whoever is told about a mistake.
    pub(crate) line: String,
}

impl Placed {
    /// Something that is wrong with it.
    pub(crate) fn problem(&self, message: impl Into<String>) -> BundleError {
        BundleError {
            file: self.file.clone(),
            line: self.location.line() as usize,
            column: self.location.column() as usize,
            message: message.into(),
            text: self.line.clone(),
        }
    }
}

/// Loads a bundle and what it includes.
///
/// # Errors
/// If a file cannot be read or is no bundle, or bundles include one another without an end.
pub fn load(file: &Path) -> Result<Loaded, BundleError> {
    let mut loaded = Loaded::default();
    add(&mut loaded, file, &mut Vec::new())?;
    Ok(loaded)
}

fn add(loaded: &mut Loaded, file: &Path, above: &mut Vec<PathBuf>) -> Result<(), BundleError> {
    let unreadable = |error: std::io::Error| BundleError::whole(file, format!("it cannot be read: {error}"));
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let real = file.canonicalize().map_err(unreadable)?;
    let bundle = Bundle::parse(&text, file)?;
    above.push(real);
    for include in &bundle.includes {
        let folder = file.parent().unwrap_or(Path::new("."));
        let path = folder.join(&include.value);
        let problem = |message: String| BundleError::at(include.referenced, message, &text, file);
        let real =
            path.canonicalize().map_err(|error| problem(format!("`{}` cannot be read: {error}", path.display())))?;
        if above.contains(&real) {
            return Err(problem(format!("`{}` includes this file, without an end", path.display())));
        }
        if above.len() >= DEEPEST {
            return Err(problem(format!("bundles include one another more than {DEEPEST} times")));
        }
        add(loaded, &path, above)?;
    }
    above.pop();
    loaded.session.overlay(bundle.session);
    loaded.hooks.extend(bundle.hooks.into_iter().map(|Spanned { value: entry, referenced: location, .. }| {
        let line = text.lines().nth((location.line() as usize).saturating_sub(1)).unwrap_or_default().to_owned();
        Placed { file: file.to_owned(), location, entry, line }
    }));
    loaded.tests.extend(bundle.tests.into_iter().map(|case| (file.to_owned(), case.value)));
    loaded.files.push(file.to_owned());
    Ok(())
}

impl SessionSettings {
    /// Takes over what the other one sets.
    fn overlay(&mut self, over: Self) {
        let Self { injection_size_limit, injection_budget_per_turn, over_budget } = over;
        self.injection_size_limit = injection_size_limit.or(self.injection_size_limit);
        self.injection_budget_per_turn = injection_budget_per_turn.or(self.injection_budget_per_turn);
        self.over_budget = over_budget.or(self.over_budget);
    }
}
