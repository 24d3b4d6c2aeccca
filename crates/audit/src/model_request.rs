//! Model requests, stored as the difference to an earlier one.
//!
//! Every request has the whole conversation, so a log of whole requests would grow with the square of its length. If a request begins with
//! the messages of an earlier one, its body therefore names that record and the number of shared messages, and has only the later ones.
//! Both are in the same segment, so that segments can be removed independently.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Hash;
use crate::record::write_json;

/// The beginning of a body that continues an earlier record.
pub(crate) const CONTINUES: &str = "{\"base\":";

/// The most records that one request is spread over. The next one is stored whole.
const MOST_RECORDS: usize = 1024;
/// The most known conversations of a session, and the most known sessions. Others begin with a whole request.
const MOST_CONVERSATIONS: usize = 4;
const MOST_SESSIONS: usize = 1024;
/// The least saving in bytes, about the size of a reference to a record.
const LEAST_SAVED: usize = 256;

/// The reference in the body of a record that continues an earlier one.
#[derive(Deserialize)]
pub(crate) struct ContinuationBody {
    pub(crate) base: BaseRecord,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BaseRecord {
    pub(crate) seq: u64,
    pub(crate) h: Hash,
    /// The offset of its line in the segment.
    pub(crate) offset: u64,
    /// The length of the line, without its line feed.
    pub(crate) bytes: u64,
    pub(crate) messages: usize,
    pub(crate) whole: u64,
}

/// The positions of the messages in the body of an event.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    /// The list, with its brackets.
    pub(crate) list: Range<usize>,
    pub(crate) each: Vec<Range<usize>>,
}

impl Messages {
    pub(crate) fn find(body: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Event<'a> {
            #[serde(borrow)]
            data: MessageList<'a>,
        }
        #[derive(Deserialize)]
        struct MessageList<'a> {
            #[serde(borrow)]
            messages: &'a RawValue,
        }
        let range = |part: &str| {
            let begin = part.as_ptr().addr() - body.as_ptr().addr();
            begin..begin + part.len()
        };
        let list = serde_json::from_str::<Event<'_>>(body).ok()?.data.messages.get();
        let each: Vec<&RawValue> = serde_json::from_str(list).ok()?;
        Some(Self { list: range(list), each: each.into_iter().map(|message| range(message.get())).collect() })
    }
}

pub(crate) struct ModelRequest {
    pub(crate) body: String,
    messages: Messages,
    hashes: Vec<Hash>,
}

impl ModelRequest {
    /// Parses a request; returns the body unchanged if it has none.
    pub(crate) fn read(body: Vec<u8>) -> Result<Self, Vec<u8>> {
        let body = String::from_utf8(body).map_err(std::string::FromUtf8Error::into_bytes)?;
        let messages = Messages::find(&body).filter(|messages| !messages.each.is_empty());
        let Some(messages) = messages else { return Err(body.into_bytes()) };
        let hashes = messages.each.iter().map(|range| Hash::sha256(&body.as_bytes()[range.clone()])).collect();
        Ok(Self { body, messages, hashes })
    }

    fn after(&self, base: &BaseRecord) -> Vec<u8> {
        let Self { body, messages: Messages { list, each }, .. } = self;
        let new = each.get(base.messages).map_or(list.end - 1, |first| first.start);
        let mut text = CONTINUES.as_bytes().to_vec();
        write_json(&mut text, base);
        for part in [",", &body[1..=list.start], &body[new..]] {
            text.extend_from_slice(part.as_bytes());
        }
        text
    }
}

/// Restores a whole body from its shared and its own messages.
pub(crate) fn join_messages(body: &str, shared: &[impl AsRef<str>]) -> Option<String> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow)]
        base: &'a RawValue,
    }
    let base = serde_json::from_str::<Raw<'_>>(body).ok()?.base.get();
    let rest = body.get(CONTINUES.len() + base.len() + 1..)?;
    let messages = Messages::find(body)?;
    let begin = body.len() - rest.len();
    let (before, after) = rest.split_at_checked(messages.list.start.checked_sub(begin)? + 1)?;
    let mut text = String::with_capacity(body.len() + shared.iter().map(|one| one.as_ref().len() + 1).sum::<usize>());
    text.push('{');
    text.push_str(before);
    for (index, message) in shared.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(message.as_ref());
    }
    if !shared.is_empty() && !messages.each.is_empty() {
        text.push(',');
    }
    text.push_str(after);
    Some(text)
}

#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) seq: u64,
    pub(crate) h: Hash,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

#[derive(Default)]
pub(crate) struct Conversations(HashMap<String, Vec<ConversationTail>>);

struct ConversationTail {
    last: Position,
    hashes: Vec<Hash>,
    /// The number of records that its last request is spread over.
    records: usize,
}

