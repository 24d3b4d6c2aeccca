//! The protected paths of a session: files that decide about the agent, its records, and the built-in lists.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_agent::tool::Workspace;
use amplifier_modules::bundle::{BundleError, BundleStack, LoadedBundle};
use amplifier_process::files::{OpenOptionsExt, can_write, create_private_folder, links_on};
use amplifier_process::sandbox::SandboxPolicy;

use super::folders::{is_program, own_folder};
use super::lists::UserFolders;
use super::settings::SandboxSettings;
use crate::anchors::{self, AnchorConfig};
use crate::config::{Config, Overrides};
use crate::environment::Environment;
use crate::error::{ErrorContext, Result, bail, usage};
use crate::home::Home;

const PROJECT_FOLDER: &str = ".amplifier";

/// Additional protected paths of a program.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProtectedPaths {
    /// Files and folders that tools cannot change.
    pub read_only: Vec<PathBuf>,
    /// Files and folders that tools cannot read.
    pub hidden: Vec<PathBuf>,
    /// Paths that file tools cannot create.
    pub reserved: Vec<PathBuf>,
}

/// The paths that programs and tools of a session cannot change or read.
#[derive(Clone, Debug, Default)]
pub struct ProtectionPlan {
    /// Existing paths that cannot be changed, without links.
    paths: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    /// Missing paths of the lists. File tools cannot create them; commands can.
    absent: Vec<PathBuf>,
    workspace: PathBuf,
    current_dir: PathBuf,
    /// The files of the session by the paths in use, with their links.
    used: Vec<PathBuf>,
}

impl ProtectionPlan {
    /// Plans the protection of a session. Missing folders are created, so that no other process can create them.
    ///
    /// # Errors
    /// If a path cannot be protected.
    pub fn new(config: &Config, home: &Home, workspace: &Path, levels: &BundleStack) -> Result<Self> {
        check_workspace(workspace, &home_folders(home)?)?;
        project(&workspace.join(PROJECT_FOLDER))?;
        for file in anchors::files(&config.anchors) {
            // A missing file cannot be protected. If the file cannot be created, the log reports the failing anchor.
            _ = fs::OpenOptions::new().create(true).append(true).owner_only().open(file);
        }
        Self::current(config, home, workspace, levels.bundles().map(|(_, bundle)| bundle))
    }

