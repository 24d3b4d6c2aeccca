//! Copies of pinned files at their paths.
//!
//! INVARIANT: in a protected folder, no copy is a mount point. The kernel removes a mount in every namespace when its mount point is deleted or
//! replaced. So the program gets a private view of the whole folder and of the protected folders above: a file system in memory with the copies, and
//! with all other entries mounted on placeholders that no outside process can replace. A writable folder gets no view, because the view would swallow
//! new files; its copies are mounted on the files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, FileType, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_move, mount_remount, unmount,
};

use super::devices::TERMINALS;
use super::locations::{Identity, identity};
use super::mounts::is_read_only;
use super::pins::CheckedFile;
use super::{ErrorContext, LaunchError, SandboxError};

/// Folders that exist on nearly all systems, one of which is used temporarily.
const SCRATCH_FOLDERS: [&str; 5] = [TERMINALS, "/dev/shm", "/tmp", "/run", "/mnt"];

/// The largest number of entries in a view: each one is a mount.
const MAX_ENTRIES: usize = 2_000;

const FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// The copies of pinned files, to be checked before the program starts.
pub(super) struct PinnedCopies {
    copies: BTreeMap<PathBuf, Identity>,
}

impl PinnedCopies {
    /// Fails if one of the paths leads to another file, as an absolute path or relative to the current folder.
    pub(super) fn check(&self) -> Result<(), LaunchError> {
        self.check_in(&std::env::current_dir().context("the current folder")?)
    }

    fn check_in(&self, current: &Path) -> Result<(), LaunchError> {
        let is_copy = |path: &Path, copy: &Identity| identity(path).is_ok_and(|found| found == *copy);
        for (path, copy) in &self.copies {
            let relative = path.strip_prefix(current);
            if !is_copy(path, copy) || relative.is_ok_and(|path| !is_copy(path, copy)) {
                return Err(LaunchError::PinMismatch(path.clone()));
            }
        }
        Ok(())
    }
}

pub(super) fn install_copies(
    files: &[CheckedFile],
    is_protected: impl Fn(&Path) -> bool,
) -> Result<PinnedCopies, LaunchError> {
    let mut by_path: BTreeMap<&Path, &CheckedFile> = BTreeMap::new();
    for file in files {
        // A file may have several names, but only one content.
        if by_path.insert(&file.path, file).is_some_and(|other| other.bytes != file.bytes) {
            return Err(LaunchError::PinMismatch(file.name.clone()));
        }
    }
    if files.is_empty() {
        return Ok(PinnedCopies { copies: BTreeMap::new() });
    }
    let scratch = scratch(files)?;
    let protected_above = |path: &Path| {
        let folders = path.ancestors().skip(1).take_while(|folder| folder.parent().is_some() && is_protected(folder));
        folders.map(Path::to_owned).collect::<Vec<_>>()
    };
    // The name may be a link, which is protected as well.
    let folders: BTreeSet<PathBuf> =
        files.iter().flat_map(|file| [&file.path, &file.name]).flat_map(|path| protected_above(path)).collect();
    let mut copies = BTreeMap::new();
    // Inner folders first, so that the view of a folder shows their views.
    for folder in folders.iter().rev() {
        let Some(entries) = entries(folder).map_err(|error| view_error(error, folder))? else { continue };
        let inside: Vec<&CheckedFile> =
            by_path.values().filter(|file| file.path.parent() == Some(folder)).copied().collect();
        copies.extend(show_view(folder, &inside, entries, scratch)?);
    }
    for (path, file) in by_path {
        if !copies.contains_key(path) {
            copies.insert(path.to_owned(), mount_copy(file, scratch)?);
        }
    }
    let copies = files.iter().map(|file| (file.name.clone(), copies[&file.path])).collect();
    Ok(PinnedCopies { copies })
}

/// Returns the entries of a folder, unless there are too many.
fn entries(folder: &Path) -> io::Result<Option<Vec<(OsString, FileType)>>> {
    let entries = fs::read_dir(folder)?.take(MAX_ENTRIES + 1);
    let entries = entries.map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))));
    let entries = entries.collect::<io::Result<Vec<_>>>()?;
    Ok(Some(entries).filter(|entries| entries.len() <= MAX_ENTRIES))
}

