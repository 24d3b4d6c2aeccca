//! Variables with known values, and variables whose values programs run.

use std::collections::BTreeMap;

use super::folders::Folders;
use super::scan;

/// A stand-in for the output of `mktemp`.
const TEMPORARY: &str = "/tmp/mktemp";

/// Maximum number of remembered variables; beyond it, none is known.
const MOST: usize = 128;

/// Values of variables that are assigned once.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    values: BTreeMap<String, Option<String>>,
    is_full: bool,
}

impl Variables {
    /// Records an assignment; `None` for an unknown value.
    pub(super) fn assign(&mut self, name: &str, value: Option<String>) {
        if self.values.len() >= MOST {
            self.values.clear();
            self.is_full = true;
        }
        // A variable with two values counts as unknown.
        self.values.entry(name.to_owned()).and_modify(|known| *known = None).or_insert(value);
    }

    /// Returns the path of a word if all its variables are known. Patterns are kept.
    pub(super) fn expand(&self, raw: &str, folders: &Folders) -> Option<String> {
        let mut text = String::new();
        let mut rest = raw;
        let mut quoted = false;
        while let Some(c) = rest.chars().next() {
            rest = rest.get(c.len_utf8()..)?;
            match c {
                '"' => quoted = !quoted,
                '\'' if !quoted => {
                    let (inner, after) = rest.split_once('\'')?;
                    text.push_str(inner);
                    rest = after;
                }
                '$' => {
                    let (value, after) = self.value(rest, folders)?;
                    if !quoted && value.contains([' ', '\t', '\n', '*', '?', '[']) {
                        return None;
                    }
                    text.push_str(&value);
                    rest = after;
                }
                '\\' | '`' | '(' | ')' | '{' | '}' | '<' | '>' => return None,
                c => text.push(c),
            }
        }
        (!quoted).then_some(text)
    }

    /// Replaces the port in an address on this machine, if the port is an environment variable.
    pub(super) fn with_port(&self, raw: &str) -> Option<String> {
        let (before, rest) = raw.split_once(":$")?;
        let address = before.trim_matches('"');
        if !matches!(address.rsplit('/').next()?, "localhost" | "127.0.0.1") {
            return None;
        }
        let (name, after) = match rest.strip_prefix('{') {
            Some(inner) => inner.split_once('}')?,
            None => rest.split_at(rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())),
        };
        let (name, default) = name.split_once(":-").unwrap_or((name, "1"));
        let is_plain = !self.is_full && !self.values.contains_key(name) && default.bytes().all(|b| b.is_ascii_digit());
        is_plain.then(|| format!("{before}:{default}{after}"))
    }

    /// Returns the value of the expansion after a `$`, and the rest.
    fn value<'a>(&self, rest: &'a str, folders: &Folders) -> Option<(String, &'a str)> {
        if let Some(after) = rest.strip_prefix("(pwd)") {
            return Some((current_folder(folders)?, after));
        }
        if let Some(after) = rest.strip_prefix("{TMPDIR:-/tmp}") {
            return Some((self.named("TMPDIR", folders).unwrap_or_else(|| "/tmp".to_owned()), after));
        }
        let (name, after) = match rest.strip_prefix('{') {
            Some(inner) => inner.split_once('}')?,
            None => rest.split_at(rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())),
        };
        Some((self.named(name, folders)?, after))
    }

    fn named(&self, name: &str, folders: &Folders) -> Option<String> {
        if self.is_full {
            return None;
        }
        match (self.values.get(name), name) {
            (Some(value), _) => value.clone(),
            (None, "PWD") => current_folder(folders),
            // Commands inherit the environment of this process.
            (None, "TMPDIR") => std::env::var(name).ok().filter(|folder| folder.len() > 1),
            _ => None,
        }
    }
}

fn current_folder(folders: &Folders) -> Option<String> {
    folders.only().map(|folder| if folder.is_empty() { ".".to_owned() } else { folder.to_owned() })
}

pub(super) fn substituted(raw: &str) -> Option<String> {
    let inner = raw.trim_matches('"').strip_prefix("$(")?.strip_suffix(')')?;
    let mut words = inner.split_whitespace();
    let is_temporary = words.next() == Some("mktemp")
        && words.all(|word| matches!(word, "-d" | "-q" | "-t" | "-dt") || is_template(word));
    is_temporary.then(|| TEMPORARY.to_owned())
}

fn is_template(word: &str) -> bool {
    let name = word.strip_prefix("/tmp/").unwrap_or(word);
    name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        && !name.starts_with('-')
        && (word.starts_with("/tmp/") && !name.contains(".."))
}

/// Harmless programs in such variables.
const HARMLESS: &[&str] = &[
    "", "cat", "less", "more", "most", "true", "false", ":", "vim", "vi", "nvim", "nano", "emacs", "code", "ssh",
    "head", "delta", "bat", "echo", "col", "tee", "firefox",
];

/// Variables whose values are run, by full name.
const RUN: &[&str] = &[
    "PROMPT_COMMAND",
    "BASH_ENV",
    "ENV",
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "PERL5OPT",
    "PYTHONSTARTUP",
];

/// Returns `true` if programs run the value of this variable. `None` is an unknown value.
pub(super) fn runs(name: &str, value: Option<&str>) -> bool {
    if name.starts_with("BASH_FUNC_") || name.starts_with("GIT_CONFIG") {
        return true;
    }
    if matches!(name, "PS0" | "PS1" | "PS2" | "PS4") {
        return value.is_none_or(|value| value.contains("$(") || value.contains('`'));
    }
    if matches!(name, "NODE_OPTIONS" | "RUBYOPT" | "JAVA_TOOL_OPTIONS") {
        let loads = ["require", "import", "loader", "-r", "agent"];
        return value.is_none_or(|value| loads.iter().any(|option| value.contains(option)));
    }
    if !RUN.contains(&name) {
        // `make CC='rm -rf src; cc'` and the like.
        return value.is_some_and(scan::deletes);
    }
    let Some(value) = value else { return true };
    let program = value.split_whitespace().next().unwrap_or_default();
    let is_plain = !value.contains([';', '|', '&', '$', '`', '(', '<', '>', '\n', '\'', '"', '%'])
        && !value.to_ascii_lowercase().contains("command");
    !(is_plain && HARMLESS.contains(&program.rsplit('/').next().unwrap_or_default()) && !program.starts_with('.'))
}
