//! Patterns of paths: the comparison of two of them, such as a glob and `rm src/*.rs`.

use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};

use super::path::MAX_PATTERN;

/// Maximum number of patterns that one with braces stands for.
const ALTERNATIVES: usize = 64;

/// Characters with a meaning in patterns.
const WILD: [char; 4] = ['*', '?', '[', '{'];

/// A pattern of absolute paths.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    parts: Vec<PatternPart>,
    /// `true` for a relative glob that is compared with paths outside of the workspace.
    pub(super) is_elsewhere: bool,
}

/// A part of a path between slashes.
#[derive(Clone, Debug)]
enum PatternPart {
    /// Any number of parts, as `**` stands for.
    Any,
    Name(String),
    Wild {
        lead: String,
        trail: String,
        matcher: Option<GlobMatcher>,
    },
}

impl PatternPart {
    fn new(text: &str) -> Self {
        if text == "**" {
            return Self::Any;
        }
        let (Some(first), Some(last)) = (text.find(WILD), text.rfind(['*', '?', ']', '}'])) else {
            return Self::Name(text.to_owned());
        };
        let matcher = GlobBuilder::new(text).literal_separator(true).build().ok().map(|glob| glob.compile_matcher());
        let trail = text.get(last + 1..).unwrap_or_default();
        Self::Wild { lead: text.get(..first).unwrap_or_default().to_owned(), trail: trail.to_owned(), matcher }
    }

    /// `true` if some name matches both parts, or may do so.
    fn may_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::Name(one), Self::Name(other)) => one == other,
            (Self::Name(name), Self::Wild { matcher, .. }) | (Self::Wild { matcher, .. }, Self::Name(name)) => {
                matcher.as_ref().is_none_or(|matcher| matcher.is_match(name))
            }
            (Self::Wild { lead, trail, .. }, Self::Wild { lead: other_lead, trail: other_trail, .. }) => {
                let begins = lead.starts_with(other_lead.as_str()) || other_lead.starts_with(lead.as_str());
                let ends = trail.ends_with(other_trail.as_str()) || other_trail.ends_with(trail.as_str());
                begins && ends
            }
        }
    }
}

impl PathPattern {
    fn new(parts: impl IntoIterator<Item = PatternPart>) -> Self {
        Self { parts: parts.into_iter().collect(), is_elsewhere: false }
    }

    /// Parses a glob. A relative one starts at the workspace; one that begins with `**` also matches elsewhere.
    pub(super) fn from_glob(glob: &str, workspace: &Path) -> Vec<Self> {
        let mut patterns = Vec::new();
        for glob in alternatives(glob) {
            let parts = || glob.split('/').filter(|part| !part.is_empty()).map(PatternPart::new);
            let is_relative = !glob.starts_with('/');
            if !is_relative || glob.starts_with("**") {
                patterns.push(Self { parts: parts().collect(), is_elsewhere: is_relative });
            }
            if is_relative {
                patterns.push(Self::new(names(workspace).chain(parts())));
            }
        }
        patterns
    }

    /// Parses an absolute path of a command, with the patterns of shells; `..` is removed as `cd` does.
    pub(super) fn from_path(path: &str) -> Self {
        let mut parts: Vec<PatternPart> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(PatternPart::new(part)),
            }
        }
        Self::new(parts)
    }

    /// The pattern of one file.
    pub(super) fn from_file(path: &Path) -> Self {
        Self::new(names(path))
    }

    /// Returns the pattern of everything below, including the paths themselves.
    #[must_use]
    pub(super) fn below(mut self) -> Self {
        self.parts.push(PatternPart::Any);
        self
    }

    /// Adds a pattern for files in a folder.
    #[must_use]
    pub(super) fn join(mut self, pattern: &str) -> Self {
        self.parts.extend(pattern.split('/').map(PatternPart::new));
        self
    }

    /// Returns the folder before the first part that is not a plain name.
    pub(super) fn base(&self) -> Self {
        let is_name = |part: &&PatternPart| matches!(part, PatternPart::Name(_));
        Self::new(self.parts.iter().take_while(is_name).cloned())
    }

    /// Returns the path, if all parts are plain names.
    pub(super) fn path(&self) -> Option<String> {
        let name = |part: &PatternPart| match part {
            PatternPart::Name(name) => Some(format!("/{name}")),
            PatternPart::Any | PatternPart::Wild { .. } => None,
        };
        let path: String = self.parts.iter().map(name).collect::<Option<_>>()?;
        Some(if path.is_empty() { "/".to_owned() } else { path })
    }

    pub(super) fn is_plain(&self) -> bool {
        self.base().parts.len() == self.parts.len()
    }

    /// Returns the parts that follow the base as they are written in the path.
    #[must_use]
    pub(super) fn rebase(&self, resolved: &Path) -> Self {
        let rest = self.parts.iter().skip(self.base().parts.len()).cloned();
        Self::new(names(resolved).chain(rest))
    }

    /// `true` if some path matches both patterns, or may do so.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        // `open[at]`: the parts of `other` before `at` are matched by the parts of `self` so far.
        let mut open = vec![false; other.parts.len() + 1];
        open[0] = true;
        skip(&mut open, other);
        for part in &self.parts {
            let mut next = vec![false; open.len()];
            for (at, is_open) in open.iter().enumerate() {
                if !is_open {
                    continue;
                }
                if matches!(part, PatternPart::Any) {
                    next[at..].fill(true);
                    break;
                }
                match other.parts.get(at) {
                    Some(PatternPart::Any) => next[at] = true,
                    Some(one) if part.may_equal(one) => next[at + 1] = true,
                    _ => {}
                }
            }
            open = next;
            skip(&mut open, other);
        }
        open.last() == Some(&true)
    }
}

/// `**` also stands for no part.
fn skip(open: &mut [bool], other: &PathPattern) {
    for (at, part) in other.parts.iter().enumerate() {
        if matches!(part, PatternPart::Any) && open[at] {
            open[at + 1] = true;
        }
    }
}

fn names(path: &Path) -> impl Iterator<Item = PatternPart> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PatternPart::Name(name.to_string_lossy().into_owned())),
        _ => None,
    })
}

/// Returns the globs that one with braces stands for; a part with braces within braces is any name.
fn alternatives(glob: &str) -> Vec<String> {
    let (mut open, mut done) = (vec![glob.to_owned()], Vec::new());
    while let Some(one) = open.pop() {
        let inner = one.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
        match inner {
            Some((before, (list, after))) if !list.contains('{') && open.len() + done.len() < ALTERNATIVES => {
                open.extend(list.split(',').map(|text| format!("{before}{text}{after}")));
            }
            Some((before, _)) => done.push(format!("{}/**", before.rsplit_once('/').map_or("", |(folder, _)| folder))),
            None => done.push(one),
        }
    }
    done
}

/// Checks a glob that `changes` compares with paths.
pub(super) fn check(glob: &str) -> Result<(), String> {
    if glob.len() > MAX_PATTERN {
        return Err(format!("the pattern has {} bytes, {MAX_PATTERN} are allowed", glob.len()));
    }
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    built.map(drop).map_err(|error| format!("invalid path pattern `{glob}`: {}", error.kind()))
}

/// Returns the longest part of a glob without wildcards, as it occurs in the text of programs.
pub(super) fn needle(glob: &str) -> &str {
    let parts = glob.split(['*', '?', '[', ']', '{', '}', ',', '/']);
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}
