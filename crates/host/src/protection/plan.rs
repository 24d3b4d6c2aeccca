//! What programs and tools of a session cannot change or read: what decides about the agent, what records it, and what the lists name.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use amplifier_agent::tool::Workspace;
use amplifier_modules::bundle::{BundleError, Levels, Loaded};
use amplifier_process::files::{OpenOptionsExt, can_write, create_private_folder};
use amplifier_process::sandbox::SandboxPolicy;

use super::folders::{is_program, own_folder};
use super::lists::UserFolders;
use super::settings::SandboxSettings;
use crate::anchors::{self, AnchorConfig};
use crate::config::{Config, Overrides};
use crate::environment::Environment;
use crate::error::{ErrorContext, Result, bail, usage};
use crate::home::Home;

/// The folder of a project that holds its bundle.
const PROJECT_FOLDER: &str = ".amplifier";

/// Paths that a program protects beside those of bundles and of the lists.
#[derive(Clone, Debug, Default)]
pub struct ProtectedPaths {
    /// Files and folders that tools cannot change.
    pub read_only: Vec<PathBuf>,
    /// Files and folders that tools cannot read.
    pub hidden: Vec<PathBuf>,
    /// Names that file tools do not create.
    pub reserved: Vec<PathBuf>,
}

/// What programs and tools of a session cannot change, and what they cannot read.
#[derive(Clone, Debug, Default)]
pub struct ProtectionPlan {
    /// What is there and cannot be changed: files, and folders with all that is in them. Without links.
    paths: Vec<PathBuf>,
    /// What cannot be read.
    hidden: Vec<PathBuf>,
    /// What is on the lists and not there. File tools do not make it; commands cannot be kept from that.
    absent: Vec<PathBuf>,
    workspace: PathBuf,
    /// The folder that MCP servers are started in.
    current_dir: PathBuf,
    /// The files and folders of the session by the paths that it uses, with the links in them.
    used: Vec<PathBuf>,
}

