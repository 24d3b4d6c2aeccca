//! Paths with links.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Maximum number of links in a path, as in Linux.
const MAX_LINKS: usize = 40;

/// Resolves a path, absolute or relative to `root`, as the kernel would, even past missing files: also the target of a link to a file that does not
/// exist yet is known. The result has neither `..` nor links, if `root` has none.
///
/// # Errors
/// If there are too many links.
pub fn follow_links(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut resolved = root.to_path_buf();
    let mut ahead = VecDeque::new();
    let mut links = 0;
    put_in_front(&mut ahead, path);
    while let Some(step) = ahead.pop_front() {
        match Path::new(&step).components().next() {
            None | Some(Component::CurDir) => {}
            Some(Component::RootDir | Component::Prefix(_)) => resolved = PathBuf::from(&step),
            Some(Component::ParentDir) => {
                resolved.pop();
            }
            Some(Component::Normal(name)) => {
                resolved.push(name);
                if let Ok(target) = resolved.read_link() {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(io::Error::new(ErrorKind::InvalidInput, "the path has too many links"));
                    }
                    resolved.pop();
                    put_in_front(&mut ahead, &target);
                }
            }
        }
    }
    Ok(resolved)
}

fn put_in_front(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        ahead.push_front(component.as_os_str().to_owned());
    }
}
