//! The folder that a command runs in, as `cd` changes it.

/// So many folders may come into question.
const MOST: usize = 4;

/// All folders, from the workspace, that the next command may run in; `None` where that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folders(Option<Vec<String>>);

impl Default for Folders {
    fn default() -> Self {
        Self(Some(vec![String::new()]))
    }
}

impl Folders {
    /// Folders of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self(None)
    }

    /// The one folder, if there is no doubt.
    pub(super) fn only(&self) -> Option<&str> {
        match self.0.as_deref() {
            Some([folder]) => Some(folder),
            _ => None,
        }
    }

    /// The folders after `cd path`.
    pub(super) fn enter(&self, path: &str) -> Self {
        if path.is_empty() || path == "-" || path.starts_with('~') || path.contains(['$', '`', '*', '?', '[', '{']) {
            return Self::unknown();
        }
        Self(self.join(path).map(|paths| paths.iter().map(|path| without_parents(path)).collect()))
    }

    /// The folders if `cd` may have failed, or may not have run.
    pub(super) fn or(self, other: Self) -> Self {
        let (Some(mut folders), Some(others)) = (self.0, other.0) else { return Self(None) };
        for folder in others {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        Self((folders.len() <= MOST).then_some(folders))
    }

    /// The paths that `path` may stand for.
    pub(super) fn join(&self, path: &str) -> Option<Vec<String>> {
        if path.starts_with(['/', '~']) {
            return Some(vec![path.to_owned()]);
        }
        let join = |folder: &String| if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") };
        self.0.as_ref().map(|folders| folders.iter().map(join).collect())
    }
}

/// The path without `.` and `..`, which `cd` takes away before it looks at links.
fn without_parents(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}