/// Mounts a view of a folder with its current entries and the copies of some files.
fn show_view(
    folder: &Path,
    files: &[&CheckedFile],
    entries: Vec<(OsString, FileType)>,
    scratch: &Path,
) -> Result<Vec<(PathBuf, Identity)>, LaunchError> {
    let failed = |error| view_error(error, folder);
    let mode = fs::metadata(folder).map_err(failed)?.permissions().mode() & 0o777;
    mount_memory(scratch)?;
    for (name, kind) in entries {
        let (entry, shown) = (folder.join(&name), scratch.join(&name));
        if files.iter().all(|file| file.path != entry) {
            show_entry(&entry, kind, &shown)?;
        }
    }
    let mut copies = Vec::new();
    for file in files {
        let copy = scratch.join(file.path.file_name().unwrap_or_default());
        copies.push((file.path.clone(), write_copy(file, &copy)?));
    }
    fs::set_permissions(scratch, Permissions::from_mode(mode)).map_err(failed)?;
    make_read_only(scratch).map_err(failed)?;
    mount_move(scratch, folder).map_err(|error| failed(error.into()))?;
    Ok(copies)
}

fn show_entry(entry: &Path, kind: FileType, shown: &Path) -> Result<(), LaunchError> {
    let made = if kind.is_symlink() {
        fs::read_link(entry).and_then(|target| symlink(target, shown))
    } else if kind.is_dir() {
        fs::create_dir(shown).and_then(|()| Ok(mount_bind_recursive(entry, shown)?))
    } else {
        File::create_new(shown).and_then(|_| Ok(mount_bind_recursive(entry, shown)?))
    };
    match made {
        // The folder may have been replaced by an unprotected one.
        Ok(()) if !kind.is_symlink() && is_read_only(shown) == Ok(false) => {
            Err(LaunchError::PinMismatch(entry.to_owned()))
        }
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // The entry was deleted. A link was not created then.
            let removed = if kind.is_dir() { fs::remove_dir(shown) } else { fs::remove_file(shown) };
            removed.or_else(|error| if kind.is_symlink() { Ok(()) } else { Err(view_error(error, entry)) })
        }
        Err(error) => Err(view_error(error, entry)),
    }
}

/// Mounts the copy on the file, where it stays until another file is renamed over that path.
fn mount_copy(file: &CheckedFile, scratch: &Path) -> Result<Identity, LaunchError> {
    let failed = |error| view_error(error, &file.path);
    mount_memory(scratch)?;
    let copy = scratch.join("copy");
    let identity = write_copy(file, &copy)?;
    mount_bind(&copy, &file.path).map_err(|error| failed(error.into()))?;
    make_read_only(&file.path).map_err(failed)?;
    // The copy stays mounted.
    unmount(scratch, UnmountFlags::DETACH).map_err(|error| failed(error.into()))?;
    Ok(identity)
}

fn write_copy(file: &CheckedFile, copy: &Path) -> Result<Identity, LaunchError> {
    let mut options = fs::OpenOptions::new();
    let made = options.write(true).create_new(true).mode(file.mode & 0o777).open(copy);
    let made = made.and_then(|mut made| made.write_all(&file.bytes)).and_then(|()| identity(copy));
    Ok(made.context(format!("the pinned `{}` cannot be copied", file.path.display()))?)
}

fn mount_memory(scratch: &Path) -> Result<(), SandboxError> {
    mount("tmpfs", scratch, "tmpfs", FLAGS, c"mode=0700").context("pinned files cannot be copied")
}

fn make_read_only(point: &Path) -> io::Result<()> {
    Ok(mount_remount(point, MountFlags::BIND | MountFlags::RDONLY | FLAGS, "")?)
}

/// Returns a folder for temporary use that contains none of the files.
fn scratch(files: &[CheckedFile]) -> Result<&'static Path, SandboxError> {
    let is_free = |folder: &&Path| folder.is_dir() && files.iter().all(|file| !file.path.starts_with(folder));
    let scratch = SCRATCH_FOLDERS.iter().map(Path::new).find(is_free);
    scratch.ok_or_else(|| SandboxError("no folder is free for copies of pinned files".to_owned()))
}

/// Converts an error: usually, the file was replaced at this moment.
fn view_error(error: io::Error, path: &Path) -> LaunchError {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput => {
            LaunchError::PinMismatch(path.to_owned())
        }
        _ => SandboxError(format!("`{}` cannot be shown with pinned files: {error}", path.display())).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_does_not_start_with_another_file_at_the_path_of_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&path, "text").unwrap();
        fs::write(&other, "text").unwrap();
        let checked = PinnedCopies { copies: BTreeMap::from([(path.clone(), identity(&path).unwrap())]) };
        assert!(checked.check_in(Path::new("/nowhere")).is_ok());
        // The test does not run in that folder, so the file is not found by its name alone.
        assert!(matches!(checked.check_in(folder.path()), Err(LaunchError::PinMismatch(file)) if file == path));
        fs::rename(&other, &path).unwrap();
        assert!(matches!(checked.check_in(Path::new("/nowhere")), Err(LaunchError::PinMismatch(file)) if file == path));
    }
}
