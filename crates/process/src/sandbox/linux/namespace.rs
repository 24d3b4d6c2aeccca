//! Namespaces: a process enters its own, makes files read-only there, and cannot leave them.
//!
//! INVARIANT: no path of a protected file leads around its read-only mount. Other mounts that show the file are protected as well. Every renameable
//! folder above it is a mount point, and mount points cannot be renamed or removed; the current folder is entered again, since it was opened before
//! the mounts, and no other open folder is inherited. The mounts cannot be undone: the process has no capabilities and gets none back, they are
//! locked in namespaces that it creates, and outside processes are unreachable.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_bind_recursive, mount_change};
use rustix::process::{Resource, Rlimit, getegid, geteuid, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, set_no_new_privs};

use super::devices::{TERMINALS, input_devices};
use super::locations::PolicyTarget;
use super::mounts::{self, MountTable};
use super::views::{self, PinnedCopies};
use super::{ErrorContext, LaunchError, SandboxError, SandboxPolicy, pins};

/// Confines this process and its future children. The process namespace starts with the next child. Returns the copies of pinned files that the
/// program will see.
pub(super) fn enter(policy: &SandboxPolicy) -> Result<PinnedCopies, LaunchError> {
    let folder = std::env::current_dir().context("the current folder")?;
    let mut pinned = pins::check(&policy.pinned)?;
    let before = MountTable::read()?;
    let protected = PolicyTarget::find(&policy.read_only)?;
    let hidden = PolicyTarget::find_existing(&policy.hidden);
    let read_only = visible_paths(&protected, &before);
    let writable = policy.writable.as_deref().map(PolicyTarget::find).transpose()?;
    let writable = writable.map(|writable| visible_paths(&writable, &before));
    // Checked with the rights that the process still has.
    let (parents, devices) = (renameable(&read_only), input_devices());
    isolate(policy.network)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .context("mounts cannot be changed here")?;
    // A sorted set, so that folders precede their content.
    let points: BTreeSet<&PathBuf> = parents.iter().chain(&read_only).chain(writable.iter().flatten()).collect();
    for point in points {
        mount_bind_recursive(point, point).context(format!("`{}` cannot be mounted", point.display()))?;
    }
    let after = MountTable::read()?;
    let within = |path: &Path, roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
    after.make_read_only(|path| {
        within(path, &read_only) || writable.as_ref().is_some_and(|writable| !within(path, writable))
    })?;
    let hidden_paths = outermost(visible_paths(&hidden, &before).into_iter().chain(foreign_devices(&before)));
    for path in &hidden_paths {
        mounts::hide(path).context(format!("`{}` cannot be hidden", path.display()))?;
    }
    // The program sees nothing there.
    let is_gone = |path: &Path| within(path, &hidden_paths) || within(path, policy.temporary.as_slice());
    pinned.retain(|file| !is_gone(&file.path) && !is_gone(&file.name));
    let copies = views::install_copies(&pinned, |folder| within(folder, &read_only))?;
    for device in &devices {
        let hide = if device.is_dir() { mounts::hide } else { |device: &Path| mount_bind("/dev/null", device) };
        hide(device).context(format!("`{}` cannot be hidden", device.display()))?;
    }
    mounts::mount_own_terminals()?;
    if let Some(folder) = &policy.temporary {
        mounts::mount_empty(folder).context(format!("`{}` cannot be a temporary folder", folder.display()))?;
    }
    protected.iter().try_for_each(|target| target.check_read_only(&after))?;
    hidden.iter().try_for_each(|target| target.check_hidden(&after))?;
    std::env::set_current_dir(&folder).context("the current folder")?;
    Ok(copies)
}

/// Returns all paths at which the targets are visible.
fn visible_paths(targets: &[PolicyTarget], table: &MountTable) -> Vec<PathBuf> {
    targets.iter().flat_map(|target| table.visible_paths(&target.path)).collect()
}

/// Returns the paths without those inside others: content of a hidden folder cannot be hidden again.
fn outermost(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut sorted: Vec<PathBuf> = paths.collect();
    sorted.sort();
    sorted.dedup_by(|path, before| path.starts_with(before));
    sorted
}

/// Returns mounts at unusual paths that show processes, terminals or devices of the system.
fn foreign_devices(table: &MountTable) -> Vec<PathBuf> {
    let usual = |kind: &str| match kind {
        "proc" => Some("/proc"),
        "devpts" => Some(TERMINALS),
        "devtmpfs" => Some("/dev"),
        _ => None,
    };
    let is_foreign = |mount: &&mounts::Mount| usual(&mount.kind).is_some_and(|usual| !mount.point.starts_with(usual));
    table.0.iter().filter(is_foreign).map(|mount| mount.point.clone()).filter(|point| point.exists()).collect()
}

fn isolate(network: bool) -> Result<(), SandboxError> {
    let (user, group) = (geteuid(), getegid());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    flags.set(UnshareFlags::NEWNET, !network);
    #[expect(deprecated, reason = "it is unsafe with `UnshareFlags::FILES` alone, and `unsafe` is forbidden here")]
    rustix::thread::unshare(flags).context("this system allows no user namespaces")?;
    let write = |file: &str, text: String| {
        fs::write(file, text).context(format!("this system allows no user namespaces: `{file}`"))
    };
    // Required before an ordinary user can map its group.
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{user} {user} 1", user = user.as_raw()))?;
    write("/proc/self/gid_map", format!("{group} {group} 1", group = group.as_raw()))
}

/// Drops the capabilities of the namespaces. Programs started from now on gain no rights, even if `setuid`, and write no core dumps.
pub(super) fn give_up_rights() -> Result<(), SandboxError> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).context("core dumps")?;
    set_no_new_privs(true).context("rights cannot be given up")?;
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).context("rights cannot be given up")
}

fn renameable(paths: &[PathBuf]) -> Vec<PathBuf> {
    let above: BTreeSet<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    above.into_iter().filter(|folder| folder.parent().is_some_and(is_changeable)).map(Path::to_owned).collect()
}

/// Returns `true` if this user can change the content of a folder. Its owner can always gain the permission.
fn is_changeable(folder: &Path) -> bool {
    let owns = fs::metadata(folder).is_ok_and(|folder| folder.uid() == geteuid().as_raw());
    owns || access(folder, Access::WRITE_OK).is_ok()
}
