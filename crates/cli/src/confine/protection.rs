//! What the tools of an agent may not change: what governs it, and what records it.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use amplifier_agent::tool::Workspace;
use amplifier_modules::bundle::{BundleError, Levels};
use amplifier_modules::confine::Policy;
use anyhow::{Context, Result, bail};

use super::launcher;
use crate::anchors::{self, Anchored};
use crate::config::Config;
use crate::home::{Home, make_private};

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
    /// That of a session: all that is kept and configured, the anchors of the audit log, the folder of the project, the bundles with the programs that they name, and
    /// those of MCP servers.
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
        for file in anchors::files(&config.anchors) {
            // What is not there cannot be protected. Where it cannot be made, the log tells that nothing is kept there.
            _ = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(file);
        }
        let anchored = config.anchors.iter().filter_map(Anchored::file);
        let given = [config.file.as_path()].into_iter().chain(anchored).filter(|file| file.exists());
        let mut files: Vec<PathBuf> = given.map(Path::to_owned).collect();
        for (_, bundle) in levels.bundles() {
            files.extend(bundle.named_files(workspace).context("what hooks name cannot be protected")?);
        }
        for (name, server) in &config.mcp {
            files.extend(server.named_files(name).context("what MCP servers name cannot be protected")?);
        }
        for file in files {
            places.push(file.canonicalize().with_context(|| format!("`{}`", file.display()))?);
        }
        places.sort();
        // What is in a protected folder needs no protection of its own.
        places.dedup_by(|place, before| place.starts_with(before));
        Ok(Self { places, keys: folders.keys, workspace: workspace.to_owned() })
    }

    /// Fails if a file of bundles is not protected: what is protected is settled when a session begins.
    ///
    /// # Errors
    /// Names the bundle and the file.
    pub fn check(&self, levels: &Levels) -> Result<(), BundleError> {
        let is_protected = |file: &PathBuf| {
            file.canonicalize().is_ok_and(|file| self.places.iter().any(|place| file.starts_with(place)))
        };
        for (_, bundle) in levels.bundles() {
            let of = bundle.files.last().map_or(Path::new(""), PathBuf::as_path);
            let files = bundle.named_files(&self.workspace);
            let files = files.map_err(|error| BundleError::whole(of, error.to_string()))?;
            if let Some(file) = files.iter().find(|file| !is_protected(file)) {
                let file = file.display();
                let problem = format!("`{file}` is not protected from the tools of this session; start a new one");
                return Err(BundleError::whole(of, problem));
            }
        }
        Ok(())
    }

    /// What is protected whatever the workspace: all that is kept and configured.
    ///
    /// # Errors
    /// If the folders cannot be made.
    pub fn home(home: &Home) -> Result<Self> {
        let config = home.config_file();
        let folders = [home.data(), config.parent().unwrap_or(home.data())];
        let places = folders.into_iter().map(|folder| {
            let made = make_private(folder).and_then(|()| folder.canonicalize());
            made.with_context(|| format!("the folder `{}`", folder.display()))
        });
        Ok(Self { places: places.collect::<Result<_>>()?, keys: Self::keys(home)?, workspace: PathBuf::new() })
    }

    /// What no program of a session reads: the keys that sign for what happens in it, and what lets one answer as the person.
    ///
    /// # Errors
    /// If the server's folder cannot be made.
    pub fn keys(home: &Home) -> Result<Vec<PathBuf>> {
        // Who reads these can answer questions as the person. The folder is hidden from commands as a whole, with the socket in it; it is made now, because what
        // is not there when a command begins cannot be hidden from it.
        let server = home.server_folder();
        let made = make_private(&server);
        made.with_context(|| format!("the folder `{}`", server.display()))?;
        let secrets = ["token", "tokens.json", "cookies.json", "open.html"].map(|name| server.join(name));
        Ok([home.audit_key(), server].into_iter().chain(secrets).collect())
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
        Ok(launcher(&Policy { read_only, hidden, ..Policy::default() })?)
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
