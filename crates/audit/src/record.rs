//! Records: lines of ASCII JSON with their own hash.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::time::SystemTime;

use amplifier_core::{AuditEntry, IntentEntry, words};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::ser::Formatter;
use serde_json::value::RawValue;

use crate::Hash;
use crate::model_request::ModelRequest;
use crate::note::is_log_id;

/// `,"h":"`, 64 digits, `"}`: the end of every line.
const SUFFIX: usize = 72;

words! {
    /// The kind of a record.
    #[derive(PartialOrd, Ord)]
    pub enum Kind("kind") {
        /// The beginning of a log.
        Genesis = "genesis",
        /// The beginning of another segment.
        Segment = "segment",
        /// A signed checkpoint.
        Checkpoint = "checkpoint",
        /// Another key is active.
        KeyRotation = "key_rotation",
        /// An event, and the decision of the hooks.
        Event = "event",
        /// A gated operation may begin.
        Intent = "intent",
        /// A gated operation has ended.
        Outcome = "outcome",
        /// The result of one hook.
        HookReport = "hook_report",
        /// An injection of a hook.
        Injection = "injection",
        /// A message for the user.
        Message = "message",
        /// An approval request.
        ApprovalRequest = "approval_request",
        /// The decision on an approval.
        ApprovalDecision = "approval_decision",
        /// A late answer to an approval request.
        LateAnswer = "late_answer",
        /// A part of the system failed.
        Failure = "failure",
        /// The policy changed.
        PolicyChange = "policy_change",
        /// Records were lost.
        Gap = "gap",
        /// A torn end was moved aside.
        Recovery = "recovery",
        /// Tampering was detected.
        Breach = "breach",
        /// A session ended.
        Seal = "seal",
    }
}

impl Kind {
    /// Returns the kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}

impl From<&AuditEntry> for Kind {
    fn from(entry: &AuditEntry) -> Self {
        match entry {
            AuditEntry::Event(_) => Self::Event,
            AuditEntry::HookReport(_) => Self::HookReport,
            AuditEntry::ApprovalRequest(_) => Self::ApprovalRequest,
            AuditEntry::ApprovalDecision(_) => Self::ApprovalDecision,
            AuditEntry::LateAnswer(_) => Self::LateAnswer,
            AuditEntry::Injection(_) => Self::Injection,
            AuditEntry::Message(_) => Self::Message,
            AuditEntry::Intent(_) => Self::Intent,
            AuditEntry::Outcome(_) => Self::Outcome,
            AuditEntry::Failure(_) => Self::Failure,
        }
    }
}

/// A record of a log.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// The version of the format.
    pub v: u32,
    /// The log's id.
    pub log: Cow<'a, str>,
    /// The number of the segment.
    pub seg: u64,
    /// The number of the record.
    pub seq: u64,
    /// The hash of the previous record.
    pub prev: Hash,
    /// The time.
    pub time: Cow<'a, str>,
    /// The writer.
    pub writer: Cow<'a, str>,
    /// The session.
    pub session: Option<Cow<'a, str>>,
    /// The turn of the session.
    pub turn: Option<u64>,
    /// The event.
    pub event: Option<Cow<'a, str>>,
    /// The kind.
    pub kind: Kind,
    /// The digest of the operation.
    pub digest: Option<Cow<'a, str>>,
    /// The body.
    pub body: &'a RawValue,
    /// The hash of this record.
    pub h: Hash,
    line: &'a str,
}

