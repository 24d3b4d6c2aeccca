//! A regular expression, and the secrets that it finds.

use std::ops::Range;

use regex::Regex;

use super::judge::Judge;

#[derive(Clone)]
pub(super) struct Pattern {
    pub(super) kind: String,
    pub(super) regex: Regex,
    /// The groups that can be the secret; the first one that takes part in a match is it.
    pub(super) groups: Range<usize>,
    pub(super) judge: Judge,
    /// How far before its end a secret may hold the beginning of the next match.
    pub(super) overlap: usize,
}

impl Pattern {
    /// The secrets that the pattern finds, from left to right.
    pub(super) fn secrets<'a>(&'a self, text: &str) -> impl Iterator<Item = Secret<'a>> {
        let mut from = 0;
        std::iter::from_fn(move || {
            while from <= text.len() {
                let captures = self.regex.captures_at(text, from)?;
                let group = self.groups.clone().find_map(|group| Some((group, captures.get(group)?)));
                let (found, kept) = match group {
                    Some((group, found)) => (found.range(), (self.judge)(group, found.as_str())),
                    None => (captures.get_match().range(), 0),
                };
                let end = found.start + kept;
                // A false alarm may have swallowed the name of a real secret: then go on inside.
                let next = found.start.max(end.saturating_sub(self.overlap)).max(from + 1);
                from = (next..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len() + 1);
                if kept > 0 {
                    return Some(Secret { range: found.start..end, kind: &self.kind });
                }
            }
            None
        })
    }
}

/// Where a secret stands in a text, and of what kind it is.
pub(super) struct Secret<'a> {
    pub(super) range: Range<usize>,
    pub(super) kind: &'a str,
}
