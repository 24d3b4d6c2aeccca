//! The paths of the files of a policy: a file may be visible at several, through several mounts of its file system.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::geteuid;

use super::mounts::{Mount, MountTable, is_read_only};
use super::{ErrorContext, SandboxError};

/// The device and inode, which identify a file.
pub(super) type Identity = (u64, u64);

pub(super) struct PolicyTarget {
    pub(super) path: PathBuf,
    identity: Identity,
}

impl PolicyTarget {
    pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<Self>, SandboxError> {
        paths.iter().map(|path| Self::at(path).context(format!("`{}`", path.display()))).collect()
    }

    pub(super) fn find_existing(paths: &[PathBuf]) -> Vec<Self> {
        paths.iter().filter_map(|path| Self::at(path).ok()).collect()
    }

    fn at(path: &Path) -> std::io::Result<Self> {
        let path = path.canonicalize()?;
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }

    pub(super) fn check_read_only(&self, table: &MountTable) -> Result<(), SandboxError> {
        for path in table.visible_paths(&self.path) {
            // Another file may be mounted there. Content of a hidden folder is not visible at all.
            let is_meant = path == self.path || self.is_at(&path);
            if is_meant && !matches!(is_read_only(&path), Ok(true) | Err(Errno::NOENT)) {
                let path = path.display();
                return Err(SandboxError(format!("`{path}` can still be written to, though it was made read-only")));
            }
        }
        Ok(())
    }

    /// Fails if the target is visible at one of its paths.
    pub(super) fn check_hidden(&self, table: &MountTable) -> Result<(), SandboxError> {
        match table.visible_paths(&self.path).iter().find(|path| self.is_at(path)) {
            Some(path) => Err(SandboxError(format!("`{}` can still be read, though it was hidden", path.display()))),
            None => Ok(()),
        }
    }

    fn is_at(&self, path: &Path) -> bool {
        identity(path).is_ok_and(|found| found == self.identity)
    }
}

/// Returns `true` if this user can reach a path, or could after changing the permissions of its own folders.
fn can_be_reached(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            // The first accessible folder is the one that blocks access to the rest.
            let closed = path.ancestors().skip(1).find_map(|folder| fs::metadata(folder).ok());
            closed.is_some_and(|folder| folder.uid() == geteuid().as_raw())
        }
        found => found.is_ok(),
    }
}

pub(super) fn identity(path: &Path) -> std::io::Result<Identity> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

impl MountTable {
    /// Returns all paths at which a file or folder, or a part of the folder, is visible. The path itself is the first.
    pub(super) fn visible_paths(&self, path: &Path) -> Vec<PathBuf> {
        let mut visible = vec![path.to_owned()];
        let mut checked = 0;
        // The layers of an overlay may be visible at several paths in turn.
        while let Some(current) = visible.get(checked).cloned() {
            checked += 1;
            for other in self.same_file_system(&current).into_iter().chain(self.through_overlays(&current)) {
                if !visible.contains(&other) && can_be_reached(&other) {
                    visible.push(other);
                }
            }
        }
        visible
    }

    fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let above = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        // The last mount at a path is the visible one.
        above.max_by_key(|mount| mount.point.as_os_str().len())
    }

    fn same_file_system(&self, path: &Path) -> Vec<PathBuf> {
        let Some((mount, location)) = self.mount_of(path).and_then(|mount| Some((mount, mount.location(path)?))) else {
            return Vec::new();
        };
        let others = self.0.iter().filter(|other| other.device == mount.device);
        others.filter_map(|other| other.visible_path(&location).filter(|other| !other.starts_with(path))).collect()
    }

    fn through_overlays(&self, path: &Path) -> Vec<PathBuf> {
        let of_overlay = self.mount_of(path).filter(|mount| !mount.layers.is_empty());
        let location = of_overlay.and_then(|mount| Some((mount, mount.location(path)?)));
        let below = location.into_iter().flat_map(|(mount, location)| {
            let relative = location.strip_prefix("/").unwrap_or(&location).to_owned();
            mount.layers.iter().map(move |layer| join(layer, &relative))
        });
        let above = self.0.iter().flat_map(|mount| {
            let inside = mount.layers.iter().filter_map(|layer| path.strip_prefix(layer).ok());
            inside.filter_map(|inside| mount.visible_path(&Path::new("/").join(inside)))
        });
        below.chain(above).collect()
    }
}