impl ProtectionPlan {
    /// The protection of a session. Folders that are missing are made, so that nobody else can make them.
    ///
    /// # Errors
    /// If something cannot be protected.
    pub fn new(config: &Config, home: &Home, workspace: &Path, levels: &Levels) -> Result<Self> {
        check_workspace(workspace, &home_folders(home)?)?;
        project(&workspace.join(PROJECT_FOLDER))?;
        for file in anchors::files(&config.anchors) {
            // What is not there cannot be protected. Where it cannot be made, the log tells that nothing is kept there.
            _ = fs::OpenOptions::new().create(true).append(true).owner_only().open(file);
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
        let environment = home.environment();
        let mut own =
            ProtectedPaths { read_only: home_folders(home)?, hidden: Self::keys(home)?, reserved: Vec::new() };
        check_allow_setting(&config.sandbox, own.read_only.iter().chain(&own.hidden), &workspace.join(PROJECT_FOLDER))?;
        // The file alone: other programs are installed in its folder. A command cannot replace it, because it is a mount point there.
        own.read_only.extend(environment.program().map(Path::to_owned));
        let anchored = config.anchors.iter().filter_map(AnchorConfig::file);
        let files = [config.file.as_path()].into_iter().chain(anchored).map(Path::to_owned).collect();
        let mut others = BTreeSet::new();
        for (name, server) in &config.mcp {
            others.extend(
                server
                    .named_files(name, environment.current_dir())
                    .context("what MCP servers name cannot be protected")?,
            );
        }
        Self::gather(own, files, others, &config.sandbox, environment, workspace, bundles)
    }

    /// The protection of a session that a program puts together itself: its own paths, the folders of the user's home for this program, the folders of the
    /// bundle and of the programs that it names, and what is on the lists. Missing folders of `home` are made if its rules count for the session.
    ///
    /// # Errors
    /// If something cannot be protected, or the workspace is in a protected folder.
    pub fn embedded(
        mut own: ProtectedPaths,
        home: &Home,
        is_home_used: bool,
        workspace: &Path,
        bundle: Option<&Loaded>,
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
        bundles: impl IntoIterator<Item = &'a Loaded>,
    ) -> Result<Self> {
        let user = UserFolders::find(environment);
        let mut used: Vec<PathBuf> = own.read_only.iter().chain(&own.hidden).chain(&files).cloned().collect();
        let project = workspace.join(PROJECT_FOLDER);
        let mut paths: Vec<PathBuf> =
            own.read_only.iter().chain([&project]).filter_map(|path| path.canonicalize().ok()).collect();
        // Not the link that leads to a key: without it, the key would be seen.
        let mut hidden: Vec<PathBuf> = own.hidden.into_iter().map(|path| path.canonicalize().unwrap_or(path)).collect();
        for bundle in bundles {
            files.extend(bundle.places());
            others.extend(
                bundle
                    .named_files(workspace, environment.current_dir())
                    .context("what hooks name cannot be protected")?,
            );
        }
        // A bundle that was given as a text has no file.
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
        // The user works in the workspace, whatever it is.
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
        // What is in a protected folder needs no protection of its own.
        paths.dedup_by(|place, before| place.starts_with(before));
        hidden.sort();
        hidden.dedup();
        let current_dir = environment.current_dir().to_owned();
        Ok(Self { paths, hidden, absent, workspace: workspace.to_owned(), current_dir, used })
    }

    /// Fails if a file of bundles is not protected: what is protected is settled when a session begins.
    ///
    /// # Errors
    /// Names the bundle and the file.
    pub fn check(&self, levels: &Levels) -> Result<(), BundleError> {
        levels.bundles().try_for_each(|(_, bundle)| self.check_bundle(bundle, []))
    }

    /// The same for one bundle, with files that it uses and does not name.
    ///
    /// # Errors
    /// Names the bundle and the file.
    pub fn check_bundle(&self, bundle: &Loaded, used: impl IntoIterator<Item = PathBuf>) -> Result<(), BundleError> {
        let is_protected = |file: &PathBuf| file.canonicalize().is_ok_and(|file| self.covers(&file));
        let of = bundle.files.last().map_or(Path::new(""), PathBuf::as_path);
        let files = bundle.named_files(&self.workspace, &self.current_dir);
        let files = files.map_err(|error| BundleError::whole(of, error.to_string()))?;
        // A bundle that was given as a text has no file.
        let texts: Vec<PathBuf> = bundle.places().filter(|file| !file.exists()).collect();
        let files = files.into_iter().filter(|file| !texts.contains(file));
        if let Some(file) = files.chain(used).find(|file| !is_protected(file)) {
            let file = file.display();
            let problem = format!("`{file}` is not protected from the tools of this session; start a new one");
            return Err(BundleError::whole(of, problem));
        }
        Ok(())
    }

    /// Returns the links on the way to a file of the session that programs can make lead elsewhere, each as a warning: what a link leads to is protected, the
    /// link is not.
    pub fn link_warnings(&self) -> Vec<String> {
        let links: BTreeSet<PathBuf> = self.used.iter().flat_map(|path| links_on(path)).collect();
        let is_loose = |link: &PathBuf| {
            let folder = link.parent().and_then(|folder| folder.canonicalize().ok());
            folder.is_some_and(|folder| can_write(&folder) && !self.covers(&folder))
        };
        let warning = |link: &PathBuf| {
            let target = link.canonicalize().unwrap_or_else(|_| link.clone());
            format!(
                "`{}` is a link, and commands can make it lead elsewhere; name what it leads to: `{}`",
                link.display(),
                target.display()
            )
        };
        links.iter().filter(|link| is_loose(link)).map(warning).collect()
    }

    /// `true` if programs cannot change a path, which has no links in it.
    fn covers(&self, path: &Path) -> bool {
        self.paths.iter().any(|place| path.starts_with(place))
    }

    /// What no program of a session reads: the keys that sign for what happens in it, and what lets one answer as the person.
    ///
    /// # Errors
    /// If the server's folder cannot be made.
    pub fn keys(home: &Home) -> Result<Vec<PathBuf>> {
        // Who reads these can answer questions as the person. The folder is hidden from commands as a whole, with the socket in it; it is made now, because what
        // is not there when a command begins cannot be hidden from it.
        let server = home.server_folder();
        let made = create_private_folder(&server);
        made.with_context(|| format!("the folder `{}`", server.display()))?;
        Ok(secrets(home))
    }

    /// Protects it from the tools that use files.
    #[must_use]
    pub fn protect_workspace(&self, workspace: Workspace) -> Workspace {
        workspace.protect(self.paths.iter().chain(&self.absent)).hide(&self.hidden)
    }

    /// What programs cannot change.
    pub fn read_only(&self) -> &[PathBuf] {
        &self.paths
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
        self.paths.iter().map(PathBuf::as_path).filter(|place| place.is_dir())
    }

    /// What programs can do: everything but changing what is protected, and reading what is hidden.
    pub(super) fn policy(&self) -> SandboxPolicy {
        SandboxPolicy { read_only: self.paths.clone(), hidden: self.hidden.clone(), ..SandboxPolicy::default() }
    }
}

/// The folders of this program, which are made if they are missing.
fn home_folders(home: &Home) -> Result<Vec<PathBuf>> {
    let made = own_folders(home).map(|folder| {
        let made = create_private_folder(&folder).and_then(|()| folder.canonicalize());
        made.with_context(|| format!("the folder `{}`", folder.display()))
    });
    made.collect()
}

/// The folders of this program, which need not be there.
fn own_folders(home: &Home) -> impl Iterator<Item = PathBuf> {
    let config = home.config_file().parent().map(Path::to_owned);
    [home.data().to_owned()].into_iter().chain(config)
}

/// The keys and tokens of this program, which need not be there.
fn secrets(home: &Home) -> Vec<PathBuf> {
    let server = home.server_folder();
    let tokens = ["token", "tokens.json", "cookies.json", "open.html"].map(|name| server.join(name));
    [home.audit_key(), server].into_iter().chain(tokens).collect()
}

/// Refuses a workspace in which tools could change nothing.
fn check_workspace(workspace: &Path, paths: &[PathBuf]) -> Result<()> {
    if let Some(folder) = paths.iter().find(|place| workspace.starts_with(place)) {
        let (workspace, folder) = (workspace.display(), folder.display());
        bail!("the workspace `{workspace}` is in `{folder}`, which tools cannot change; choose another workspace");
    }
    Ok(())
}

/// The links on the way to a file, those that links lead to included.
fn links_on(path: &Path) -> Vec<PathBuf> {
    // As many as the system follows.
    const MAX_LINKS: usize = 40;
    let mut links = Vec::new();
    let mut ahead: Vec<OsString> = path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let mut at = PathBuf::new();
    while let Some(part) = ahead.pop() {
        match part.to_str() {
            Some("..") => _ = at.pop(),
            _ => at.push(&part),
        }
        let Ok(target) = at.read_link() else { continue };
        if links.len() == MAX_LINKS {
            break;
        }
        links.push(at.clone());
        at.pop();
        ahead.extend(target.components().rev().map(|part| part.as_os_str().to_owned()));
    }
    links
}

/// Refuses settings that would give away what decides about the agent.
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
