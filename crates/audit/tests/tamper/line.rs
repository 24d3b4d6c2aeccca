//! Records that can be changed.

use amplifier_audit::{Checkpoint, Hash, Kind, Note, Record};

/// A record taken apart, so that it can be changed and hashed again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// The segment in whose file it stands.
    pub(super) file: u64,
    pub(super) log: String,
    pub(super) seg: u64,
    pub(super) seq: u64,
    pub(super) prev: Hash,
    pub(super) kind: Kind,
    pub(super) session: Option<String>,
    pub(super) writer: String,
    /// From `"time"` to the end of the body.
    pub(super) rest: String,
    pub(super) h: Hash,
}

impl Line {
    pub(super) fn parse(file: u64, line: &str) -> Self {
        let record = Record::parse(line.as_bytes()).unwrap();
        let rest = line[line.find("\"time\":").unwrap()..line.len() - 72].to_owned();
        let Record { log, seg, seq, prev, kind, session, writer, h, .. } = record;
        let (log, writer, session) = (log.into(), writer.into(), session.map(Into::into));
        let parsed = Self { file, log, seg, seq, prev, kind, session, writer, rest, h };
        assert_eq!(parsed.text(), line);
        parsed
    }

    pub(super) fn hashed(&self) -> String {
        let Self { log, seg, seq, prev, rest, .. } = self;
        format!(r#"{{"v":1,"log":"{log}","seg":{seg},"seq":{seq},"prev":"{prev}",{rest}"#)
    }

    pub(super) fn text(&self) -> String {
        format!(r#"{},"h":"{}"}}"#, self.hashed(), self.h)
    }

    pub(super) fn hash_again(&mut self) {
        self.h = Hash::leaf(self.hashed().as_bytes());
    }

    /// A record that was never written, correctly hashed, after that one.
    pub(super) fn made_up(after: &Self, text: &str) -> Self {
        let rest = format!(
            r#""time":"2026-01-01T00:00:00.000000Z","writer":"1-00000000","session":null,"turn":1,"event":null,"kind":"message","digest":null,"body":{{"text":"{text}"}}"#
        );
        let (kind, session, writer) = (Kind::Message, None, "1-00000000".to_owned());
        let mut line = Self { seq: after.seq + 1, prev: after.h, kind, session, writer, rest, ..after.clone() };
        line.hash_again();
        line
    }

    pub(super) fn with_body(mut self, kind: Kind, body: &serde_json::Value) -> Self {
        self.kind = kind;
        self.set("kind", &format!("\"{}\"", kind.as_str()));
        self.set("body", &ascii(body));
        self.hash_again();
        self
    }

    pub(super) fn value(&self, field: &str) -> (usize, usize) {
        let next = FIELDS.iter().skip_while(|name| **name != field).nth(1);
        let begin = self.rest.find(&format!("\"{field}\":")).unwrap() + field.len() + 3;
        let end =
            next.map_or(self.rest.len(), |next| begin + self.rest[begin..].find(&format!(",\"{next}\":")).unwrap());
        (begin, end)
    }

    pub(super) fn body(&self) -> serde_json::Value {
        serde_json::from_str(&self.rest[self.value("body").0..]).unwrap()
    }

    pub(super) fn set(&mut self, field: &str, value: &str) {
        let (begin, end) = self.value(field);
        self.rest.replace_range(begin..end, value);
    }

    pub(super) fn is_checkpoint(&self) -> bool {
        matches!(self.kind, Kind::Checkpoint | Kind::Segment)
    }

    /// Returns `true` if a verifier checks its statement about the log itself.
    pub(super) fn is_structure(&self) -> bool {
        self.is_checkpoint() || matches!(self.kind, Kind::Genesis | Kind::KeyRotation | Kind::Seal)
    }

    /// Returns `true` if it records a removal of segments.
    pub(super) fn is_removal(&self) -> bool {
        self.kind == Kind::PolicyChange && !self.body()["retention"].is_null()
    }

    pub(super) fn note(&self) -> Checkpoint {
        Checkpoint::read(&Note::parse(self.body()["note"].as_str().unwrap()).unwrap()).unwrap()
    }
}

/// The fields of [`Line::rest`], in order.
const FIELDS: [&str; 8] = ["time", "writer", "session", "turn", "event", "kind", "digest", "body"];

pub(super) fn ascii(value: &serde_json::Value) -> String {
    value.to_string().replace('—', "\\u2014")
}