impl Mount {
    /// Converts a path below this mount to a location on the file system.
    fn location(&self, path: &Path) -> Option<PathBuf> {
        Some(join(&self.root, path.strip_prefix(&self.point).ok()?))
    }

    /// Returns the path of a location, or of a part of it, below this mount.
    fn visible_path(&self, location: &Path) -> Option<PathBuf> {
        match location.strip_prefix(&self.root) {
            Ok(inside) => Some(join(&self.point, inside)),
            Err(_) => self.root.starts_with(location).then(|| self.point.clone()),
        }
    }
}

/// Joins paths, without a trailing slash for an empty one.
fn join(folder: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { folder.to_owned() } else { folder.join(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"1 0 8:1 / / rw - ext4 /dev/sda rw\n\
                            2 1 0:30 /@home /home rw - btrfs /dev/sdb rw\n\
                            3 1 0:30 / /mnt/top rw - btrfs /dev/sdb rw\n\
                            4 1 0:30 /@home/u/.config /srv/settings rw - btrfs /dev/sdb rw\n\
                            5 1 0:30 /@home/u/.config/a/logs /srv/logs rw - btrfs /dev/sdb rw\n\
                            6 1 0:30 /@home/other /srv/other rw - btrfs /dev/sdb rw\n\
                            7 1 0:40 / /merged rw - overlay overlay rw,lowerdir=/low,upperdir=/srv/settings,workdir=/w\n";

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_folder_is_found_through_every_mount_of_its_file_system() {
        let table = MountTable::parse(MOUNTS);
        let found = table.same_file_system(Path::new("/home/u/.config/a"));
        assert_eq!(found, paths(&["/mnt/top/@home/u/.config/a", "/srv/settings/a", "/srv/logs"]));
        assert_eq!(table.same_file_system(Path::new("/etc/a")), paths(&[]));
    }

    #[test]
    fn a_folder_that_can_still_be_written_to_fails_the_check() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let table = MountTable::read().unwrap();
        let [target] = &PolicyTarget::find(std::slice::from_ref(&path)).unwrap()[..] else { panic!("one path") };
        let expected = format!("`{}` can still be written to, though it was made read-only", path.display());
        assert_eq!(target.check_read_only(&table), Err(SandboxError(expected)));
    }

    #[test]
    fn a_file_that_can_still_be_read_fails_the_check_until_another_is_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("key");
        fs::write(&path, "secret").unwrap();
        let table = MountTable::read().unwrap();
        let [target] = &PolicyTarget::find_existing(&[path.clone(), folder.path().join("none")])[..] else {
            panic!("one file")
        };
        let expected = format!("`{}` can still be read, though it was hidden", path.display());
        assert_eq!(target.check_hidden(&table), Err(SandboxError(expected)));
        // The old file is kept, so that the new one gets another inode.
        fs::rename(&path, folder.path().join("old")).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(target.check_hidden(&table), Ok(()));
    }

    #[test]
    fn a_file_is_found_through_overlays_in_both_directions() {
        let table = MountTable::parse(MOUNTS);
        assert_eq!(table.through_overlays(Path::new("/merged/a/b")), paths(&["/low/a/b", "/srv/settings/a/b"]));
        assert_eq!(table.through_overlays(Path::new("/srv/settings/a")), paths(&["/merged/a"]));
        assert_eq!(table.through_overlays(Path::new("/low")), paths(&["/merged"]));
    }
}
