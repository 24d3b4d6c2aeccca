//! A whole log as one input, as text: a letter for the mode, and then each file after a line with its name.
//!
//! ```text
//! A
//! == checkpoints
//! amplifier-audit/…
//! == seg-000001.jsonl
//! {"v":1,…}
//! ```
//!
//! A mutated line hardly ever has the hash that it carries. So that mutations reach what comes after that check, the
//! mode can ask for repairs: what an attacker would do who changed the log and covers that up.

use amplifier_audit::{Checkpoint, Frontier, Hash, Kind, Record, SigningKey};
use serde::Deserialize;

use crate::memory::{Files, segments};

/// What stands before the name of each file. The line feed is not part of the file before.
const SEPARATOR: &[u8] = b"\n== ";

/// What is done to the files before they are used: the lowest bits of the first byte.
#[derive(Clone, Copy, Default)]
pub struct Mode {
    /// Links and hashes are made good.
    pub chained: bool,
    /// Records are numbered anew.
    pub numbered: bool,
    /// Checkpoints are signed anew, with the right key.
    pub signed: bool,
    /// A bit that each target has its own use for.
    pub other: bool,
}

impl Mode {
    /// A letter, so that inputs can be read.
    pub fn letter(self) -> u8 {
        let bits = [self.chained, self.numbered, self.signed, self.other];
        bits.iter().zip(0..).fold(b'@', |letter, (set, bit)| letter | u8::from(*set) << bit)
    }

    fn read(letter: u8) -> Self {
        let bit = |bit: u8| letter & 1 << bit != 0;
        Self { chained: bit(0), numbered: bit(1), signed: bit(2), other: bit(3) }
    }
}

/// The files of a log, and what is to be done with them.
pub struct Input {
    pub mode: Mode,
    pub files: Files,
}

impl Input {
    /// Reads an input and makes the repairs that its mode asks for.
    pub fn read(bytes: &[u8], key: &SigningKey) -> Self {
        let mut input = Self::read_as_it_is(bytes);
        if input.mode.chained || input.mode.numbered || input.mode.signed {
            repair(&mut input.files, input.mode, key);
        }
        input
    }

    /// Reads an input without repairs.
    pub fn read_as_it_is(bytes: &[u8]) -> Self {
        let mode = Mode::read(bytes.first().copied().unwrap_or_default());
        let mut files = Files::new();
        let mut rest = bytes;
        while let Some(at) = find(rest, SEPARATOR) {
            rest = &rest[at + SEPARATOR.len()..];
            let file = &rest[..find(rest, SEPARATOR).unwrap_or(rest.len())];
            let name = find(file, b"\n").unwrap_or(file.len());
            let content = file.get(name + 1..).unwrap_or_default();
            files.insert(String::from_utf8_lossy(&file[..name]).into_owned(), content.to_vec());
        }
        Self { mode, files }
    }

    /// The input that is read as these files.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![self.mode.letter()];
        for (name, content) in &self.files {
            for part in [SEPARATOR, name.as_bytes(), b"\n", content] {
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }
}

/// The chain while it is repaired.
struct Repair<'a> {
    mode: Mode,
    key: &'a SigningKey,
    size: u64,
    head: Hash,
    frontier: Frontier,
    newest: Option<String>,
}

fn repair(files: &mut Files, mode: Mode, key: &SigningKey) {
    let mut repair = Repair { mode, key, size: 0, head: Hash::ZERO, frontier: Frontier::new(), newest: None };
    for (_, file) in segments(files) {
        let mut repaired = Vec::with_capacity(file.len());
        for line in file.split_inclusive(|&byte| byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => {
                    repaired.extend(repair.line(line));
                    repaired.push(b'\n');
                }
                // A torn line stays torn.
                None => repaired.extend_from_slice(line),
            }
        }
        *file = repaired;
    }
    if let Some(note) = repair.newest
        && let Some(checkpoints) = files.get_mut("checkpoints")
    {
        *checkpoints = format!("{note}\n").into_bytes();
    }
}

impl Repair<'_> {
    fn line(&mut self, line: &[u8]) -> Vec<u8> {
        // What does not end like a record is left alone.
        let Some(end) = line.windows(6).rposition(|part| part == b",\"h\":\"") else { return line.to_vec() };
        let mut hashed = line[..end].to_vec();
        let first = self.head == Hash::ZERO;
        // The first record may follow others that retention removed.
        if !first {
            splice(&mut hashed, b"\"prev\":\"", b'"', &self.head.to_hex());
            if self.mode.numbered {
                splice(&mut hashed, b"\"seq\":", b',', self.size.to_string().as_bytes());
            }
        }
        let mut line = with_hash(&hashed);
        if let Ok(record) = Record::parse(&line) {
            if first {
                (self.size, self.head) = (record.seq, record.prev);
                self.frontier = frontier(&record).unwrap_or_default();
            }
            if self.mode.signed && matches!(record.kind, Kind::Checkpoint | Kind::Segment) {
                self.sign(&record, &mut hashed);
                line = with_hash(&hashed);
            }
        }
        self.size = self.size.saturating_add(1);
        self.head = Hash::leaf(&hashed);
        self.frontier.push(self.head);
        line
    }

    fn sign(&mut self, record: &Record<'_>, hashed: &mut Vec<u8>) {
        let checkpoint = Checkpoint {
            log: record.log.to_string(),
            size: record.seq,
            root: self.frontier.root(),
            head: self.head,
            time: record.time.to_string(),
        };
        let note = checkpoint.sign(self.key).to_string();
        let nodes: Vec<_> = self.frontier.nodes().iter().map(|node| format!("\"{node}\"")).collect();
        splice(hashed, b"\"note\":\"", b'"', note.replace('\n', "\\n").replace('—', "\\u2014").as_bytes());
        splice(hashed, b"\"frontier\":[", b']', nodes.join(",").as_bytes());
        self.newest = Some(note);
    }
}

/// The frontier that the first record of a segment names.
fn frontier(record: &Record<'_>) -> Option<Frontier> {
    #[derive(Deserialize)]
    struct Body {
        frontier: Vec<Hash>,
    }
    let body: Body = serde_json::from_str(record.body.get()).ok()?;
    Frontier::from_nodes(record.seq, body.frontier)
}

/// The line with the hash of its bytes.
fn with_hash(hashed: &[u8]) -> Vec<u8> {
    [hashed, b",\"h\":\"", &Hash::leaf(hashed).to_hex(), b"\"}"].concat()
}

/// Replaces what stands between the two.
fn splice(line: &mut Vec<u8>, from: &[u8], to: u8, by: &[u8]) {
    let Some(start) = find(line, from).map(|at| at + from.len()) else { return };
    let Some(length) = line[start..].iter().position(|&byte| byte == to) else { return };
    line.splice(start..start + length, by.iter().copied());
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