    /// Plans the protection of existing paths: data, configuration, anchors, the project folder, the folders of bundles and of the programs they and
    /// the configuration name, this program, and the built-in lists.
    ///
    /// # Errors
    /// If a path cannot be protected.
    pub fn current<'a>(
        config: &Config,
        home: &Home,
        workspace: &Path,
        bundles: impl IntoIterator<Item = &'a LoadedBundle>,
    ) -> Result<Self> {
        let environment = home.environment();
        let mut own =
            ProtectedPaths { read_only: home_folders(home)?, hidden: Self::keys(home)?, reserved: Vec::new() };
        check_allow_setting(&config.sandbox, own.read_only.iter().chain(&own.hidden), &workspace.join(PROJECT_FOLDER))?;
        // Only the file: other programs are installed in its folder. A command cannot replace it, because it is a mount point.
        own.read_only.extend(environment.program().map(Path::to_owned));
        let anchored = config.anchors.iter().filter_map(AnchorConfig::file);
        let files = [config.file.as_path()].into_iter().chain(anchored).map(Path::to_owned).collect();
        let mut others = BTreeSet::new();
        for (name, server) in &config.mcp {
            others.extend(
                server
                    .named_files(name, environment.current_dir())
                    .context("the files that MCP servers name cannot be protected")?,
            );
        }
        Self::gather(own, files, others, &config.sandbox, environment, workspace, bundles)
    }

    /// Plans the protection of a session that an embedding program builds: its own paths, the folders of `home`, those of the bundle and its
    /// programs, and the built-in lists. Missing folders of `home` are created if its rules apply.
    ///
    /// # Errors
    /// If a path cannot be protected, or the workspace is in a protected folder.
    pub fn embedded(
        mut own: ProtectedPaths,
        home: &Home,
        is_home_used: bool,
        workspace: &Path,
        bundle: Option<&LoadedBundle>,
    ) -> Result<Self> {
        let mut settings = SandboxSettings::default();
        if is_home_used {
            settings = Config::load(&Overrides::default(), home)?.sandbox;
            let (folders, keys) = (home_folders(home)?, Self::keys(home)?);
            check_allow_setting(&settings, folders.iter().chain(&keys), &workspace.join(PROJECT_FOLDER))?;
            own.read_only.extend(folders);
            own.hidden.extend(keys);
        } else {
            own.read_only.extend(own_folders(home));
            own.hidden.extend(secrets(home));
        }
        own.reserved.push(workspace.join(PROJECT_FOLDER));
        let plan = Self::gather(own, Vec::new(), BTreeSet::new(), &settings, home.environment(), workspace, bundle)?;
        check_workspace(workspace, &plan.paths)?;
        Ok(plan)
    }

    fn gather<'a>(
        own: ProtectedPaths,
        mut files: Vec<PathBuf>,
        mut others: BTreeSet<PathBuf>,
        settings: &SandboxSettings,
        environment: &Environment,
        workspace: &Path,
        bundles: impl IntoIterator<Item = &'a LoadedBundle>,
    ) -> Result<Self> {
        let user = UserFolders::find(environment);
        let mut used: Vec<PathBuf> = own.read_only.iter().chain(&own.hidden).chain(&files).cloned().collect();
        let project = workspace.join(PROJECT_FOLDER);
        let mut paths: Vec<PathBuf> =
            own.read_only.iter().chain([&project]).filter_map(|path| path.canonicalize().ok()).collect();
        // The target, because the key stays readable if only the link is hidden.
        let mut hidden: Vec<PathBuf> = own.hidden.into_iter().map(|path| path.canonicalize().unwrap_or(path)).collect();
        for bundle in bundles {
            files.extend(bundle.paths());
            others.extend(
                bundle
                    .named_files(workspace, environment.current_dir())
                    .context("the files that hooks name cannot be protected")?,
            );
        }
        // A bundle from text has no file.
        others.retain(|file| file.exists());
        used.extend(files.iter().chain(&others).cloned());
        let (programs, data): (Vec<PathBuf>, Vec<PathBuf>) = others.into_iter().partition(|file| is_program(file));
        files.extend(programs);
        for file in files.into_iter().filter(|file| file.exists()) {
            let file = file.canonicalize().with_context(|| format!("`{}`", file.display()))?;
            let folder = own_folder(&file, workspace, environment);
            paths.extend(folder.filter(|folder| !settings.allows(folder)));
            paths.push(file);
        }
        for file in data {
            paths.push(file.canonicalize().with_context(|| format!("`{}`", file.display()))?);
        }
        let mut absent = own.reserved;
        // The workspace must stay usable.
        let is_wanted = |path: &PathBuf| !settings.allows(path) && !workspace.starts_with(path);
        let listed = user.iter().flat_map(UserFolders::read_only).chain(settings.read_only.iter().cloned());
        for path in listed {
            match path.canonicalize() {
                Ok(path) if is_wanted(&path) => paths.push(path),
                Ok(_) => {}
                Err(_) => absent.extend(Some(path).filter(is_wanted)),
            }
        }
        let listed = user.iter().flat_map(|user| user.hidden(environment)).chain(settings.hidden.iter().cloned());
        hidden.extend(listed.map(|path| path.canonicalize().unwrap_or(path)).filter(is_wanted));
        paths.sort();
        // Content of a protected folder is protected already.
        paths.dedup_by(|root, before| root.starts_with(before));
        hidden.sort();
        hidden.dedup();
        let current_dir = environment.current_dir().to_owned();
        Ok(Self { paths, hidden, absent, workspace: workspace.to_owned(), current_dir, used })
    }

    /// Fails if a file of a bundle is not protected: protection is fixed when a session starts.
    ///
    /// # Errors
    /// If a file is unprotected. The error names the bundle and the file.
    pub fn check(&self, levels: &BundleStack) -> Result<(), BundleError> {
        levels.bundles().try_for_each(|(_, bundle)| self.check_bundle(bundle, []))
    }

    /// Checks one bundle, and files that it uses without naming them.
    ///
    /// # Errors
    /// If a file is unprotected. The error names the bundle and the file.
    pub fn check_bundle(
        &self,
        bundle: &LoadedBundle,
        used: impl IntoIterator<Item = PathBuf>,
    ) -> Result<(), BundleError> {
        let is_protected = |file: &PathBuf| file.canonicalize().is_ok_and(|file| self.covers(&file));
        let of = bundle.files.last().map_or(Path::new(""), PathBuf::as_path);
        let files = bundle.named_files(&self.workspace, &self.current_dir);
        let files = files.map_err(|error| BundleError::whole(of, error.to_string()))?;
        // A bundle from text has no file.
        let texts: Vec<PathBuf> = bundle.paths().filter(|file| !file.exists()).collect();
        let files = files.into_iter().filter(|file| !texts.contains(file));
        if let Some(file) = files.chain(used).find(|file| !is_protected(file)) {
            let file = file.display();
            let problem = format!("`{file}` is not protected from the tools of this session; start a new one");
            return Err(BundleError::whole(of, problem));
        }
        Ok(())
    }

    /// Returns a warning for each link that programs can redirect on the path of a session file: the target is protected, the link is not.
    pub fn link_warnings(&self) -> Vec<String> {
        let links: BTreeSet<PathBuf> = self.used.iter().flat_map(|path| links_on(path)).collect();
        let is_loose = |link: &PathBuf| {
            let folder = link.parent().and_then(|folder| folder.canonicalize().ok());
            folder.is_some_and(|folder| can_write(&folder) && !self.covers(&folder))
        };
        let warning = |link: &PathBuf| {
            let target = link.canonicalize().unwrap_or_else(|_| link.clone());
            format!(
                "`{}` is a link that commands can redirect; name the target instead: `{}`",
                link.display(),
                target.display()
            )
        };
        links.iter().filter(|link| is_loose(link)).map(warning).collect()
    }

    /// Returns `true` if programs cannot change a path without links.
    fn covers(&self, path: &Path) -> bool {
        self.paths.iter().any(|root| path.starts_with(root))
    }

    /// Returns the paths that no program may read: signing keys, and credentials for answering as the user.
    ///
    /// # Errors
    /// If the folder of the server cannot be created.
    pub fn keys(home: &Home) -> Result<Vec<PathBuf>> {
        // With these files, a process could answer approval requests as the user. The folder with the socket is hidden from commands completely; it
        // is created now, because a folder that is missing when a command starts cannot be hidden.
        if home.is_nonexistent() {
            return Ok(Vec::new());
        }
        let server = home.server_folder();
        let made = create_private_folder(&server);
        made.with_context(|| format!("the folder `{}`", server.display()))?;
        Ok(secrets(home))
    }

    /// Applies the protection to file tools.
    #[must_use]
    pub fn protect_workspace(&self, workspace: Workspace) -> Workspace {
        workspace.protect(self.paths.iter().chain(&self.absent)).hide(&self.hidden)
    }

    /// Returns the paths that programs cannot change.
    pub fn read_only(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Returns the paths that programs cannot read; some may be missing.
    pub fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }

    /// Returns configured paths that are missing.
    pub fn missing<'a>(&self, settings: &'a SandboxSettings) -> Vec<&'a Path> {
        let wanted = settings.read_only.iter().chain(&settings.hidden);
        wanted.map(PathBuf::as_path).filter(|path| !path.exists()).collect()
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the folders that programs cannot change.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path).filter(|root| root.is_dir())
    }

    pub(super) fn policy(&self) -> SandboxPolicy {
        SandboxPolicy { read_only: self.paths.clone(), hidden: self.hidden.clone(), ..SandboxPolicy::default() }
    }
}

