//! The working folder of commands, as changed by `cd`.

/// Maximum number of possible folders.
const MOST: usize = 4;

/// All possible folders of the next command, relative to the workspace; `None` if unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folders(Option<Vec<String>>);

impl Default for Folders {
    fn default() -> Self {
        Self(Some(vec![String::new()]))
    }
}

impl Folders {
    pub(super) fn unknown() -> Self {
        Self(None)
    }

    pub(super) fn only(&self) -> Option<&str> {
        match self.0.as_deref() {
            Some([folder]) => Some(folder),
            _ => None,
        }
    }

    pub(super) fn enter(&self, path: &str) -> Self {
        if path.is_empty() || path == "-" || path.starts_with('~') || path.contains(['$', '`', '*', '?', '[', '{']) {
            return Self::unknown();
        }
        Self(self.join(path).map(|paths| paths.iter().map(|path| without_parents(path)).collect()))
    }

    /// Returns the union of both, because `cd` may have failed or not run.
    pub(super) fn or(self, other: Self) -> Self {
        let (Some(mut folders), Some(others)) = (self.0, other.0) else { return Self(None) };
        for folder in others {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        Self((folders.len() <= MOST).then_some(folders))
    }

    /// Returns the paths that `path` may stand for.
    pub(super) fn join(&self, path: &str) -> Option<Vec<String>> {
        if path.starts_with(['/', '~']) {
            return Some(vec![path.to_owned()]);
        }
        let join = |folder: &String| if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") };
        self.0.as_ref().map(|folders| folders.iter().map(join).collect())
    }
}

/// Returns the path without `.` and `..`, which `cd` removes before it resolves links.
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
