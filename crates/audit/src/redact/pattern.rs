//! Regular expressions that find secrets.

use std::ops::Range;

use regex::Regex;

use super::judge::Judge;

#[derive(Clone)]
pub(super) struct Pattern {
    pub(super) kind: String,
    pub(super) regex: Regex,
    /// The groups that can contain the secret; the first one in a match counts.
    pub(super) groups: Range<usize>,
    pub(super) judge: Judge,
    /// The possible overlap of a secret with the next match, in bytes.
    pub(super) overlap: usize,
}

impl Pattern {
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
                // A false positive may contain the name of a real secret, so the search continues inside.
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

pub(super) struct Secret<'a> {
    pub(super) range: Range<usize>,
    pub(super) kind: &'a str,
}