/// Creates the folders of this program if missing, and returns them.
fn home_folders(home: &Home) -> Result<Vec<PathBuf>> {
    if home.is_nonexistent() {
        return Ok(Vec::new());
    }
    let made = own_folders(home).map(|folder| {
        let made = create_private_folder(&folder).and_then(|()| folder.canonicalize());
        made.with_context(|| format!("the folder `{}`", folder.display()))
    });
    made.collect()
}

/// Returns the folders of this program, which may be missing.
fn own_folders(home: &Home) -> impl Iterator<Item = PathBuf> {
    let config = home.config_file().parent().map(Path::to_owned);
    [home.data().to_owned()].into_iter().chain(config)
}

/// Returns the keys and tokens of this program, which may be missing.
fn secrets(home: &Home) -> Vec<PathBuf> {
    let server = home.server_folder();
    let tokens = ["token", "tokens.json", "cookies.json", "open.html"].map(|name| server.join(name));
    let memberships = [home.fleet_folder(), home.system_fleet_folder()].map(|folder| folder.join("member.json"));
    [home.audit_key(), server].into_iter().chain(memberships).chain(tokens).collect()
}

/// Rejects a workspace in a protected folder, where tools could change nothing.
fn check_workspace(workspace: &Path, paths: &[PathBuf]) -> Result<()> {
    if let Some(folder) = paths.iter().find(|root| workspace.starts_with(root)) {
        let (workspace, folder) = (workspace.display(), folder.display());
        bail!("the workspace `{workspace}` is in `{folder}`, which tools cannot change; choose another workspace");
    }
    Ok(())
}

/// Rejects settings that would expose files that decide about the agent.
fn check_allow_setting<'a>(
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

/// Creates the folder of a project if missing.
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
