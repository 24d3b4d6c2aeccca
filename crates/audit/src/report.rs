//! Reports of verifications, for programs and as text.

use std::fmt;

use amplifier_core::text::{EscapeMode, visible};
use serde::Serialize;

use crate::Hash;
use crate::appender::Counts;
use crate::keys::PublicKey;
use crate::phrases::{counted, first_records};

/// The report of a verification.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The log's id.
    pub log: String,
    /// The number of the first existing record: not 0 if retention removed some.
    pub first: u64,
    /// The number of records, including removed ones.
    pub size: u64,
    /// The number of checked records.
    pub records: u64,
    /// The number of checked records of each kind.
    pub kinds: Counts,
    /// The number of segments.
    pub segments: u64,
    /// The hash of the last record.
    pub head: Option<Hash>,
    /// The Merkle root over all records.
    pub root: Option<Hash>,
    /// The active key at the end.
    pub public_key: Option<PublicKey>,
    /// The source of the key.
    pub trust: Trust,
    /// The number of signed checkpoints.
    pub checkpoints: u64,
    /// The number of records that the last of them covers.
    pub covered: u64,
    /// The time of that checkpoint.
    pub covered_at: Option<String>,
    /// The number of records that the last anchored checkpoint with a signature of the log's key covers.
    pub anchored: Option<u64>,
    /// The time of that checkpoint.
    pub anchored_at: Option<String>,
    /// The number of records that the last anchored checkpoint without a signature of the log's key covers: it agrees with the log, but
    /// proves nothing.
    pub unsigned_elsewhere: Option<u64>,
    /// The time of the last record.
    pub last_time: String,
    /// The number of key rotations.
    pub rotations: u64,
    /// The number of sealed sessions.
    pub sealed: u64,
    /// The sessions without a seal.
    pub unsealed: Vec<String>,
    /// The unresolved operations: they may have run, and have no outcome.
    pub in_doubt: Vec<UnresolvedOperation>,
    /// The number of recorded gaps, where records were lost.
    pub gaps: u64,
    /// The number of torn ends that were moved aside after a crash.
    pub recoveries: u64,
    /// The number of breaches that the writer found.
    pub breaches: u64,
    /// The number of unaltered large bodies.
    pub blobs: u64,
    /// The number of erased large bodies.
    pub blobs_erased: u64,
    /// The findings.
    pub findings: Vec<Finding>,
    /// The number of further findings.
    pub more_findings: u64,
    /// `true` if any finding, listed or not, is worse than unreadable.
    #[serde(skip)]
    pub(crate) is_unsound: bool,
}

/// The source of the key that verifies the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The log itself: an attacker who replaces the whole log can use another key.
    #[default]
    KeyFromLog,
    /// The verifier.
    KeyKnown,
}

/// An operation with an intent and no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnresolvedOperation {
    /// The number of the record of its intent.
    pub seq: u64,
    /// The time of the intent.
    pub time: String,
    /// The session.
    pub session: Option<String>,
    /// The event.
    pub event: Option<String>,
    /// The tool call.
    pub tool_call_id: Option<String>,
}

/// A problem in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of problem.
    pub problem: Problem,
    /// The file.
    pub file: Option<String>,
    /// The line of the file.
    pub line: Option<u64>,
    /// The number of the expected record. Without a line: the number of affected records, from the first one on.
    pub seq: u64,
    /// The description.
    pub text: String,
}

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// A part does not have the form of a log.
    Unreadable,
    /// The bytes of a record were altered.
    Edited,
    /// Records are missing.
    Deleted,
    /// A record was inserted, repeated or moved.
    Misplaced,
    /// An earlier record was replaced.
    Rewritten,
    /// A checkpoint does not fit the records, or is not signed.
    Checkpoint,
    /// A checkpoint is missing.
    MissingCheckpoint,
    /// The log is shorter than a checkpoint requires.
    Truncated,
    /// The records differ from those that a checkpoint covers.
    Replaced,
    /// The key is another one than expected.
    Key,
    /// A seal does not fit the records.
    Seal,
    /// The writer recorded a breach.
    Breach,
}

