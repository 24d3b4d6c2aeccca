//! The end of a log: the position of the next record, and the state that it must follow.

use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::Hash;
use crate::keys::PublicKey;
use crate::merkle::Frontier;
use crate::note::{Checkpoint, Note, retention_text, rotation_text};
use crate::phrases::counted;
use crate::record::{Kind, Record};
use crate::retention::LogChange;

/// Returns the name of the file of a segment.
pub fn segment_file(number: u64) -> String {
    format!("seg-{number:06}.jsonl")
}

/// Returns the number of the segment in a file of that name; `None` if it is not the name of a segment.
pub fn segment_number(file: &str) -> Option<u64> {
    let number = file.strip_prefix("seg-")?.strip_suffix(".jsonl")?.parse::<u32>().ok()?.into();
    (segment_file(number) == file).then_some(number)
}

/// Returns `true` if a file is named like a segment, but is not read as one.
pub(crate) fn is_odd_segment(file: &str) -> bool {
    file.starts_with("seg-") && !file.ends_with(".tmp") && segment_number(file).is_none()
}

/// The body of the first record of a log.
#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Genesis {
    pub(crate) format: String,
    pub(crate) public_key: PublicKey,
    pub(crate) every: u64,
}

/// The body of the first record of every other segment.
#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Segment {
    pub(crate) note: String,
    pub(crate) frontier: Vec<Hash>,
    pub(crate) public_key: PublicKey,
    pub(crate) every: u64,
    /// The notes of all earlier rotations, so that the first key still vouches for this one when their records are removed.
    pub(crate) rotations: Vec<String>,
}

#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointBody {
    pub(crate) note: String,
}

#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRotation {
    pub(crate) public_key: PublicKey,
    pub(crate) note: String,
}

/// The valid numbers of records between checkpoints: fewer leave no room for a record, more leave too many unsigned.
pub(crate) const EVERY: RangeInclusive<u64> = 2..=4096;

/// The log, the key and the position that a signed note must agree with.
pub(crate) struct SigningContext<'a> {
    pub(crate) log: &'a str,
    pub(crate) key: &'a PublicKey,
    pub(crate) seq: u64,
    pub(crate) prev: Hash,
}

impl SigningContext<'_> {
    /// Checks and returns the checkpoint of a record at this position. The root is compared if it is known.
    pub(crate) fn checkpoint(&self, note: &str, root: Option<Hash>) -> Result<Checkpoint, String> {
        let note = Note::parse(note).map_err(|error| format!("invalid checkpoint: {error}"))?;
        let checkpoint = Checkpoint::read(&note).map_err(|error| format!("invalid checkpoint: {error}"))?;
        let wrong = if checkpoint.log != self.log {
            "is of another log"
        } else if !note.is_signed_by(&Checkpoint::origin(self.log), self.key) {
            "is not signed with the active key"
        } else if checkpoint.size != self.seq || checkpoint.head != self.prev {
            "is misplaced"
        } else if root.is_some_and(|root| root != checkpoint.root) {
            "is of other records than those before it"
        } else {
            return Ok(checkpoint);
        };
        Err(format!("the checkpoint {wrong}"))
    }

    pub(crate) fn has_removed(&self, before: u64, note: &str) -> bool {
        self.has_signed(note, &retention_text(self.log, self.seq, &self.prev, before))
    }

    pub(crate) fn has_rotated(&self, rotation: &KeyRotation) -> bool {
        self.has_signed(&rotation.note, &rotation_text(self.log, self.seq, &self.prev, &rotation.public_key))
    }

    fn has_signed(&self, note: &str, text: &str) -> bool {
        Note::parse(note)
            .is_ok_and(|note| note.text() == text && note.is_signed_by(&Checkpoint::origin(self.log), self.key))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Tail {
    pub(crate) log: String,
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    /// The number of records, which is also the number of the next one.
    pub(crate) size: u64,
    pub(crate) head: Hash,
    pub(crate) frontier: Frontier,
    pub(crate) uncovered: u64,
    pub(crate) every: u64,
    pub(crate) key: PublicKey,
    /// The number of records before the segment, and the hash of the last of them.
    pub(crate) follows: (u64, Hash),
    pub(crate) rotations: Vec<String>,
    /// `true` if the active key has signed a checkpoint in this segment.
    pub(crate) is_signed: bool,
}

/// The bytes after the last whole record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TailRemainder {
    /// None.
    Clean,
    /// A torn record, left by a crash.
    Torn,
    /// A wrong record, or a valid one after a damaged one: not the effect of a crash.
    Breach(String),
}

