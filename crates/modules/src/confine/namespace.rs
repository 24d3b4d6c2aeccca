//! Namespaces: a process enters its own, makes files read-only there, and cannot get out again.
//!
//! INVARIANT: no path of a protected file leads around its read-only mount. Each folder above it that could be renamed is a mount point of its
//! own, and mount points cannot be renamed or removed; the current folder is entered anew, since it was opened before there were mounts. Nor can the
//! mounts be undone: the process has no capabilities left and gets none back, in namespaces that it makes itself they are locked, and
//! processes outside are out of reach (`/proc/PID/root`), because their user namespace is not its own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::mount::{MountPropagationFlags, mount_bind_recursive, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, set_no_new_privs};

use super::{Context, NotConfined, Policy, mounts};

/// Confines this process, and all that it begins.
pub(super) fn enter(policy: &Policy) -> Result<(), NotConfined> {
    let folder = std::env::current_dir().context("the current folder")?;
    refuse_open_folders()?;
    let read_only = real(&policy.read_only)?;
    let writable = policy.writable.as_deref().map(real).transpose()?;
    // Asked with the rights that the process still has.
    let pinned = pinned(&read_only);
    isolate(policy.network)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .context("mounts cannot be changed here")?;
    // A set of paths is sorted, so that folders come before what is in them.
    let points: BTreeSet<&PathBuf> = pinned.iter().chain(&read_only).chain(writable.iter().flatten()).collect();
    for point in points {
        mount_bind_recursive(point, point).context(format!("`{}` cannot be mounted", point.display()))?;
    }
    let within = |path: &Path, places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
    mounts::make_read_only(|path| {
        within(path, &read_only) || writable.as_ref().is_some_and(|writable| !within(path, writable))
    })?;
    for place in &read_only {
        mounts::check_read_only(place)?;
    }
    for file in policy.hidden.iter().filter(|file| file.exists()) {
        mounts::hide(file).context(format!("`{}` cannot be hidden", file.display()))?;
    }
    if let Some(folder) = &policy.temporary {
        mounts::empty(folder).context(format!("`{}` cannot be a temporary folder", folder.display()))?;
    }
    std::env::set_current_dir(&folder).context("the current folder")?;
    give_up_rights()
}

/// Refuses folders that were left open by whoever started the agent: paths that begin at one lead around mounts that are made later.
fn refuse_open_folders() -> Result<(), NotConfined> {
    for entry in fs::read_dir("/proc/self/fd").context("the open files")? {
        let path = entry.context("the open files")?.path();
        // The listing itself is an open folder, and is closed when it ends.
        let is_listing = path.read_link().is_ok_and(|target| target.starts_with("/proc"));
        if !is_listing && path.is_dir() {
            let text = "the agent was started with an open folder, the descriptor";
            return Err(NotConfined(format!("{text} `{}`; close it first", path.display())));
        }
    }
    Ok(())
}

/// Enters new namespaces, as the same user.
fn isolate(network: bool) -> Result<(), NotConfined> {
    let (user, group) = (geteuid(), getegid());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
    flags.set(UnshareFlags::NEWNET, !network);
    #[expect(deprecated, reason = "it is unsafe with `UnshareFlags::FILES` alone, and `unsafe` is forbidden here")]
    rustix::thread::unshare(flags).context("this system allows no user namespaces")?;
    let write = |file: &str, text: String| {
        fs::write(file, text).context(format!("this system allows no user namespaces: `{file}`"))
    };
    // Without this, an ordinary user may not name its group.
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{user} {user} 1", user = user.as_raw()))?;
    write("/proc/self/gid_map", format!("{group} {group} 1", group = group.as_raw()))
}

/// Gives up what the namespaces gave. Nothing that is started from now on has more rights, be it of root or `setuid`.
fn give_up_rights() -> Result<(), NotConfined> {
    set_no_new_privs(true).context("rights cannot be given up")?;
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).context("rights cannot be given up")
}

/// The paths without links.
fn real(paths: &[PathBuf]) -> Result<Vec<PathBuf>, NotConfined> {
    let real = |path: &PathBuf| path.canonicalize().context(format!("`{}`", path.display()));
    paths.iter().map(real).collect()
}

/// The folders above these paths that could be renamed, and others put in their places.
fn pinned(paths: &[PathBuf]) -> Vec<PathBuf> {
    let above = paths.iter().flat_map(|path| path.ancestors().skip(1));
    above.filter(|folder| folder.parent().is_some_and(is_changeable)).map(Path::to_owned).collect()
}

/// Whether this user can change what is in a folder. Its owner can: if need be, by permitting it first.
fn is_changeable(folder: &Path) -> bool {
    let owns = fs::metadata(folder).is_ok_and(|folder| folder.uid() == geteuid().as_raw());
    owns || access(folder, Access::WRITE_OK).is_ok()
}