/// Text that is copied only if it contains escapes.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads the keys in their fixed order: a record has only one text form.
struct RecordVisitor;

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = Record<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Record<'de>, M::Error> {
        fn next<'de, T: Deserialize<'de>, M: MapAccess<'de>>(map: &mut M, key: &'static str) -> Result<T, M::Error> {
            match map.next_key::<BorrowedText<'de>>()? {
                Some(found) if found.0 == key => map.next_value(),
                _ => Err(M::Error::custom(format!("`{key}` is missing or misplaced"))),
            }
        }
        let record = Record {
            v: next(&mut map, "v")?,
            log: next::<BorrowedText<'_>, _>(&mut map, "log")?.0,
            seg: next(&mut map, "seg")?,
            seq: next(&mut map, "seq")?,
            prev: next(&mut map, "prev")?,
            time: next::<BorrowedText<'_>, _>(&mut map, "time")?.0,
            writer: next::<BorrowedText<'_>, _>(&mut map, "writer")?.0,
            session: next::<Option<BorrowedText<'_>>, _>(&mut map, "session")?.map(|text| text.0),
            turn: next(&mut map, "turn")?,
            event: next::<Option<BorrowedText<'_>>, _>(&mut map, "event")?.map(|text| text.0),
            kind: next(&mut map, "kind")?,
            digest: next::<Option<BorrowedText<'_>>, _>(&mut map, "digest")?.map(|text| text.0),
            body: next(&mut map, "body")?,
            h: next(&mut map, "h")?,
            line: "",
        };
        match map.next_key::<BorrowedText<'de>>()? {
            None => Ok(record),
            Some(_) => Err(M::Error::custom("unexpected field after the hash")),
        }
    }
}

/// A line that is not a valid record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The bytes do not have the hash in the line.
    #[error("the bytes do not have the recorded hash")]
    Edited,
    /// The line does not have the form of a record.
    #[error("not a record: {0}")]
    Unreadable(String),
}

impl<'a> Record<'a> {
    /// Parses a line, without its line feed, and checks its hash.
    ///
    /// # Errors
    /// If the line is not a record, or its bytes do not have its hash.
    pub fn parse(line: &'a [u8]) -> Result<Self, RecordError> {
        let unreadable = |what: &str| RecordError::Unreadable(what.to_owned());
        // No early exit, so that the compiler can vectorize the loop.
        if line.iter().fold(false, |wrong, byte| wrong | !(0x20..0x7f).contains(byte)) {
            return Err(unreadable("bytes that are not printable ASCII"));
        }
        let Some((hashed, suffix)) = line.len().checked_sub(SUFFIX).map(|at| line.split_at(at)) else {
            return Err(unreadable("too short"));
        };
        let h = suffix.strip_prefix(br#","h":""#).and_then(|rest| Hash::from_hex(rest.strip_suffix(br#""}"#)?));
        let h = h.ok_or_else(|| unreadable("no hash at the end"))?;
        if Hash::leaf(hashed) != h {
            return Err(RecordError::Edited);
        }
        let text = std::str::from_utf8(line).unwrap_or_default();
        let mut json = serde_json::Deserializer::from_str(text);
        let record = json.deserialize_map(RecordVisitor).and_then(|record| json.end().map(|()| record));
        let mut record = record.map_err(|error| RecordError::Unreadable(error.to_string()))?;
        record.line = text;
        if record.v != 1 {
            return Err(RecordError::Unreadable(format!("unknown version {}", record.v)));
        }
        if !record.body.get().starts_with('{') {
            return Err(unreadable("the body is not an object"));
        }
        if !is_log_id(&record.log) {
            return Err(unreadable("invalid log id"));
        }
        if !is_time(record.time.as_bytes()) {
            return Err(RecordError::Unreadable(format!("invalid timestamp `{}`", record.time)));
        }
        Ok(record)
    }

    /// Returns the line in the log.
    pub fn line(&self) -> &'a str {
        self.line
    }