impl Tail {
    pub(crate) fn begin(segment: u64, text: &[u8]) -> Result<Self, String> {
        let end = text.iter().position(|&byte| byte == b'\n').ok_or("the first record is torn")?;
        let record = Record::parse(&text[..end]).map_err(|error| format!("the first record is damaged: {error}"))?;
        if record.seg != segment {
            return Err(format!("the first record names segment {}", record.seg));
        }
        let unreadable = |error| format!("the first record is damaged: {error}");
        let (frontier, key, every, rotations) = match record.kind {
            Kind::Genesis if segment == 1 && record.seq == 0 && record.prev == Hash::ZERO => {
                let Genesis { public_key, every, .. } = record.body().map_err(unreadable)?;
                (Frontier::new(), public_key, every, Vec::new())
            }
            Kind::Segment => {
                let Segment { note, frontier, public_key, every, rotations } = record.body().map_err(unreadable)?;
                let frontier = Frontier::from_nodes(record.seq, frontier).ok_or("the frontier does not fit")?;
                let context = SigningContext { log: &record.log, key: &public_key, seq: record.seq, prev: record.prev };
                context.checkpoint(&note, Some(frontier.root()))?;
                (frontier, public_key, every, rotations)
            }
            kind => return Err(format!("unexpected first record of kind `{}`", kind.as_str())),
        };
        if !EVERY.contains(&every) {
            return Err(format!("invalid number of records between checkpoints: {}", counted(every, "record")));
        }
        let mut tail = Self {
            log: record.log.to_string(),
            segment,
            offset: 0,
            size: record.seq,
            head: record.prev,
            frontier,
            uncovered: 0,
            every,
            key,
            follows: (record.seq, record.prev),
            rotations,
            is_signed: record.kind == Kind::Segment,
        };
        tail.advance(record.kind, record.h, end as u64 + 1);
        Ok(tail)
    }

    /// Advances past the next record, if its signatures are valid.
    fn follow(&mut self, record: &Record<'_>, bytes: u64) -> Result<(), String> {
        let context = SigningContext { log: &self.log, key: &self.key, seq: self.size, prev: self.head };
        match record.kind {
            Kind::Checkpoint => {
                let CheckpointBody { note } = record.body().map_err(|error| error.to_string())?;
                context.checkpoint(&note, Some(self.frontier.root()))?;
                self.is_signed = true;
            }
            _ if self.uncovered >= self.every => {
                return Err(format!("more than {} records have no checkpoint", self.every));
            }
            Kind::KeyRotation => {
                let rotation: KeyRotation = record.body().map_err(|error| error.to_string())?;
                if !context.has_rotated(&rotation) {
                    return Err("a new key is not signed with the old one".to_owned());
                }
                self.rotate(rotation.public_key, rotation.note);
            }
            Kind::PolicyChange => {
                if let Ok(LogChange::Retention { before, note, .. }) = record.body()
                    && !context.has_removed(before, &note)
                {
                    return Err("a removal of segments is not signed".to_owned());
                }
            }
            _ => {}
        }
        self.advance(record.kind, record.h, bytes);
        Ok(())
    }

    pub(crate) fn rotate(&mut self, key: PublicKey, note: String) {
        self.key = key;
        self.is_signed = false;
        self.rotations.push(note);
    }

    /// Advances past a record that was just made.
    pub(crate) fn advance(&mut self, kind: Kind, h: Hash, bytes: u64) {
        self.offset += bytes;
        self.size += 1;
        self.head = h;
        self.frontier.push(h);
        self.uncovered = uncovered_after(kind, self.uncovered, self.every);
    }

    /// Advances past every whole record of a text, passes each to `seen`, and returns the remainder.
    pub(crate) fn read(&mut self, text: &[u8], mut seen: impl FnMut(&Record<'_>)) -> TailRemainder {
        let mut rest = text;
        loop {
            let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                return if rest.is_empty() { TailRemainder::Clean } else { TailRemainder::Torn };
            };
            match Record::parse(&rest[..end]) {
                Ok(record) if self.is_next(&record) => match self.follow(&record, end as u64 + 1) {
                    Ok(()) => seen(&record),
                    Err(what) => return TailRemainder::Breach(format!("record {}: {what}", self.size)),
                },
                Ok(record) => {
                    return TailRemainder::Breach(format!(
                        "found record {} instead of record {}",
                        record.seq, self.size
                    ));
                }
                Err(_) => return self.after_broken(&rest[end + 1..]),
            }
            rest = &rest[end + 1..];
        }
    }

    fn is_next(&self, record: &Record<'_>) -> bool {
        record.log == self.log
            && record.seg == self.segment
            && record.seq == self.size
            && record.prev == self.head
            && !matches!(record.kind, Kind::Genesis | Kind::Segment)
    }

    fn after_broken(&self, rest: &[u8]) -> TailRemainder {
        let whole = rest.split(|&byte| byte == b'\n').find_map(|line| Record::parse(line).ok());
        match whole {
            Some(record) => TailRemainder::Breach(format!(
                "record {} is damaged, and record {} after it is whole",
                self.size, record.seq
            )),
            None => TailRemainder::Torn,
        }
    }
}

/// Returns the number of records without a checkpoint after a record of this kind. A checkpoint covers the records before it, not itself;
/// and a log's first record needs one immediately, or anyone could begin a log with another's key.
pub(crate) fn uncovered_after(kind: Kind, uncovered: u64, every: u64) -> u64 {
    match kind {
        Kind::Genesis => every,
        Kind::Checkpoint | Kind::Segment => 1,
        _ => uncovered.saturating_add(1),
    }
}
