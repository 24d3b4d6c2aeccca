//! Landlock: a process gives up file rights for itself and its children. It needs no namespaces.
//!
//! Rules only allow, and cover everything below a folder. So a folder above a protected one gets no rule, but each of its entries does: protected
//! entries can be left out, but no new entries can be created directly in those folders.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};

use super::devices::{NEW_TERMINAL, TERMINALS, input_devices};
use super::locations::PolicyTarget;
use super::mounts::MountTable;
use super::{ErrorContext, SandboxError, SandboxPolicy, namespace};

/// The first version that protects files from truncation.
const REQUIRED_ABI: ABI = ABI::V3;

const UNAVAILABLE: &str = "this system has no Landlock, or one that is too old";

pub(super) fn enter(policy: &SandboxPolicy) -> Result<(), SandboxError> {
    if policy.writable.is_some() || policy.temporary.is_some() || !policy.network {
        let text = "Landlock can neither cut off the network nor make all but some folders read-only";
        return Err(SandboxError(text.to_owned()));
    }
    let table = MountTable::read()?;
    let paths_of =
        |targets: Vec<PolicyTarget>| targets.iter().flat_map(|target| table.visible_paths(&target.path)).collect();
    let read_only = paths_of(PolicyTarget::find(&policy.read_only)?);
    let mut hidden: Vec<PathBuf> = paths_of(PolicyTarget::find_existing(&policy.hidden));
    hidden.extend(input_devices());
    hidden.extend([TERMINALS, NEW_TERMINAL].map(PathBuf::from));
    let ruleset = ruleset().context(UNAVAILABLE)?;
    let mut builder = RuleBuilder { ruleset, read_only: PathSet::new(read_only), hidden: PathSet::new(hidden) };
    builder.walk(open(CWD, OsStr::new("/"), OFlags::PATH)?, Path::new("/"), false)?;
    namespace::give_up_rights()?;
    builder.ruleset.restrict_self().map(drop).context(UNAVAILABLE)
}

/// Blocks abstract sockets of other processes, where supported.
pub(super) fn scope_sockets() {
    let ruleset = Ruleset::default().scope(Scope::AbstractUnixSocket).and_then(Ruleset::create);
    // The policy does not require this.
    let _ = ruleset.and_then(RulesetCreated::restrict_self);
}

/// Creates a ruleset for all rights, which also isolates other processes where supported.
fn ruleset() -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED_ABI))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()
}

struct PathSet {
    paths: Vec<PathBuf>,
    files: HashSet<(u64, u64)>,
}

impl PathSet {
    fn new(paths: Vec<PathBuf>) -> Self {
        let files = paths.iter().filter_map(|path| rustix::fs::stat(path).ok());
        let files = files.map(|file| (file.st_dev, file.st_ino)).collect();
        Self { paths, files }
    }

    fn has_paths_below(&self, folder: &Path) -> bool {
        self.paths.iter().any(|path| path != folder && path.starts_with(folder))
    }
}

struct RuleBuilder {
    ruleset: RulesetCreated,
    read_only: PathSet,
    hidden: PathSet,
}

impl RuleBuilder {
    /// Adds rules for a file or folder and everything below. Link targets have rules of their own.
    fn walk(&mut self, file: OwnedFd, path: &Path, is_protected: bool) -> Result<(), SandboxError> {
        let what = || format!("`{}`", path.display());
        let found = fstat(&file).context(what())?;
        let (kind, identity) = (FileType::from_raw_mode(found.st_mode), (found.st_dev, found.st_ino));
        if kind == FileType::Symlink || self.hidden.files.contains(&identity) {
            return Ok(());
        }
        let is_protected = is_protected || self.read_only.files.contains(&identity);
        let is_folder = kind == FileType::Directory;
        let is_above =
            is_folder && (self.hidden.has_paths_below(path) || self.read_only.has_paths_below(path) && !is_protected);
        let reading = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
        let access: BitFlags<AccessFs> = match (is_above, is_protected) {
            // The names of its entries are not secret.
            (true, _) => AccessFs::ReadDir.into(),
            (false, true) => reading,
            (false, false) => AccessFs::from_all(REQUIRED_ABI) | AccessFs::IoctlDev,
        };
        if is_above {
            // A folder that cannot be listed is left out with its content.
            if let Ok(listed) = open(&file, OsStr::new("."), OFlags::RDONLY) {
                for entry in Dir::new(listed).context(what())? {
                    let entry = entry.context(what())?;
                    let name = OsStr::from_bytes(entry.file_name().to_bytes());
                    if name == "." || name == ".." {
                        continue;
                    }
                    // An entry removed meanwhile needs no rule.
                    if let Ok(child) = open(&file, name, OFlags::PATH) {
                        self.walk(child, &path.join(name), is_protected)?;
                    }
                }
            }
        }
        let access = if is_folder { access } else { access & AccessFs::from_file(ABI::V5) };
        (&mut self.ruleset).add_rule(PathBeneath::new(file, access)).map(drop).context(what())
    }
}

/// Opens an entry of a folder without following links.
fn open(folder: impl std::os::fd::AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, SandboxError> {
    let opened = openat(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    opened.context(format!("`{}`", name.display()))
}
