//! The mounts of this process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

use super::devices::{NEW_TERMINAL, TERMINALS};
use super::{ErrorContext, SandboxError};

/// Options that a remount must repeat, because it may not remove them.
const LOCKED_OPTIONS: [(&str, MountFlags); 3] =
    [("nosuid", MountFlags::NOSUID), ("nodev", MountFlags::NODEV), ("noexec", MountFlags::NOEXEC)];

#[derive(Debug, PartialEq)]
pub(super) struct Mount {
    pub(super) device: String,
    /// The mounted part of the file system.
    pub(super) root: PathBuf,
    pub(super) point: PathBuf,
    locked: MountFlags,
    pub(super) kind: String,
    /// The layers of an overlay.
    pub(super) layers: Vec<PathBuf>,
}

/// The mounts of this process, in creation order.
pub(super) struct MountTable(pub(super) Vec<Mount>);

impl MountTable {
    pub(super) fn read() -> Result<Self, SandboxError> {
        Ok(Self::parse(&fs::read("/proc/self/mountinfo").context("the list of mounts")?))
    }

    pub(super) fn parse(list: &[u8]) -> Self {
        Self(list.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
    }

    /// Makes the selected mount points read-only. The last mount at a path is the visible one.
    pub(super) fn make_read_only(&self, is_selected: impl Fn(&Path) -> bool) -> Result<(), SandboxError> {
        let visible: BTreeMap<&Path, MountFlags> =
            self.0.iter().map(|mount| (mount.point.as_path(), mount.locked)).collect();
        for (point, locked) in visible.into_iter().filter(|(point, _)| is_selected(point)) {
            let remounted = mount_remount(point, MountFlags::BIND | MountFlags::RDONLY | locked, "");
            let Err(error) = remounted else { continue };
            // A mount below another cannot be remounted, and is not reachable. Only the visible one at the path counts.
            if is_read_only(point) == Ok(false) {
                return Err(SandboxError(format!("`{}` cannot be made read-only: {error}", point.display())));
            }
        }
        Ok(())
    }
}

pub(super) fn is_read_only(path: &Path) -> rustix::io::Result<bool> {
    Ok(statvfs(path)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Mounts an inaccessible device over a file, and an empty folder over a folder.
pub(super) fn hide(path: &Path) -> rustix::io::Result<()> {
    let locked = LOCKED_OPTIONS.iter().map(|(_, flag)| *flag).collect::<MountFlags>();
    if path.is_dir() {
        return mount("none", path, "tmpfs", MountFlags::RDONLY | locked, c"size=4k,mode=700");
    }
    mount_bind("/dev/null", path)?;
    mount_remount(path, MountFlags::BIND | MountFlags::RDONLY | locked, "")
}

/// Mounts an empty folder of limited size, because it is in memory.
pub(super) fn mount_empty(folder: &Path) -> rustix::io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", folder, "tmpfs", flags, c"mode=0700,size=256m")
}

/// Mounts private terminals: this process sees no others, and others do not see them.
pub(super) fn mount_own_terminals() -> Result<(), SandboxError> {
    if !Path::new(TERMINALS).is_dir() {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let mounted = mount("devpts", TERMINALS, "devpts", flags, c"newinstance,ptmxmode=0666,mode=0620");
    mounted.context("terminals of its own cannot be mounted")?;
    // As a link it already leads to the new mount.
    if !Path::new(NEW_TERMINAL).is_symlink() && Path::new(NEW_TERMINAL).exists() {
        mount_bind("/dev/pts/ptmx", NEW_TERMINAL).context(format!("`{NEW_TERMINAL}` cannot be mounted"))?;
    }
    Ok(())
}

pub(super) fn mount_own_proc() -> Result<(), SandboxError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).context("a `/proc` of its own cannot be mounted")
}

/// Parses a line with the fields: mount id, parent id, device, root, point, options, optional fields, `-`, type, source, options of the file system.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = String::from_utf8_lossy(fields.next()?).into_owned();
    let (root, point, options) = (fields.next()?, fields.next()?, fields.next()?);
    let mut locked = MountFlags::empty();
    for option in options.split(|byte| *byte == b',') {
        locked.extend(LOCKED_OPTIONS.iter().filter(|(name, _)| name.as_bytes() == option).map(|(_, flag)| *flag));
    }
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
    let layers = if kind == "overlay" { layers(fields.nth(1).unwrap_or_default()) } else { Vec::new() };
    Some(Mount { device, root: unescape(root), point: unescape(point), locked, kind, layers })
}

fn layers(options: &[u8]) -> Vec<PathBuf> {
    let options = options.split(|byte| *byte == b',');
    let folders = options.filter_map(|option| {
        let is_equals = |byte: &u8| *byte == b'=';
        let (name, folders) = option.split_at_checked(option.iter().position(is_equals)? + 1)?;
        matches!(name, b"upperdir=" | b"lowerdir=" | b"lowerdir+=" | b"datadir+=").then_some(folders)
    });
    let folders = folders.flat_map(|folders| folders.split(|byte| *byte == b':'));
    folders.map(unescape).filter(|folder| folder.is_absolute()).collect()
}

/// Decodes octal escapes such as `\040`.
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
    fn mounts_are_read_with_their_options_and_names_are_unescaped() {
        let list = b"1 0 8:1 / / rw,relatime - ext4 /dev/sda rw\n\
                     3 1 0:6 /x /a\\040b\\134 rw,nodev,noexec shared:1 - tmpfs tmpfs rw\n\
                     4 1 0:7 / /merged rw shared:1 master:2 - overlay overlay rw,lowerdir=/l1:/l\\0402,upperdir=/up,workdir=/work\n";
        let mount = |device: &str, root: &str, point: &str, locked, kind: &str, layers: &[&str]| Mount {
            device: device.to_owned(),
            root: root.into(),
            point: point.into(),
            locked,
            kind: kind.to_owned(),
            layers: layers.iter().map(PathBuf::from).collect(),
        };
        let expected = [
            mount("8:1", "/", "/", MountFlags::empty(), "ext4", &[]),
            mount("0:6", "/x", "/a b\\", MountFlags::NODEV | MountFlags::NOEXEC, "tmpfs", &[]),
            mount("0:7", "/", "/merged", MountFlags::empty(), "overlay", &["/l1", "/l 2", "/up"]),
        ];
        assert_eq!(MountTable::parse(list).0, expected);
    }
}
