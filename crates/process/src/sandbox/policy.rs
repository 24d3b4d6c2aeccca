//! The policy of a sandbox, and its form as arguments of the launcher.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::SandboxError;

/// The limits on a confined program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Files and folders that are read-only. They must exist.
    pub read_only: Vec<PathBuf>,
    /// Files and folders that cannot even be read. They need not exist.
    pub hidden: Vec<PathBuf>,
    /// If set, the only writable folders.
    pub writable: Option<Vec<PathBuf>>,
    /// A private empty folder that is discarded at the end; other processes see the original. The program gets it as `TMPDIR`.
    pub temporary: Option<PathBuf>,
    /// `true` if the program has network access.
    pub network: bool,
    /// Files that must have a given content.
    pub pinned: Vec<PinnedFile>,
}

/// A file with the hash of its content. The launcher reads the file once and compares the hash. With namespaces, the program sees exactly the checked
/// bytes at that path: in a [read-only](SandboxPolicy::read_only) folder always, elsewhere until the file is deleted or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    /// The path of a regular file or of a link to one.
    pub path: PathBuf,
    /// The SHA-256 of the content.
    pub sha256: [u8; 32],
}

/// A policy that allows everything.
impl Default for SandboxPolicy {
    fn default() -> Self {
        Self {
            read_only: Vec::new(),
            hidden: Vec::new(),
            writable: None,
            temporary: None,
            network: true,
            pinned: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Method {
    #[default]
    Namespaces,
    Landlock,
    /// No confinement, only a session.
    Session,
}

const READ_ONLY: &str = "--read-only";
const HIDDEN: &str = "--hidden";
const WRITABLE: &str = "--writable";
const NOTHING_WRITABLE: &str = "--nothing-writable";
const TEMPORARY: &str = "--temporary";
const NO_NETWORK: &str = "--no-network";
const PINNED: &str = "--pinned";
const LANDLOCK: &str = "--landlock";
const SESSION: &str = "--session";
pub(super) const WAIT: &str = "--wait";
pub(super) const END: &str = "--";

pub(super) struct Arguments<I> {
    pub(super) policy: SandboxPolicy,
    pub(super) method: Method,
    /// `true` if the command comes as a [message](super::message).
    pub(super) waits: bool,
    pub(super) command: I,
}

impl Method {
    fn option(self) -> Option<&'static str> {
        match self {
            Self::Namespaces => None,
            Self::Landlock => Some(LANDLOCK),
            Self::Session => Some(SESSION),
        }
    }
}

impl PinnedFile {
    pub(super) fn arguments(&self) -> [OsString; 3] {
        let hash: String = self.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        [PINNED.into(), hash.into(), self.path.clone().into()]
    }
}

impl SandboxPolicy {
    /// Returns the policy as arguments for [`read`](Self::read). Words instead of JSON, because paths need not be text.
    pub(super) fn arguments(&self, method: Method) -> Vec<OsString> {
        let paths = |option: &'static str, paths: &[PathBuf]| {
            let words = paths.iter().flat_map(|path| [OsString::from(option), path.into()]);
            words.collect::<Vec<_>>()
        };
        let mut arguments: Vec<OsString> = method.option().into_iter().map(OsString::from).collect();
        arguments.extend(paths(READ_ONLY, &self.read_only));
        arguments.extend(paths(HIDDEN, &self.hidden));
        if let Some(writable) = &self.writable {
            arguments.push(NOTHING_WRITABLE.into());
            arguments.extend(paths(WRITABLE, writable));
        }
        arguments.extend(paths(TEMPORARY, self.temporary.as_slice()));
        if !self.network {
            arguments.push(NO_NETWORK.into());
        }
        arguments.extend(self.pinned.iter().flat_map(PinnedFile::arguments));
        arguments.push(END.into());
        arguments
    }

    /// Reads the policy from arguments; the rest is the command.
    pub(super) fn read<I: Iterator<Item = OsString>>(mut arguments: I) -> Result<Arguments<I>, SandboxError> {
        let (mut policy, mut method, mut waits) = (Self::default(), Method::default(), false);
        while let Some(option) = arguments.next() {
            let option = option.as_os_str();
            let mut value = || match arguments.next() {
                Some(value) => Ok(value),
                None => Err(SandboxError(format!("the option `{}` lacks a value", option.display()))),
            };
            if option == OsStr::new(READ_ONLY) {
                policy.read_only.push(value()?.into());
            } else if option == OsStr::new(HIDDEN) {
                policy.hidden.push(value()?.into());
            } else if option == OsStr::new(WRITABLE) {
                policy.writable.get_or_insert_default().push(value()?.into());
            } else if option == OsStr::new(TEMPORARY) {
                policy.temporary = Some(value()?.into());
            } else if option == OsStr::new(NOTHING_WRITABLE) {
                policy.writable.get_or_insert_default();
            } else if option == OsStr::new(NO_NETWORK) {
                policy.network = false;
            } else if option == OsStr::new(PINNED) {
                let sha256 = hash(&value()?)?;
                policy.pinned.push(PinnedFile { path: value()?.into(), sha256 });
            } else if option == OsStr::new(LANDLOCK) {
                method = Method::Landlock;
            } else if option == OsStr::new(SESSION) {
                method = Method::Session;
            } else if option == OsStr::new(WAIT) {
                waits = true;
            } else if option == OsStr::new(END) {
                return Ok(Arguments { policy, method, waits, command: arguments });
            } else {
                return Err(SandboxError(format!("unknown option `{}`", option.display())));
            }
        }
        Err(SandboxError(format!("`{END}` and a command are missing")))
    }
}

fn hash(text: &OsStr) -> Result<[u8; 32], SandboxError> {
    let invalid = || SandboxError(format!("invalid SHA-256 `{}`; expected 64 hexadecimal digits", text.display()));
    let digits = text.to_str().filter(|text| text.len() == 64 && text.is_ascii()).ok_or_else(invalid)?;
    let mut bytes = [0; 32];
    for (byte, start) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&digits[start..start + 2], 16).map_err(|_| invalid())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_it_was_written() {
        let policy = SandboxPolicy {
            read_only: vec!["/a b".into()],
            hidden: vec!["/c".into()],
            writable: Some(vec!["/d".into()]),
            temporary: Some("/e".into()),
            network: false,
            pinned: vec![PinnedFile { path: "/f".into(), sha256: std::array::from_fn(|byte| byte as u8 * 8) }],
        };
        for method in [Method::Namespaces, Method::Landlock, Method::Session] {
            let arguments = policy.arguments(method).into_iter().chain(["program".into()]);
            let read = SandboxPolicy::read(arguments).unwrap();
            assert_eq!((read.policy, read.method, read.waits), (policy.clone(), method, false));
            assert_eq!(read.command.collect::<Vec<_>>(), ["program"]);
        }
        let short = ["--pinned", "abc", "/f", "--"].map(OsString::from);
        assert!(SandboxPolicy::read(short.into_iter()).is_err());
    }
}
