//! Search in prompts, inputs of tools, reasons and approval requests.
//!
//! The search reads the log itself, the newest records first, a bounded part for each request. Records are redacted before they are stored, so a
//! search finds nothing that is hidden.

use std::time::{Duration, Instant};

use amplifier_audit::{Body, Kind, Record};
use amplifier_core::{ApprovalDecisionEntry, ApprovalRequestEntry, AuditEntry, EventEntry, HookReportEntry};
use serde_json::Value;

use super::index::{Block, kind_bit, minute};
use super::query::{Files, lines};
use super::{FeedError, FeedState};
use crate::api_types::{SearchMatch, SearchPart};

/// Limit in bytes and time per request; the cursor continues.
const READ_LIMIT: u64 = 32 << 20;
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Limit in bytes up to which a body is searched.
const LONGEST_BODY: u64 = 64 << 10;

/// Limits of the words of a search, in number and characters.
pub(crate) const MOST_WORDS: usize = 8;
pub(crate) const LONGEST_WORD: usize = 100;

/// The characters of an excerpt before the match, and in all.
const BEFORE_MATCH: usize = 60;
const EXCERPT: usize = 240;

const KINDS: [Kind; 4] = [Kind::Event, Kind::HookReport, Kind::ApprovalRequest, Kind::ApprovalDecision];

/// A search: every word must be in the same text, in any case.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchQuery {
    pub(crate) words: Vec<String>,
    /// Only in this session.
    pub(crate) session: Option<String>,
    /// Only records from this time on, and before this time, in the format of records.
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
}

/// The matches in a part of the log.
#[derive(Debug)]
pub(crate) struct SearchPage {
    /// The matches, the newest first.
    pub(crate) matches: Vec<SearchMatch>,
    /// The records from this number on were searched.
    pub(crate) searched_from: u64,
    /// The time of the oldest record that was searched.
    pub(crate) searched_since: Option<String>,
    /// `true` if nothing is left to search.
    pub(crate) is_end: bool,
}

impl SearchQuery {
    /// Reads the words of a text; `None` if there are none, too many, or too long ones.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let fits =
            (1..=MOST_WORDS).contains(&words.len()) && words.iter().all(|word| word.chars().count() <= LONGEST_WORD);
        fits.then(|| Self { words, ..Self::default() })
    }

    /// Returns the part of a text around the first word, if it contains every word.
    fn excerpt(&self, text: &str) -> Option<String> {
        let lower = text.to_lowercase();
        let at = self
            .words
            .iter()
            .map(|word| lower.find(word.as_str()))
            .try_fold(usize::MAX, |first, at| at.map(|at| first.min(at)))?;
        // Lower-case text may have other lengths, so the position is counted in characters.
        let start = lower[..at].chars().count().saturating_sub(BEFORE_MATCH);
        let mut excerpt: String = text.chars().skip(start).take(EXCERPT).collect();
        if start > 0 {
            excerpt.insert(0, '…');
        }
        if text.chars().nth(start + EXCERPT).is_some() {
            excerpt.push('…');
        }
        Some(excerpt)
    }

    fn may_be_in(&self, block: &Block, session: Option<u64>) -> bool {
        let kinds = KINDS.iter().fold(0, |bits, kind| bits | kind_bit(*kind));
        block.may_have(session, kinds) && self.until.as_deref().is_none_or(|until| block.minute <= minute(until))
    }

    fn fits(&self, record: &Record<'_>) -> bool {
        KINDS.contains(&record.kind)
            && self.session.as_deref().is_none_or(|session| record.session.as_deref() == Some(session))
            && self.until.as_deref().is_none_or(|until| *record.time < *until)
            && self.since.as_deref().is_none_or(|since| *record.time >= *since)
    }
}

impl FeedState {
    /// Searches the records before this number, the newest first.
    pub(super) fn search(&self, query: &SearchQuery, before: u64, limit: usize) -> Result<SearchPage, FeedError> {
        let (session, blocks, first, end) = {
            let index = self.index();
            let end = index.blocks.partition_point(|block| block.seq < before);
            let blocks: Vec<Block> = index.blocks.range(..end).rev().copied().collect();
            (query.session.as_deref().map(|session| index.hash(session)), blocks, index.first(), index.cursor)
        };
        let begun = Instant::now();
        let mut page =
            SearchPage { matches: Vec::new(), searched_from: before.min(end), searched_since: None, is_end: false };
        let mut files = Files::new(&*self.source);
        let mut read = 0;
        for block in blocks {
            if read >= READ_LIMIT || begun.elapsed() >= TIME_LIMIT {
                return Ok(page);
            }
            if query.may_be_in(&block, session) {
                read += block.end - block.offset;
                let Some(text) = files.block(&block)? else { continue };
                for line in lines(&text).rev() {
                    let Some(record) = block.record(line).filter(|record| record.seq < page.searched_from) else {
                        continue;
                    };
                    if query.fits(&record) {
                        read += record.body_bytes().saturating_sub(line.len() as u64);
                        page.matches.extend(self.search_record(query, &record));
                    }
                    page.searched_from = record.seq;
                    page.searched_since = Some(record.time.to_string());
                    if page.matches.len() >= limit {
                        page.is_end = record.seq <= first;
                        return Ok(page);
                    }
                }
            }
            page.searched_from = page.searched_from.min(block.seq);
            // Everything before this block is older.
            if query.since.as_deref().is_some_and(|since| block.minute < minute(since)) {
                break;
            }
        }
        page.is_end = true;
        Ok(page)
    }

