//! What programs and tools of a session cannot change or read: what decides about the agent, what records it, and what the lists name.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use amplifier_agent::tool::Workspace;
use amplifier_modules::bundle::{BundleError, Levels, Loaded};
use amplifier_process::sandbox::Policy;
use anyhow::{Context, Result, bail};

use super::folders::{is_program, own_folder};
use super::lists::UserFolders;
use super::settings::SandboxSettings;
use crate::anchors::{self, Anchored};
use crate::config::{Config, usage};
use crate::home::{Home, make_private};

/// The folder of a project that holds its bundle.
const PROJECT: &str = ".amplifier";

/// What programs and tools of a session cannot change, and what they cannot read.
#[derive(Clone, Debug)]
pub struct Protection {
    /// What is there and cannot be changed: files, and folders with all that is in them. Without links.
    places: Vec<PathBuf>,
    /// What cannot be read.
    hidden: Vec<PathBuf>,
    /// What is on the lists and not there. File tools do not make it; commands cannot be kept from that.
    absent: Vec<PathBuf>,
    workspace: PathBuf,
}

impl Protection {
    /// The protection of a session. Folders that are missing are made, so that nobody else can make them.
    ///
    /// # Errors
    /// If something cannot be protected.
    pub fn new(config: &Config, home: &Home, workspace: &Path, levels: &Levels) -> Result<Self> {
        if let Some(folder) = home_folders(home)?.into_iter().find(|folder| workspace.starts_with(folder)) {
            let (workspace, folder) = (workspace.display(), folder.display());
            bail!("the workspace `{workspace}` is in `{folder}`, which tools cannot change; choose another workspace");
        }
        project(&workspace.join(PROJECT))?;
        for file in anchors::files(&config.anchors) {
            // What is not there cannot be protected. Where it cannot be made, the log tells that nothing is kept there.
            _ = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(file);
        }
        Self::current(config, home, workspace, levels.bundles().map(|(_, bundle)| bundle))
    }

    /// What is protected of that which is there: all that is kept and configured, the anchors of the audit log, the folder of the project, the folders of
    /// bundles and of the programs that they and the configuration name, this program, and what is on the lists.
    ///
    /// # Errors
    /// If something cannot be protected.
    pub fn current<'a>(
        config: &Config,
        home: &Home,
        workspace: &Path,
        bundles: impl IntoIterator<Item = &'a Loaded>,
    ) -> Result<Self> {
        let user = UserFolders::from_environment();
        let settings = &config.sandbox;
        let mut places = home_folders(home)?;
        let mut hidden = Self::keys(home)?;
        refuse_relaxed(settings, places.iter().chain(&hidden), &workspace.join(PROJECT))?;
        places.extend(workspace.join(PROJECT).canonicalize().ok());
        // The file alone: other programs are installed in its folder. A command cannot replace it, because it is a mount point there.
        places.extend(std::env::current_exe().and_then(|program| program.canonicalize()).ok());
        let anchored = config.anchors.iter().filter_map(Anchored::file);
        let mut files: Vec<PathBuf> = [config.file.as_path()].into_iter().chain(anchored).map(Path::to_owned).collect();
        let mut others = BTreeSet::new();
        for bundle in bundles {
            files.extend(bundle.places());
            others.extend(bundle.named_files(workspace).context("what hooks name cannot be protected")?);
        }
        for (name, server) in &config.mcp {
            others.extend(server.named_files(name).context("what MCP servers name cannot be protected")?);
        }
        let (programs, data): (Vec<PathBuf>, Vec<PathBuf>) = others.into_iter().partition(|file| is_program(file));
        files.extend(programs);
        for file in files.into_iter().filter(|file| file.exists()) {
            let file = file.canonicalize().with_context(|| format!("`{}`", file.display()))?;
            let folder = own_folder(&file, workspace, user.as_ref().map(|user| user.home.as_path()));
            places.extend(folder.filter(|folder| !settings.allows(folder)));
            places.push(file);
        }
        for file in data {
            places.push(file.canonicalize().with_context(|| format!("`{}`", file.display()))?);
        }
        let mut absent = Vec::new();
        // The user works in the workspace, whatever it is.
        let is_wanted = |path: &PathBuf| !settings.allows(path) && !workspace.starts_with(path);
        let listed = user.iter().flat_map(UserFolders::read_only).chain(settings.read_only.iter().cloned());
        for path in listed {
            match path.canonicalize() {
                Ok(path) if is_wanted(&path) => places.push(path),
                Ok(_) => {}
                Err(_) => absent.extend(Some(path).filter(is_wanted)),
            }
        }
        let listed = user.iter().flat_map(UserFolders::hidden).chain(settings.hidden.iter().cloned());
        hidden.extend(listed.map(|path| path.canonicalize().unwrap_or(path)).filter(is_wanted));
        places.sort();
        // What is in a protected folder needs no protection of its own.
        places.dedup_by(|place, before| place.starts_with(before));
        hidden.sort();
        hidden.dedup();
        Ok(Self { places, hidden, absent, workspace: workspace.to_owned() })
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
        workspace.protect(self.places.iter().chain(&self.absent)).hide(&self.hidden)
    }

    /// What programs cannot change.
    pub fn read_only(&self) -> &[PathBuf] {
        &self.places
    }

    /// What programs cannot read, if it is there.
    pub fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }

    /// What the user wants protected and is not there.
    pub fn missing<'a>(&self, settings: &'a SandboxSettings) -> Vec<&'a Path> {
        let wanted = settings.read_only.iter().chain(&settings.hidden);
        wanted.map(PathBuf::as_path).filter(|path| !path.exists()).collect()
    }

    /// The folder that the agent works in.
    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The folders that programs cannot change.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(PathBuf::as_path).filter(|place| place.is_dir())
    }

    /// What programs can do: everything but changing what is protected, and reading what is hidden.
    pub(super) fn policy(&self) -> Policy {
        Policy { read_only: self.places.clone(), hidden: self.hidden.clone(), ..Policy::default() }
    }
}

/// The folders of this program, which are made if they are missing.
fn home_folders(home: &Home) -> Result<Vec<PathBuf>> {
    let config = home.config_file();
    let folders = [home.data(), config.parent().unwrap_or(home.data())];
    let made = folders.into_iter().map(|folder| {
        let made = make_private(folder).and_then(|()| folder.canonicalize());
        made.with_context(|| format!("the folder `{}`", folder.display()))
    });
    made.collect()
}

/// Refuses settings that would give away what decides about the agent.
fn refuse_relaxed<'a>(
    settings: &SandboxSettings,
    own: impl IntoIterator<Item = &'a PathBuf>,
    project: &'a Path,
) -> Result<()> {
    for own in own.into_iter().map(PathBuf::as_path).chain([project]) {
        if let Some(path) = settings.allow.iter().find(|path| own.starts_with(path) || path.starts_with(own)) {
            let (path, own) = (path.display(), own.display());
            return Err(usage(format!(
                "`allow` of `[sandbox]` has `{path}`, but `{own}` decides what the agent may do, or records what it did; remove it from `allow`"
            )));
        }
    }
    Ok(())
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