/// The overall result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// No problems.
    Sound,
    /// The log was changed after it was written.
    Unsound,
    /// The log could not be read to its end, without worse problems.
    Unreadable,
}

impl Integrity {
    /// Returns the exit code: 0, 1 or 4. (2 is for wrong usage, 3 for a denial.)
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Sound => 0,
            Self::Unsound => 1,
            Self::Unreadable => 4,
        }
    }
}

impl Report {
    /// Returns the overall result.
    pub fn integrity(&self) -> Integrity {
        match &self.findings[..] {
            [] => Integrity::Sound,
            _ if self.is_unsound => Integrity::Unsound,
            _ => Integrity::Unreadable,
        }
    }

    /// Returns `true` if there are no problems.
    pub fn is_sound(&self) -> bool {
        self.integrity() == Integrity::Sound
    }

    /// Returns the number of records at the end without a signature: write access is enough to replace or remove them unnoticed.
    pub fn unsigned(&self) -> u64 {
        self.size.saturating_sub(self.covered)
    }

    /// Returns the number of records at the end without an anchor: write access and the key are enough to replace or remove them unnoticed.
    pub fn unanchored(&self) -> u64 {
        self.size.saturating_sub(self.anchored.unwrap_or(0))
    }

    /// Returns the report as JSON: its fields, the overall result, and texts about the proved and unproved facts.
    pub fn to_json(&self) -> serde_json::Value {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        json["verdict"] = serde_json::to_value(self.integrity()).unwrap_or_default();
        json["unsigned"] = self.unsigned().into();
        json["unanchored"] = self.unanchored().into();
        json["proved"] = self.proved().into();
        json["not_proved"] = self.not_proved().into();
        json
    }

    /// Returns texts about the proved facts; none unless the log is sound.
    pub fn proved(&self) -> Vec<String> {
        if !self.is_sound() {
            return Vec::new();
        }
        let mut proved = vec![format!(
            "every byte of records {} to {} is as it was written, in that order, with none missing between them",
            self.first,
            self.size.saturating_sub(1)
        )];
        if self.checkpoints > 0 {
            let key = match self.trust {
                Trust::KeyKnown => "the expected key",
                Trust::KeyFromLog => "the key that the log names",
            };
            let were = if self.covered == 1 { "was" } else { "were" };
            proved.push(format!("{} {were} signed with {key}", first_records(self.covered)));
        }
        if let (Some(size), Some(time)) = (self.anchored, &self.anchored_at) {
            let are = if size == 1 { "is the one that was" } else { "are those that were" };
            proved.push(format!("{} {are} anchored at {time}", first_records(size)));
        }
        if self.first > 0 {
            let (were, them) = if self.first == 1 { ("was", "it") } else { ("were", "them") };
            let older = counted(self.first, "older record");
            proved.push(format!("{older} {were} removed, and a signed checkpoint stands for {them}"));
        }
        if self.blobs > 0 {
            proved.push(match self.blobs {
                1 => "1 large body is as it was written".to_owned(),
                blobs => format!("{blobs} large bodies are as they were written"),
            });
        }
        proved
    }

    /// Returns texts about the unproved facts, with possible remedies.
    pub fn not_proved(&self) -> Vec<String> {
        let mut not_proved = Vec::new();
        if self.trust == Trust::KeyFromLog {
            not_proved.push(
                "that this is the log, and not another one in its place: say which key it must be signed with"
                    .to_owned(),
            );
        }
        match self.anchored {
            None => not_proved.push(
                "that nothing is missing at the end, and that no one with the key rewrote the log: compare with an anchor"
                    .to_owned(),
            ),
            Some(size) if size < self.size => {
                let since = self.anchored_at.as_deref().unwrap_or("the last anchor");
                not_proved.push(match self.unanchored() {
                    1 => format!(
                        "that the last record (since {since}) was not exchanged by someone with the key, and that none is missing after it"
                    ),
                    last => format!(
                        "that the last {last} records (since {since}) were not exchanged by someone with the key, and that none is missing after them"
                    ),
                });
            }
            Some(_) => {}
        }
        match self.unsigned() {
            0 => {}
            1 => not_proved
                .push("that the last record was not exchanged or removed: no signature covers it yet".to_owned()),
            last => not_proved.push(format!(
                "that the last {last} records were not exchanged or shortened: no signature covers them yet"
            )),
        }
        match self.blobs_erased {
            0 => {}
            1 => not_proved.push("what 1 large body said: it was erased".to_owned()),
            erased => not_proved.push(format!("what {erased} large bodies said: they were erased")),
        }
        not_proved
    }
}