    /// Reads the entry of the record from its whole body; `None` for records about the log itself.
    ///
    /// # Errors
    /// If the text is not the body of an entry of this kind.
    pub fn entry(&self, body: &str) -> Result<Option<AuditEntry>, RecordError> {
        fn read<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, RecordError> {
            serde_json::from_str(body).map_err(|error| RecordError::Unreadable(error.to_string()))
        }
        Ok(Some(match self.kind {
            Kind::Event => AuditEntry::Event(read(body)?),
            Kind::HookReport => AuditEntry::HookReport(read(body)?),
            Kind::ApprovalRequest => AuditEntry::ApprovalRequest(read(body)?),
            Kind::ApprovalDecision => AuditEntry::ApprovalDecision(read(body)?),
            Kind::LateAnswer => AuditEntry::LateAnswer(read(body)?),
            Kind::Injection => AuditEntry::Injection(read(body)?),
            Kind::Message => AuditEntry::Message(read(body)?),
            Kind::Intent => {
                let digest = self.digest.as_deref().and_then(|digest| digest.parse().ok());
                AuditEntry::Intent(IntentEntry { digest, ..read(body)? })
            }
            Kind::Outcome => AuditEntry::Outcome(read(body)?),
            Kind::Failure => AuditEntry::Failure(read(body)?),
            Kind::Genesis
            | Kind::Segment
            | Kind::Checkpoint
            | Kind::KeyRotation
            | Kind::PolicyChange
            | Kind::Gap
            | Kind::Recovery
            | Kind::Breach
            | Kind::Seal => return Ok(None),
        }))
    }

    pub(crate) fn body<T: Deserialize<'a>>(&self) -> Result<T, RecordError> {
        serde_json::from_str(self.body.get()).map_err(|error| RecordError::Unreadable(error.to_string()))
    }
}

/// A record without its position in a log.
pub(crate) struct PendingRecord {
    pub(crate) kind: Kind,
    pub(crate) session: Option<String>,
    /// The line from `"time"` to `"body"`, without the body of a request.
    text: Vec<u8>,
    pub(crate) blob: Option<(Hash, Vec<u8>)>,
    pub(crate) request: Option<ModelRequest>,
    blob_above: usize,
}

pub(crate) struct RecordHeader<'a> {
    pub(crate) at: SystemTime,
    pub(crate) writer: &'a str,
    pub(crate) session: Option<&'a str>,
    pub(crate) turn: Option<u64>,
    pub(crate) event: Option<&'a str>,
    pub(crate) kind: Kind,
    pub(crate) digest: Option<String>,
}

impl PendingRecord {
    /// Creates a record with this body, which is a JSON object in ASCII. A body above the limit becomes a blob.
    pub(crate) fn new(fields: RecordHeader<'_>, body: Vec<u8>, blob_above: usize) -> Self {
        let RecordHeader { at, writer, session, turn, event, kind, digest } = fields;
        let mut text = Vec::with_capacity(body.len().min(blob_above) + 256);
        text.extend_from_slice(b"\"time\":\"");
        write_time(&mut text, at);
        text.extend_from_slice(b"\",\"writer\":");
        write_json(&mut text, writer);
        text.extend_from_slice(b",\"session\":");
        write_json(&mut text, &session);
        text.extend_from_slice(b",\"turn\":");
        write_json(&mut text, &turn);
        text.extend_from_slice(b",\"event\":");
        write_json(&mut text, &event);
        text.extend_from_slice(b",\"kind\":\"");
        text.extend_from_slice(kind.as_str().as_bytes());
        text.extend_from_slice(b"\",\"digest\":");
        write_json(&mut text, &digest);
        text.extend_from_slice(b",\"body\":");
        let mut draft = Self { kind, session: session.map(str::to_owned), text, blob: None, request: None, blob_above };
        let request = if kind == Kind::Event && session.is_some() { ModelRequest::read(body) } else { Err(body) };
        match request {
            Ok(request) => draft.request = Some(request),
            Err(body) => draft.put_body(body),
        }
        draft
    }

    pub(crate) fn with_body(&self, body: Vec<u8>) -> Self {
        let (text, session) = (self.text.clone(), self.session.clone());
        let mut draft = Self { kind: self.kind, session, text, blob: None, request: None, blob_above: self.blob_above };
        draft.put_body(body);
        draft
    }

