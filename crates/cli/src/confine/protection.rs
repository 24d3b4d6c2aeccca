//! What the tools of an agent may not change: what governs it, and what records it.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_agent::tool::Workspace;
use amplifier_modules::bundle::{Levels, Loaded, OneOrMany, Placed};
use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Policy;
use crate::config::Config;
use crate::home::Home;

/// The folder of a project that holds its bundle.
const PROJECT: &str = ".amplifier";

/// What the tools of an agent may not change, and what they may not read.
#[derive(Clone, Debug)]
pub struct Protection {
    places: Vec<PathBuf>,
    keys: Vec<PathBuf>,
    workspace: PathBuf,
}

impl Protection {
    /// That of a session: all that is kept and configured, the folder of the project, and the bundles with the programs that they name.
    /// Folders that are missing are made, so that nobody else can make them.
    ///
    /// # Errors
    /// If something cannot be protected.
    pub fn new(config: &Config, home: &Home, workspace: &Path, levels: &Levels) -> Result<Self> {
        let folders = Self::home(home)?;
        if let Some(folder) = folders.places.iter().find(|folder| workspace.starts_with(folder)) {
            let (workspace, folder) = (workspace.display(), folder.display());
            bail!("the workspace `{workspace}` is in `{folder}`, which tools cannot change; choose another workspace");
        }
        let mut places = folders.places;
        places.push(project(&workspace.join(PROJECT))?);
        let given = [&config.file].into_iter().filter(|file| file.exists());
        let files = levels.bundles().flat_map(|(_, bundle)| files(bundle, workspace));
        for file in given.cloned().chain(files) {
            places.push(file.canonicalize().with_context(|| format!("`{}`", file.display()))?);
        }
        places.sort();
        // What is in a protected folder needs no protection of its own.
        places.dedup_by(|place, before| place.starts_with(before));
        Ok(Self { places, keys: folders.keys, workspace: workspace.to_owned() })
    }

    /// A file of bundles that is not protected, with its bundle: what is protected is settled when a session begins.
    pub fn lacks<'a>(&self, levels: &'a Levels) -> Option<(&'a Path, PathBuf)> {
        let is_protected = |file: &PathBuf| {
            file.canonicalize().is_ok_and(|file| self.places.iter().any(|place| file.starts_with(place)))
        };
        levels.bundles().find_map(|(_, bundle)| {
            let file = files(bundle, &self.workspace).find(|file| !is_protected(file))?;
            Some((bundle.files.last()?.as_path(), file))
        })
    }

    /// What is protected whatever the workspace: all that is kept and configured.
    ///
    /// # Errors
    /// If the folders cannot be made.
    pub fn home(home: &Home) -> Result<Self> {
        let config = home.config_file();
        let folders = [home.data(), config.parent().unwrap_or(home.data())];
        let places = folders.into_iter().map(|folder| {
            let made = fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
            made.with_context(|| format!("the folder `{}`", folder.display()))
        });
        let key = home.audit_key();
        let mut old = OsString::from(&key);
        old.push(".old");
        Ok(Self { places: places.collect::<Result<_>>()?, keys: vec![key, old.into()], workspace: PathBuf::new() })
    }

    /// Protects it from the tools that use files.
    #[must_use]
    pub fn of_files(&self, workspace: Workspace) -> Workspace {
        workspace.protect(&self.places).hide(&self.keys)
    }

    /// The words to put before commands, so that they cannot change it either.
    ///
    /// # Errors
    /// If this system cannot do it.
    pub fn launcher(&self) -> Result<Vec<OsString>> {
        let (read_only, hidden) = (self.places.clone(), self.keys.clone());
        Policy { read_only, hidden, ..Policy::default() }.launcher()
    }
}

/// The folder of a project, which is made if it is missing.
fn project(folder: &Path) -> Result<PathBuf> {
    let made = match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => fs::symlink_metadata(folder),
        made => made.and_then(|()| fs::symlink_metadata(folder)),
    };
    let made = made.with_context(|| format!("the folder `{}`", folder.display()))?;
    if made.is_symlink() {
        bail!("`{}` is a symbolic link, which could be replaced by another; make it a folder", folder.display());
    }
    Ok(folder.to_owned())
}

/// The files of a bundle: those that it was read from, and those that its hooks name.
fn files<'a>(bundle: &'a Loaded, workspace: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    bundle.files.iter().cloned().chain(bundle.hooks.iter().flat_map(|placed| programs(placed, workspace)))
}

/// The files that a hook is made of. The words of commands are looked at, not their grammar: rather one file too many.
fn programs(placed: &Placed, workspace: &Path) -> Vec<PathBuf> {
    let folder = placed.file.parent().unwrap_or(Path::new(""));
    let entry = &placed.entry;
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c);
    let mut lines: Vec<OneOrMany> = [&entry.command, &entry.worker].into_iter().flatten().cloned().collect();
    lines.extend(entry.wasm.iter().map(|file| OneOrMany::Many(vec![file.clone()])));
    lines.extend([&entry.files, &entry.env.values().cloned().collect()].map(|files| OneOrMany::Many(files.clone())));
    // Those of modules: of `hooks-notify`, and of `hooks-linter`, which run in the workspace.
    let option = |name: &str| entry.config.as_ref().and_then(|config| config.get(name));
    let linters = option("linters").and_then(Value::as_array).into_iter().flatten();
    let of_modules = option("command").into_iter().chain(linters.filter_map(|linter| linter.get("command")));
    lines.extend(of_modules.filter_map(|command| serde_json::from_value(command.clone()).ok()));
    let words = lines.iter().flat_map(|line| match line {
        OneOrMany::One(line) => line.split(is_between).collect::<Vec<_>>(),
        OneOrMany::Many(words) => words.iter().map(String::as_str).collect(),
    });
    let words = words.filter(|word| !word.is_empty());
    let is_module = entry.module.is_some();
    let files = words.flat_map(|word| [Some(folder.join(word)), is_module.then(|| workspace.join(word))]);
    files.flatten().filter(|file| file.is_file()).collect()
}