/// The whole report as text, without colours.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.integrity() {
            Integrity::Sound => "sound",
            Integrity::Unsound => "UNSOUND",
            Integrity::Unreadable => "UNREADABLE",
        };
        let (records, segments) = (counted(self.records, "record"), counted(self.segments, "segment"));
        writeln!(f, "{word}: {records} in {segments}, log {}", visible(&self.log, EscapeMode::Exact))?;
        for finding in &self.findings {
            let place = match (&finding.file, finding.line) {
                (Some(file), Some(line)) => format!("{file}:{line}: "),
                (Some(file), None) => format!("{file}: "),
                _ => String::new(),
            };
            writeln!(f, "  ! {place}{}", visible(&finding.text, EscapeMode::Exact))?;
        }
        if self.more_findings > 0 {
            writeln!(f, "  ! and {} more", self.more_findings)?;
        }
        let part = |f: &mut fmt::Formatter<'_>, title: &str, lines: &[String]| {
            if lines.is_empty() {
                return Ok(());
            }
            writeln!(f, "{title}")?;
            lines.iter().try_for_each(|line| writeln!(f, "  - {}", visible(line, EscapeMode::Exact)))
        };
        part(f, "proved", &self.proved())?;
        part(f, "not proved", &self.not_proved())?;
        part(f, "to know", &self.to_know())
    }
}

impl Report {
    fn to_know(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(time), true) = (&self.covered_at, self.checkpoints > 0) {
            let (checkpoints, covered) = (counted(self.checkpoints, "checkpoint"), counted(self.covered, "record"));
            lines.push(format!("{checkpoints}, the last over {covered} at {time}"));
        }
        if let Some(size) = self.unsigned_elsewhere {
            let agree = if size == 1 { "agrees" } else { "agree" };
            lines.push(format!("{} {agree} with a checkpoint that is stored elsewhere, unsigned", first_records(size)));
        }
        if self.sealed > 0 || !self.unsealed.is_empty() {
            let mut line = format!("{} sealed, {} open", counted(self.sealed, "session"), self.unsealed.len());
            if !self.unsealed.is_empty() {
                let some: Vec<&str> = self.unsealed.iter().take(5).map(String::as_str).collect();
                let more = if self.unsealed.len() > 5 { ", …" } else { "" };
                line.push_str(&format!(" (running or crashed): {}{more}", some.join(", ")));
            }
            lines.push(line);
        }
        for one in self.in_doubt.iter().take(10) {
            lines.push(format!(
                "unresolved: record {} at {}, {} {}: may have run, and has no outcome",
                one.seq,
                one.time,
                one.event.as_deref().unwrap_or("operation"),
                one.tool_call_id.as_deref().unwrap_or("without an id"),
            ));
        }
        if self.in_doubt.len() > 10 {
            lines.push(format!("unresolved: {} more", self.in_doubt.len() - 10));
        }
        let mut count = |count: u64, one: &str, more: &str, text: &str| {
            if count > 0 {
                lines.push(format!("{count} {}{text}", if count == 1 { one } else { more }));
            }
        };
        count(self.gaps, "gap", "gaps", ": the log says itself that records were lost there");
        count(self.recoveries, "recovery", "recoveries", " after a crash");
        count(self.rotations, "rotation", "rotations", " of keys");
        lines
    }
}
