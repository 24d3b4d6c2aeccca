//! The mounts of this process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

use super::{Context, NotConfined};

/// Options that a remount has to repeat: it may not take them away.
const KEPT: [(&str, MountFlags); 3] =
    [("nosuid", MountFlags::NOSUID), ("nodev", MountFlags::NODEV), ("noexec", MountFlags::NOEXEC)];

/// Makes read-only what is mounted in places that are meant.
pub(super) fn make_read_only(is_meant: impl Fn(&Path) -> bool) -> Result<(), NotConfined> {
    let list = fs::read("/proc/self/mountinfo").context("the list of mounts")?;
    for (point, kept) in mounts(&list).into_iter().filter(|(point, _)| is_meant(point)) {
        let remounted = mount_remount(&point, MountFlags::BIND | MountFlags::RDONLY | kept, "");
        let Err(error) = remounted else { continue };
        // What lies below another mount cannot be remounted, nor be written to. What counts is what is found at the path.
        match statvfs(&point) {
            Ok(found) if !found.f_flag.contains(StatVfsMountFlags::RDONLY) => {
                return Err(NotConfined(format!("`{}` cannot be made read-only: {error}", point.display())));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Puts a device in the place of a file, where devices cannot be opened; and nothing at all in the place of a folder.
pub(super) fn hide(path: &Path) -> rustix::io::Result<()> {
    let kept = KEPT.iter().map(|(_, flag)| *flag).collect::<MountFlags>();
    if path.is_dir() {
        return mount("none", path, "tmpfs", MountFlags::RDONLY | kept, c"size=4k,mode=700");
    }
    mount_bind("/dev/null", path)?;
    mount_remount(path, MountFlags::BIND | MountFlags::RDONLY | kept, "")
}

/// Puts an empty folder in the place of one, of a bounded size: it is memory.
pub(super) fn empty(folder: &Path) -> rustix::io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", folder, "tmpfs", flags, c"mode=0700,size=256m")
}

/// Fails unless a path is on a read-only mount.
pub(super) fn check_read_only(path: &Path) -> Result<(), NotConfined> {
    let found = statvfs(path).context(format!("`{}`", path.display()))?;
    if !found.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(NotConfined(format!("`{}` is not read-only, though it was mounted so", path.display())));
    }
    Ok(())
}

/// Where something is mounted, with the options to keep. Of several mounts in one place, the last is the one that is seen.
fn mounts(list: &[u8]) -> BTreeMap<PathBuf, MountFlags> {
    let lines = list.split(|byte| *byte == b'\n');
    let mounts = lines.filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let (point, options) = (fields.next()?, fields.next()?);
        let mut kept = MountFlags::empty();
        for option in options.split(|byte| *byte == b',') {
            kept.extend(KEPT.iter().filter(|(name, _)| name.as_bytes() == option).map(|(_, flag)| *flag));
        }
        Some((unescape(point), kept))
    });
    mounts.collect()
}

/// Spaces and the like are written as three octal digits behind a backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let octal = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'))
            }
            _ => None,
        };
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_of_a_place_counts_and_names_are_unescaped() {
        let list = b"1 0 8:1 / / rw,relatime - ext4 /dev/sda rw\n\
                     2 1 0:5 / /a\\040b\\134 rw,nosuid - tmpfs tmpfs rw\n\
                     3 1 0:6 / /a\\040b\\134 rw,nodev,noexec shared:1 - tmpfs tmpfs rw\n";
        let expected = [
            (PathBuf::from("/"), MountFlags::empty()),
            (PathBuf::from("/a b\\"), MountFlags::NODEV | MountFlags::NOEXEC),
        ];
        assert_eq!(mounts(list), BTreeMap::from(expected));
    }
}
