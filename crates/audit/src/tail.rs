//! The end of a log: where the next record goes, and what it has to follow.

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

/// Whether a file is named as if it were a segment: one that nobody would look at.
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
    /// The notes of all rotations before it, so that the first key still vouches for this one when their records are gone.
    pub(crate) rotations: Vec<String>,
}

/// The body of a checkpoint.
#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointBody {
    pub(crate) note: String,
}

/// The body of a record that another key is in force.
#[derive(Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRotation {
    pub(crate) public_key: PublicKey,
    pub(crate) note: String,
}

/// After how many records a checkpoint may be due: with fewer there would be no place for a record, with more for too many lies.
pub(crate) const EVERY: RangeInclusive<u64> = 2..=4096;

/// Where a signed record stands: what its note has to agree with.
pub(crate) struct SigningContext<'a> {
    pub(crate) log: &'a str,
    pub(crate) key: &'a PublicKey,
    pub(crate) seq: u64,
    pub(crate) prev: Hash,
}

impl SigningContext<'_> {
    /// The checkpoint of a record that stands here. The root is compared where it is known.
    pub(crate) fn checkpoint(&self, note: &str, root: Option<Hash>) -> Result<Checkpoint, String> {
        let note = Note::parse(note).map_err(|error| format!("the checkpoint is malformed: {error}"))?;
        let checkpoint = Checkpoint::read(&note).map_err(|error| format!("the checkpoint is malformed: {error}"))?;
        let wrong = if checkpoint.log != self.log {
            "is of another log"
        } else if !note.is_signed_by(&Checkpoint::origin(self.log), self.key) {
            "is not signed with the key in force"
        } else if checkpoint.size != self.seq || checkpoint.head != self.prev {
            "does not stand where it belongs"
        } else if root.is_some_and(|root| root != checkpoint.root) {
            "is of other records than those before it"
        } else {
            return Ok(checkpoint);
        };
        Err(format!("the checkpoint {wrong}"))
    }

    /// Whether the key in force has signed for the removal of segments.
    pub(crate) fn has_removed(&self, before: u64, note: &str) -> bool {
        self.has_signed(note, &retention_text(self.log, self.seq, &self.prev, before))
    }

    /// Whether the key in force has signed for the new one.
    pub(crate) fn has_rotated(&self, rotation: &KeyRotation) -> bool {
        self.has_signed(&rotation.note, &rotation_text(self.log, self.seq, &self.prev, &rotation.public_key))
    }

    fn has_signed(&self, note: &str, text: &str) -> bool {
        Note::parse(note)
            .is_ok_and(|note| note.text() == text && note.is_signed_by(&Checkpoint::origin(self.log), self.key))
    }
}

/// The end of a log.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    pub(crate) log: String,
    pub(crate) segment: u64,
    /// Where the segment's last whole record ends.
    pub(crate) offset: u64,
    /// How many records there are; also the number of the next.
    pub(crate) size: u64,
    pub(crate) head: Hash,
    pub(crate) frontier: Frontier,
    /// How many records no checkpoint covers.
    pub(crate) uncovered: u64,
    pub(crate) every: u64,
    /// The key in force.
    pub(crate) key: PublicKey,
    /// What the segment's first record follows: so many records, the last with this hash.
    pub(crate) follows: (u64, Hash),
    pub(crate) rotations: Vec<String>,
    /// Whether the key in force has signed a checkpoint in this segment.
    pub(crate) is_signed: bool,
}

/// What follows the last whole record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TailRemainder {
    /// Nothing.
    Clean,
    /// Bytes that are no record: a crash left them.
    Torn,
    /// A record that does not belong there, or one after bytes that are none: no crash does that.
    Breach(String),
}

impl Tail {
    /// The tail after the first record of a segment, if that is one.
    pub(crate) fn begin(segment: u64, text: &[u8]) -> Result<Self, String> {
        let end = text.iter().position(|&byte| byte == b'\n').ok_or("its first record is torn")?;
        let record = Record::parse(&text[..end]).map_err(|error| format!("its first record is damaged: {error}"))?;
        if record.seg != segment {
            return Err(format!("it says that it is segment {}", record.seg));
        }
        let unreadable = |error| format!("its first record is damaged: {error}");
        let (frontier, key, every, rotations) = match record.kind {
            Kind::Genesis if segment == 1 && record.seq == 0 && record.prev == Hash::ZERO => {
                let Genesis { public_key, every, .. } = record.body().map_err(unreadable)?;
                (Frontier::new(), public_key, every, Vec::new())
            }
            Kind::Segment => {
                let Segment { note, frontier, public_key, every, rotations } = record.body().map_err(unreadable)?;
                let frontier = Frontier::from_nodes(record.seq, frontier).ok_or("its frontier does not fit")?;
                let context = SigningContext { log: &record.log, key: &public_key, seq: record.seq, prev: record.prev };
                context.checkpoint(&note, Some(frontier.root()))?;
                (frontier, public_key, every, rotations)
            }
            kind => return Err(format!("it begins with a record of kind `{}`", kind.as_str())),
        };
        if !EVERY.contains(&every) {
            return Err(format!("it has a checkpoint after {}", counted(every, "record")));
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

    /// Goes past a record of so many bytes that stands here, if it may: nothing that is not signed for counts.
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

    /// Puts another key in force.
    pub(crate) fn rotate(&mut self, key: PublicKey, note: String) {
        self.key = key;
        self.is_signed = false;
        self.rotations.push(note);
    }

    /// The same for a record that was just made.
    pub(crate) fn advance(&mut self, kind: Kind, h: Hash, bytes: u64) {
        self.offset += bytes;
        self.size += 1;
        self.head = h;
        self.frontier.push(h);
        self.uncovered = uncovered_after(kind, self.uncovered, self.every);
    }

    /// Goes past every whole record in what follows, and says what is left. `seen` is shown each record.
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
                        "record {} stands where record {} belongs",
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

/// How many records no checkpoint covers after one of that kind. A checkpoint covers what is before it, not itself; and a log's
/// first record must have one at once, or anyone could begin a log in somebody's name.
pub(crate) fn uncovered_after(kind: Kind, uncovered: u64, every: u64) -> u64 {
    match kind {
        Kind::Genesis => every,
        Kind::Checkpoint | Kind::Segment => 1,
        _ => uncovered.saturating_add(1),
    }
}
