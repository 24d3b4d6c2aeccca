//! What a confined program may do.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::NotConfined;

/// What a confined program may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What it cannot change: files, and folders with all that is in them. They have to exist.
    pub read_only: Vec<PathBuf>,
    /// Files that it cannot read either. They need not exist.
    pub hidden: Vec<PathBuf>,
    /// If given, it can change nothing but what is in these folders.
    pub writable: Option<Vec<PathBuf>>,
    /// A folder that is empty for it, which it can write to, and which is gone when it has ended; others see what was there. It is told of
    /// it as `TMPDIR`.
    pub temporary: Option<PathBuf>,
    /// Whether it has a network.
    pub network: bool,
}

/// Everything is allowed.
impl Default for Policy {
    fn default() -> Self {
        Self { read_only: Vec::new(), hidden: Vec::new(), writable: None, temporary: None, network: true }
    }
}

const READ_ONLY: &str = "--read-only";
const HIDDEN: &str = "--hidden";
const WRITABLE: &str = "--writable";
const NOTHING_WRITABLE: &str = "--nothing-writable";
const TEMPORARY: &str = "--temporary";
const NO_NETWORK: &str = "--no-network";
const END: &str = "--";

impl Policy {
    /// It as arguments, for [`read`](Self::read). Words and not JSON: paths need not be text.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let paths = |option: &'static str, paths: &[PathBuf]| {
            let words = paths.iter().flat_map(|path| [OsString::from(option), path.into()]);
            words.collect::<Vec<_>>()
        };
        let mut arguments = paths(READ_ONLY, &self.read_only);
        arguments.extend(paths(HIDDEN, &self.hidden));
        if let Some(writable) = &self.writable {
            arguments.push(NOTHING_WRITABLE.into());
            arguments.extend(paths(WRITABLE, writable));
        }
        arguments.extend(paths(TEMPORARY, self.temporary.as_slice()));
        if !self.network {
            arguments.push(NO_NETWORK.into());
        }
        arguments.push(END.into());
        arguments
    }

    /// Reads it from arguments; what is left of them is the command.
    pub(super) fn read<I: Iterator<Item = OsString>>(mut arguments: I) -> Result<(Self, I), NotConfined> {
        let mut policy = Self::default();
        while let Some(option) = arguments.next() {
            let option = option.as_os_str();
            let mut path = || match arguments.next() {
                Some(path) => Ok(PathBuf::from(path)),
                None => Err(NotConfined(format!("`{}` lacks its path", option.display()))),
            };
            if option == OsStr::new(READ_ONLY) {
                policy.read_only.push(path()?);
            } else if option == OsStr::new(HIDDEN) {
                policy.hidden.push(path()?);
            } else if option == OsStr::new(WRITABLE) {
                policy.writable.get_or_insert_default().push(path()?);
            } else if option == OsStr::new(TEMPORARY) {
                policy.temporary = Some(path()?);
            } else if option == OsStr::new(NOTHING_WRITABLE) {
                policy.writable.get_or_insert_default();
            } else if option == OsStr::new(NO_NETWORK) {
                policy.network = false;
            } else if option == OsStr::new(END) {
                return Ok((policy, arguments));
            } else {
                return Err(NotConfined(format!("there is no option `{}`", option.display())));
            }
        }
        Err(NotConfined(format!("`{END}` and a command are missing")))
    }
}