    /// Searches one record. A body that is erased, too long or cannot be read has no match; the verification reports the last.
    fn search_record(&self, query: &SearchQuery, record: &Record<'_>) -> Option<SearchMatch> {
        if record.body_bytes() > LONGEST_BODY || !may_have_text(record) {
            return None;
        }
        let Body::Whole(body) = record.whole_body(&*self.source).ok()? else { return None };
        let (part, excerpt) = texts(record.entry(&body).ok()??, record.event.as_deref().unwrap_or_default())
            .into_iter()
            .find_map(|(part, text)| Some((part, query.excerpt(&text)?)))?;
        Some(SearchMatch {
            seq: record.seq,
            at: record.time.to_string(),
            session: record.session.as_deref().unwrap_or_default().to_owned(),
            event: record.event.as_deref().unwrap_or_default().to_owned(),
            part,
            excerpt,
        })
    }
}

/// Returns `false` if the record has no text to search: most results of hooks and most events.
fn may_have_text(record: &Record<'_>) -> bool {
    let body = record.body.get();
    match record.kind {
        Kind::Event => {
            has_input(record.event.as_deref().unwrap_or_default())
                || body.contains("\"reason\"")
                || body.starts_with("{\"blob\"")
        }
        Kind::HookReport => body.contains("\"reason\"") || body.contains("\"error\""),
        _ => true,
    }
}

/// Returns `true` if the data of an event is searched.
fn has_input(event: &str) -> bool {
    matches!(event, "prompt:submit" | "tool:pre" | "agent:spawn")
}

/// Returns the texts of a record that are searched.
fn texts(entry: AuditEntry, event: &str) -> Vec<(SearchPart, String)> {
    let mut found = Vec::new();
    let mut add = |part: SearchPart, text: Option<String>| found.extend(text.map(|text| (part, text)));
    match entry {
        AuditEntry::Event(EventEntry { data, reason, .. }) => {
            if has_input(event) {
                let data = data.read::<Value>().unwrap_or_default();
                let text = |field: &str| data.get(field).and_then(Value::as_str).map(str::to_owned);
                add(SearchPart::Prompt, text("prompt").or_else(|| text("task")));
                let mut input = String::new();
                data.get("tool_input").into_iter().for_each(|value| join_texts(value, &mut input));
                add(SearchPart::Input, Some(input).filter(|input| !input.is_empty()));
            }
            add(SearchPart::Reason, reason);
        }
        AuditEntry::HookReport(HookReportEntry { reason, error, .. }) => {
            add(SearchPart::Reason, reason);
            add(SearchPart::Reason, error);
        }
        AuditEntry::ApprovalRequest(ApprovalRequestEntry { prompt, .. }) => add(SearchPart::Approval, Some(prompt)),
        AuditEntry::ApprovalDecision(ApprovalDecisionEntry { prompt, decision, .. }) => {
            add(SearchPart::Approval, prompt);
            add(SearchPart::Reason, Some(decision.reason));
        }
        _ => {}
    }
    found
}

/// Joins all texts of a value by line breaks.
fn join_texts(value: &Value, joined: &mut String) {
    match value {
        Value::String(text) => {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push_str(text);
        }
        Value::Array(list) => list.iter().for_each(|value| join_texts(value, joined)),
        Value::Object(map) => map.values().for_each(|value| join_texts(value, joined)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_needs_every_word_in_any_case() {
        let query = SearchQuery::parse("  DEPLOY prod ").unwrap();
        assert_eq!(query.excerpt("Deploy to Production"), Some("Deploy to Production".to_owned()));
        assert_eq!(query.excerpt("deploy"), None);
        let long = format!("{}deploy İ prod {}", "ä".repeat(500), "z".repeat(500));
        let excerpt = query.excerpt(&long).unwrap();
        assert!(excerpt.starts_with("…ä") && excerpt.ends_with("z…") && excerpt.contains("deploy"), "{excerpt}");
        assert_eq!(excerpt.chars().count(), EXCERPT + 2);
    }

    #[test]
    fn too_many_and_too_long_words_are_no_search() {
        assert!(SearchQuery::parse(" \n").is_none());
        assert!(SearchQuery::parse(&"x ".repeat(MOST_WORDS + 1)).is_none());
        assert!(SearchQuery::parse(&"x".repeat(LONGEST_WORD + 1)).is_none());
        assert!(SearchQuery::parse(&"x ".repeat(MOST_WORDS)).is_some());
    }
}
