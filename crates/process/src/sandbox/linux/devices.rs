//! Input and display devices of the user.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

pub(super) const TERMINALS: &str = "/dev/pts";

pub(super) const NEW_TERMINAL: &str = "/dev/ptmx";

/// Prefixes of the names of terminals, screens and keyboards, with which a process could type for the user or change the display. Not serial ports of
/// other hardware, nor `/dev/tty`, which is the terminal of the process itself.
const NAMES: [&str; 6] = ["console", "hvc", "input", "ttyS", "uinput", "vcs"];

/// Returns the terminals, screens and keyboards that this user can open, except those in [`TERMINALS`].
pub(super) fn input_devices() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_input_device));
    named.map(|entry| entry.path()).filter(|path| can_open(path) && !path.is_symlink()).collect()
}

fn is_input_device(name: &str) -> bool {
    let is_console = |number: &str| number.starts_with(|digit: char| digit.is_ascii_digit());
    name.strip_prefix("tty").is_some_and(is_console) || NAMES.iter().any(|begin| name.starts_with(begin))
}

fn can_open(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok() || access(path, Access::READ_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_and_keyboards_are_told_from_other_devices() {
        for name in ["tty0", "tty63", "ttyS0", "console", "hvc0", "vcs", "vcsa1", "uinput", "input"] {
            assert!(is_input_device(name), "{name}");
        }
        for name in ["tty", "ttyUSB0", "ttyACM0", "null", "shm", "kvm", "ptmx"] {
            assert!(!is_input_device(name), "{name}");
        }
    }
}