impl Conversations {
    /// Returns the shortest body for a request in that segment, and the number of records that it is spread over.
    pub(crate) fn shorten(&self, session: &str, segment: u64, request: &ModelRequest) -> (Vec<u8>, usize) {
        let shares = |known: &ConversationTail| {
            known.hashes.iter().zip(&request.hashes).take_while(|(known, new)| known == new).count()
        };
        let usable = |known: &&ConversationTail| known.last.segment == segment && known.records < MOST_RECORDS;
        let all = self.0.get(session).into_iter().flatten().filter(usable);
        let best = all.map(|known| (shares(known), known)).max_by_key(|(shared, _)| *shared);
        if let Some((messages @ 1.., ConversationTail { last, records, .. })) = best {
            let Position { seq, h, offset, bytes, .. } = *last;
            let whole = request.body.len() as u64;
            let body = request.after(&BaseRecord { seq, h, offset, bytes, messages, whole });
            if body.len() + LEAST_SAVED <= request.body.len() + CONTINUES.len() {
                return (body, records + 1);
            }
        }
        (request.body.clone().into_bytes(), 1)
    }

    pub(crate) fn add(&mut self, session: &str, request: &ModelRequest, last: Position, records: usize) {
        if !self.0.contains_key(session) && self.0.len() >= MOST_SESSIONS {
            self.0.clear();
        }
        let known = self.0.entry(session.to_owned()).or_default();
        // A longer request replaces its own beginning.
        known.retain(|one| one.last.segment == last.segment && !request.hashes.starts_with(&one.hashes));
        if known.len() >= MOST_CONVERSATIONS {
            known.remove(0);
        }
        known.push(ConversationTail { last, hashes: request.hashes.clone(), records });
    }

    pub(crate) fn forget(&mut self, session: &str) {
        self.0.remove(session);
    }

    /// Removes all requests, because their records may not exist any more.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(messages: &[&str]) -> Vec<u8> {
        let messages = messages.join(",");
        format!(r#"{{"data":{{"a":[1],"messages":[{messages}],"z":"]"}},"decision":"continue"}}"#).into_bytes()
    }

    #[test]
    fn what_is_joined_is_what_was_taken_apart() {
        let all = [r#"{"role":"user","content":"a, [b] \"c\""}"#, "1", "[]", r#""text""#];
        for count in 1..=all.len() {
            let request = ModelRequest::read(body(&all[..count])).unwrap_or_else(|_| panic!("it has messages"));
            for messages in 1..=count {
                let base = BaseRecord { seq: 7, h: Hash::ZERO, offset: 12, bytes: 99, messages, whole: 1 };
                let short = String::from_utf8(request.after(&base)).unwrap_or_default();
                assert!(short.starts_with(CONTINUES) && serde_json::from_str::<serde_json::Value>(&short).is_ok());
                assert_eq!(join_messages(&short, &all[..messages]).as_deref(), Some(request.body.as_str()), "{short}");
            }
        }
    }

    #[test]
    fn what_has_no_messages_is_no_request() {
        for body in [&body(&[])[..], br#"{"data":{}}"#, br#"{"data":{"messages":1}}"#, b"{}", b"[", b"\xff"] {
            assert_eq!(ModelRequest::read(body.to_vec()).err().as_deref(), Some(body));
        }
    }

    #[test]
    fn the_longest_common_beginning_in_the_segment_is_chosen() {
        let long = format!("\"{}\"", "x".repeat(2 * LEAST_SAVED));
        let request =
            |messages: &[&str]| ModelRequest::read(body(messages)).unwrap_or_else(|_| panic!("it has messages"));
        let at = |seq| Position { segment: 1, seq, h: Hash::ZERO, offset: 0, bytes: 0 };
        let mut known = Conversations::default();
        known.add("s", &request(&[&long, "1", "2"]), at(1), 1);
        known.add("s", &request(&[&long, "3"]), at(2), MOST_RECORDS - 1);
        let check = |segment, messages: &[&str], base: Option<(u64, usize)>| {
            let (text, _) = known.shorten("s", segment, &request(messages));
            let found = serde_json::from_slice::<ContinuationBody>(&text).ok();
            assert_eq!(found.map(|found| (found.base.seq, found.base.messages)), base, "{messages:?}");
        };
        check(1, &[&long, "1", "4"], Some((1, 2)));
        check(1, &[&long, "3", "4"], Some((2, 2)));
        check(1, &[&long, "1", "2"], Some((1, 3)));
        check(1, &["3", &long], None);
        check(2, &[&long, "1", "4"], None);
        assert_eq!(known.shorten("other", 1, &request(&[&long])).1, 1);
        // It goes on, and would be spread over too many records.
        known.add("s", &request(&[&long, "3", "4"]), at(3), MOST_RECORDS);
        assert_eq!(known.shorten("s", 1, &request(&[&long, "3", "4", "5"])).1, 2, "by way of the other");
        known.forget("s");
        assert_eq!(known.shorten("s", 1, &request(&[&long, "3", "4", "5"])).1, 1);
    }
}
