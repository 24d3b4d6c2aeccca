//! Devices with which a person types or sees.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The terminals that others may have open, below `/dev`.
pub(super) const TERMINALS: &str = "/dev/pts";

/// The device that makes new terminals.
pub(super) const NEW_TERMINAL: &str = "/dev/ptmx";

/// How the names of terminals, screens and keyboards begin: whoever opens one can type for the person, or change what they see. Serial ports of other hardware are not
/// among them, nor is `/dev/tty`: it is the terminal of whoever opens it.
const NAMES: [&str; 6] = ["console", "hvc", "input", "ttyS", "uinput", "vcs"];

/// The terminals, screens and keyboards that this user can open, but for those in [`TERMINALS`].
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