    fn put_body(&mut self, body: Vec<u8>) {
        if body.len() > self.blob_above {
            let hash = Hash::sha256(&body);
            write_json(&mut self.text, &Blob { blob: format!("sha256:{hash}").into(), bytes: body.len() as u64 });
            self.blob = Some((hash, body));
        } else {
            self.text.extend_from_slice(&body);
        }
    }

    pub(crate) fn size(&self) -> usize {
        let blob = self.blob.as_ref().map_or(0, |(_, body)| body.len());
        self.text.len() + blob + self.request.as_ref().map_or(0, |request| request.body.len())
    }

    /// Appends the line to `line`, and returns its hash.
    pub(crate) fn append_hashed_line(&self, line: &mut Vec<u8>, log: &str, seg: u64, seq: u64, prev: &Hash) -> Hash {
        let begin = line.len();
        line.extend_from_slice(b"{\"v\":1,\"log\":\"");
        line.extend_from_slice(log.as_bytes());
        line.extend_from_slice(b"\",\"seg\":");
        write_json(line, &seg);
        line.extend_from_slice(b",\"seq\":");
        write_json(line, &seq);
        line.extend_from_slice(b",\"prev\":\"");
        line.extend_from_slice(&prev.to_hex());
        line.extend_from_slice(b"\",");
        line.extend_from_slice(&self.text);
        let h = Hash::leaf(&line[begin..]);
        line.extend_from_slice(b",\"h\":\"");
        line.extend_from_slice(&h.to_hex());
        line.extend_from_slice(b"\"}\n");
        h
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Blob<'a> {
    #[serde(borrow)]
    pub(crate) blob: Cow<'a, str>,
    pub(crate) bytes: u64,
}

impl Blob<'_> {
    pub(crate) fn hash(&self) -> Option<Hash> {
        Self::hash_in(&self.blob)
    }

    pub(crate) fn hash_in(text: &str) -> Option<Hash> {
        Hash::from_hex(text.strip_prefix("sha256:")?.as_bytes())
    }
}

/// Returns the file of the large body with this hash, in the folder of the log.
pub fn blob_file(hash: &Hash) -> String {
    let name = hash.to_string();
    format!("blobs/{}/{name}", &name[..2])
}

pub(crate) fn write_json(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let begin = text.len();
    let mut serializer = serde_json::Serializer::with_formatter(&mut *text, AsciiFormatter);
    if value.serialize(&mut serializer).is_err() {
        // Only a map with other keys than text can fail, and there is none here.
        text.truncate(begin);
        text.extend_from_slice(b"null");
    }
}

/// Writes JSON without characters that control a terminal.
struct AsciiFormatter;

impl Formatter for AsciiFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.is_ascii() && !fragment.as_bytes().contains(&0x7f) {
            return writer.write_all(fragment.as_bytes());
        }
        for character in fragment.chars() {
            if character.is_ascii() && character != '\u{7f}' {
                writer.write_all(&[character as u8])?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

/// Writes a time: UTC, RFC 3339, microseconds.
pub(crate) fn write_time(text: &mut Vec<u8>, at: SystemTime) {
    // An extreme time is replaced by the nearest limit, so that all times have one form.
    let at = jiff::Timestamp::try_from(at.max(SystemTime::UNIX_EPOCH)).unwrap_or(jiff::Timestamp::MAX);
    // Writing to memory does not fail.
    let _ = write!(text, "{at:.6}");
}

fn is_time(text: &[u8]) -> bool {
    let form = b"0000-00-00T00:00:00.000000Z";
    text.len() == form.len()
        && text.iter().zip(form).all(|(byte, form)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form })
}

pub(crate) fn time_text(at: SystemTime) -> String {
    let mut text = Vec::new();
    write_time(&mut text, at);
    String::from_utf8_lossy(&text).into_owned()
}
