//! Requests to a model, kept as what they add to an earlier one.
//!
//! Every request holds the whole conversation, so that a log of whole requests grows with the square of its length. The body of a request that
//! begins with the messages of an earlier one therefore names that record and how many messages it shares with it, and has only those
//! that follow. Both stand in the same segment: segments can be removed without taking anything from those that stay.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Hash;
use crate::record::write_json;

/// How the body of a record begins that continues an earlier one.
pub(crate) const CONTINUES: &str = "{\"base\":";

/// How many records have to be read at most for one request. The next one stands whole again.
const MOST_RECORDS: usize = 1024;
/// How many conversations of a session are known, and how many sessions. Those of others begin with a whole request.
const MOST_CONVERSATIONS: usize = 4;
const MOST_SESSIONS: usize = 1024;
/// Naming a record takes about as many bytes as this; to save fewer is not worth it.
const LEAST_SAVED: usize = 256;

/// The beginning of the body of a record that continues an earlier one.
#[derive(Deserialize)]
pub(crate) struct ContinuationBody {
    pub(crate) base: BaseRecord,
}

/// The record that a request continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BaseRecord {
    /// Its number.
    pub(crate) seq: u64,
    /// Its hash.
    pub(crate) h: Hash,
    /// Where its line begins in the segment.
    pub(crate) offset: u64,
    /// The length of the line, without its line feed.
    pub(crate) bytes: u64,
    /// The number of messages that both begin with.
    pub(crate) messages: usize,
    /// The length of the whole body of the request.
    pub(crate) whole: u64,
}

/// Where the messages stand in the body of an event.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    /// The list, with its brackets.
    pub(crate) list: Range<usize>,
    pub(crate) each: Vec<Range<usize>>,
}

impl Messages {
    /// Those of an event with a list `messages` in its data.
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

/// The body of a request on its way into a log, before it is known which record it continues.
pub(crate) struct ModelRequest {
    pub(crate) body: String,
    messages: Messages,
    hashes: Vec<Hash>,
}

impl ModelRequest {
    /// The request that a body holds; the body as it was if it holds none.
    pub(crate) fn read(body: Vec<u8>) -> Result<Self, Vec<u8>> {
        let body = String::from_utf8(body).map_err(std::string::FromUtf8Error::into_bytes)?;
        let messages = Messages::find(&body).filter(|messages| !messages.each.is_empty());
        let Some(messages) = messages else { return Err(body.into_bytes()) };
        let hashes = messages.each.iter().map(|range| Hash::sha256(&body.as_bytes()[range.clone()])).collect();
        Ok(Self { body, messages, hashes })
    }

    /// The body without the messages that the base has.
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

/// Puts the messages that a body shares with its base before its own; the body as it would have been without a base.
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

/// Where a record stands.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub(crate) segment: u64,
    pub(crate) seq: u64,
    pub(crate) h: Hash,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// The requests that one writer has written last, by session.
#[derive(Default)]
pub(crate) struct Conversations(HashMap<String, Vec<ConversationTail>>);

struct ConversationTail {
    last: Position,
    hashes: Vec<Hash>,
    /// How many records its last request is spread over.
    records: usize,
}

impl Conversations {
    /// A request as it is best kept in that segment, and over how many records it is spread then.
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

    /// Remembers a request that was written.
    pub(crate) fn add(&mut self, session: &str, request: &ModelRequest, last: Position, records: usize) {
        if !self.0.contains_key(session) && self.0.len() >= MOST_SESSIONS {
            self.0.clear();
        }
        let known = self.0.entry(session.to_owned()).or_default();
        // One that goes on is one conversation; what was said before is in it.
        known.retain(|one| one.last.segment == last.segment && !request.hashes.starts_with(&one.hashes));
        if known.len() >= MOST_CONVERSATIONS {
            known.remove(0);
        }
        known.push(ConversationTail { last, hashes: request.hashes.clone(), records });
    }

    /// Forgets what a session said: it is over.
    pub(crate) fn forget(&mut self, session: &str) {
        self.0.remove(session);
    }

    /// Forgets all: what was written may not be there any more.
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
