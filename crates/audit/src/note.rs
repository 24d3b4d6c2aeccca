//! Signed notes (<https://c2sp.org/signed-note>), and the signed texts: checkpoints, key rotations and removals of segments.

mod cosignature;

use std::fmt;
use std::str::FromStr;

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::{Hash, PublicKey, SigningKey};

/// The prefix of a signature line: an em dash and a space.
const SIGNATURE: &str = "— ";

const MAX_BYTES: usize = 64 * 1024;
const MAX_SIGNATURES: usize = 16;

/// A text with one signature or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    // INVARIANT: ends with a line feed.
    text: String,
    signatures: Vec<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Signature {
    name: String,
    key_hash: [u8; 4],
    // Any length: there may be other kinds of signatures, such as those of witnesses.
    bytes: Vec<u8>,
}

impl Note {
    /// Signs a text under a name, and adds a missing last line feed.
    ///
    /// The note can be parsed if the name has no space and no `+`, and the text no control character but line feeds.
    pub fn sign(mut text: String, name: &str, key: &SigningKey) -> Self {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let bytes = key.sign(text.as_bytes()).to_vec();
        let signature = Signature { name: name.to_owned(), key_hash: key.public().hash_for(name), bytes };
        Self { text, signatures: vec![signature] }
    }

    /// Parses a note; a note has only one text form.
    ///
    /// # Errors
    /// If the note is invalid.
    pub fn parse(note: impl AsRef<[u8]>) -> Result<Self, NoteError> {
        let note = note.as_ref();
        if note.len() > MAX_BYTES {
            return Err(NoteError::TooLong);
        }
        let note = str::from_utf8(note).map_err(|_| NoteError::Characters)?;
        if note.chars().any(|character| character.is_control() && character != '\n') {
            return Err(NoteError::Characters);
        }
        // The last empty line, because the text may contain empty lines.
        let (text, lines) = note.rsplit_once("\n\n").ok_or(NoteError::Unsigned)?;
        let lines = lines.strip_suffix('\n').ok_or(NoteError::Unsigned)?;
        if lines.split('\n').count() > MAX_SIGNATURES {
            return Err(NoteError::TooManySignatures);
        }
        let signatures = lines.split('\n').zip(1..);
        let signatures = signatures.map(|(line, number)| Signature::parse(line).ok_or(NoteError::Signature(number)));
        Ok(Self { text: format!("{text}\n"), signatures: signatures.collect::<Result<_, _>>()? })
    }

    /// Returns the signed text, with its last line feed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the owner of this key signed the text under this name.
    ///
    /// A forged signature of this key invalidates the note, even if another one is valid.
    pub fn is_signed_by(&self, name: &str, key: &PublicKey) -> bool {
        let key_hash = key.hash_for(name);
        let mut claims =
            self.signatures.iter().filter(|claim| claim.name == name && claim.key_hash == key_hash).peekable();
        let verifies = |claim: &Signature| {
            claim.bytes.as_slice().try_into().is_ok_and(|signature| key.verify(self.text.as_bytes(), signature))
        };
        claims.peek().is_some() && claims.all(verifies)
    }
}

impl Note {
    /// Returns `true` if a signature has this name, valid or not. A note can have signatures of witnesses only.
    pub(crate) fn is_claimed_by(&self, name: &str) -> bool {
        self.signatures.iter().any(|claim| claim.name == name)
    }
}

impl FromStr for Note {
    type Err = NoteError;

    fn from_str(note: &str) -> Result<Self, NoteError> {
        Self::parse(note)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

impl Signature {
    fn parse(line: &str) -> Option<Self> {
        let (name, base64) = line.strip_prefix(SIGNATURE)?.split_once(' ')?;
        let is_name =
            !name.is_empty() && !name.contains(|character: char| character.is_whitespace() || character == '+');
        let decoded = BASE64_STANDARD.decode(base64).ok()?;
        let (key_hash, bytes) = decoded.split_first_chunk()?;
        let is_valid = is_name && !bytes.is_empty();
        is_valid.then(|| Self { name: name.to_owned(), key_hash: *key_hash, bytes: bytes.to_vec() })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decoded = [&self.key_hash, self.bytes.as_slice()].concat();
        write!(f, "{SIGNATURE}{} {}", self.name, BASE64_STANDARD.encode(decoded))
    }
}

/// The state of a log at a moment: the number of records, and the hashes that commit to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's id: 32 hexadecimal digits.
    pub log: String,
    /// The number of covered records.
    pub size: u64,
    /// The Merkle root over them.
    pub root: Hash,
    /// The hash of the last covered record.
    pub head: Hash,
    /// The time of the checkpoint.
    pub time: String,
}

impl Checkpoint {
    /// Returns the first line of a log's notes, which is also the name of its key.
    pub fn origin(log: &str) -> String {
        format!("amplifier-audit/{log}")
    }

    /// Signs the checkpoint with the log's key.
    pub fn sign(&self, key: &SigningKey) -> Note {
        let Self { log, size, root, head, time } = self;
        let origin = Self::origin(log);
        let root = BASE64_STANDARD.encode(root.as_bytes());
        Note::sign(format!("{origin}\n{size}\n{root}\nhead {head}\ntime {time}\n"), &origin, key)
    }

    /// Reads a checkpoint from the text of a note, without checking the signatures.
    ///
    /// # Errors
    /// If the text is not exactly the five lines of a checkpoint.
    pub fn read(note: &Note) -> Result<Self, NoteError> {
        let lines: Vec<_> = note.text.split_terminator('\n').collect();
        let [origin, size, root, head, time] = lines[..] else { return Err(NoteError::NoCheckpoint) };
        let number: u64 = size.parse().map_err(|_| NoteError::Line(2))?;
        // The only text form of a number: no leading zeros, no sign.
        if number.to_string() != size {
            return Err(NoteError::Line(2));
        }
        Ok(Self {
            log: origin
                .strip_prefix("amplifier-audit/")
                .filter(|log| is_log_id(log))
                .ok_or(NoteError::Line(1))?
                .to_owned(),
            size: number,
            root: read_base64(root).ok_or(NoteError::Line(3))?,
            head: head
                .strip_prefix("head ")
                .and_then(|hash| Hash::from_hex(hash.as_bytes()))
                .ok_or(NoteError::Line(4))?,
            time: time.strip_prefix("time ").filter(|time| is_word(time)).ok_or(NoteError::Line(5))?.to_owned(),
        })
    }
}

/// Returns the text that the active key signs before segments are removed.
pub(crate) fn retention_text(log: &str, seq: u64, prev: &Hash, before: u64) -> String {
    format!("{}\nretention\n{seq}\n{prev}\n{before}\n", Checkpoint::origin(log))
}

/// Returns the text that the old key signs for the new one.
pub(crate) fn rotation_text(log: &str, seq: u64, prev: &Hash, new: &PublicKey) -> String {
    format!("{}\nrotate\n{seq}\n{prev}\n{new}\n", Checkpoint::origin(log))
}

/// Splits a file of notes, each ended by an empty line: the notes, and the rest.
///
/// The rest is a torn last note, and empty otherwise. Text that can never become a note is not the rest: it is among the
/// notes, where [`Note::parse`] refuses it.
pub(crate) fn split_notes(file: &(impl AsRef<[u8]> + ?Sized)) -> (Vec<&[u8]>, &[u8]) {
    let mut rest = file.as_ref();
    let mut notes = Vec::new();
    while let Some((note, after)) = first_note(rest) {
        notes.push(note);
        rest = after;
    }
    (notes, rest)
}

fn first_note(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = end_of_paragraph(file)?;
    let after = &file[text + 1..];
    let dash = SIGNATURE.as_bytes();
    // No signatures and no beginning of them: the next paragraph may be a valid note again.
    if !after.starts_with(dash) && !dash.starts_with(after) {
        return Some((&file[..text], after));
    }
    let end = text + 1 + end_of_paragraph(after)?;
    Some((&file[..end], &file[end + 1..]))
}

/// Returns the end of the lines before the first empty one.
fn end_of_paragraph(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair == b"\n\n").map(|position| position + 1)
}

pub(crate) fn is_log_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn read_base64(text: &str) -> Option<Hash> {
    Some(Hash::from_bytes(BASE64_STANDARD.decode(text).ok()?.try_into().ok()?))
}

/// An invalid note or checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteError {
    /// The text has no complete note.
    #[error("no checkpoint found")]
    Nothing,
    /// The note is too long.
    #[error("the note is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// The note has invalid characters.
    #[error("the note has control characters, or is not UTF-8")]
    Characters,
    /// The note has no signatures.
    #[error("the note has no signatures; expected a text, an empty line and lines of signatures")]
    Unsigned,
    /// The note has too many signatures.
    #[error("the note has more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
    /// The signature with this number, from 1, is invalid.
    #[error("signature {0} of the note is not of the form `— <name> <base64>`")]
    Signature(usize),
    /// The text has more or fewer lines than a checkpoint.
    #[error("the note is not a checkpoint; expected a text of five lines")]
    NoCheckpoint,
    /// The line with this number, from 1, is invalid.
    #[error("invalid line {0} of the checkpoint")]
    Line(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "0123456789abcdef0123456789abcdef";

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed([seed; 32])
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            log: LOG.to_owned(),
            size: 42,
            root: Hash::sha256(b"root"),
            head: Hash::sha256(b"head"),
            time: "2026-01-02T03:04:05.678901Z".to_owned(),
        }
    }

    /// A note of two lines, for cases that alter it.
    fn note() -> String {
        Note::sign("one\ntwo\n".to_owned(), "name", &key(1)).to_string()
    }

    #[test]
    fn the_best_known_note_verifies() {
        let text =
            "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
        let note = format!(
            "{text}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
        );
        let type_and_key = BASE64_STANDARD.decode("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW").unwrap();
        let key = BASE64_STANDARD.encode(&type_and_key[1..]).parse().unwrap();
        let note = Note::parse(note).unwrap();
        assert_eq!(note.text(), text);
        assert!(note.is_signed_by("PeterNeumann", &key));
        assert!(!note.is_signed_by("Enoch Root", &key));
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for text in ["one\ntwo\n", "one", "\n", "with\n\nempty\n\n\nlines\n", "gr\u{fc}\u{df}e\n", "— dash first\n"] {
            let note = Note::sign(text.to_owned(), "name", &key(1));
            let read: Note = note.to_string().parse().unwrap();
            assert_eq!((read.text().trim_end(), &read), (text.trim_end(), &note));
            assert!(read.is_signed_by("name", &key(1).public()));
            assert!(!read.is_signed_by("name", &key(2).public()));
            assert!(!read.is_signed_by("other", &key(1).public()));
        }
    }

    #[test]
    fn what_is_no_note_is_refused() {
        use NoteError::*;
        let good = note();
        let line = good.lines().last().unwrap();
        let with_line = |line: &str| format!("one\n\n{line}\n");
        let with_bytes = |bytes: &[u8]| with_line(&format!("— name {}", BASE64_STANDARD.encode(bytes)));
        let cases = [
            (String::new(), Unsigned),
            ("one\n".into(), Unsigned),
            ("one\n\n".into(), Unsigned),
            (format!("one\n{line}\n"), Unsigned),
            (format!("one{line}\n"), Unsigned),
            (format!("\n{line}\n"), Unsigned),
            (good.trim_end().into(), Unsigned),
            (format!("{good}\n"), Unsigned),
            (format!("{good}\n\n"), Unsigned),
            (with_line("two"), Signature(1)),
            (with_line(&format!("{line}\ntwo")), Signature(2)),
            (with_line("— name"), Signature(1)),
            (with_line("— name "), Signature(1)),
            (with_line(&line.replace('—', "-")), Signature(1)),
            (with_line(&line.replace("— ", "—")), Signature(1)),
            (with_line(&line.replace("— name", "— ")), Signature(1)),
            (with_line(&line.replace("name", "na me")), Signature(1)),
            (with_line(&line.replace("name", "na\u{a0}me")), Signature(1)),
            (with_line(&line.replace("name", "na+me")), Signature(1)),
            (with_line(&line.replace("name ", "name  ")), Signature(1)),
            (with_line(&format!("{line} ")), Signature(1)),
            (with_line(line.trim_end_matches('=')), Signature(1)),
            (with_line(&format!("{line}=")), Signature(1)),
            // The same four bytes and one more, but the bits that stand for nothing are set.
            (with_line("— name AAAAAAB="), Signature(1)),
            (with_line("— name AAAAAA-_"), Signature(1)),
            (with_bytes(&[1; 4]), Signature(1)),
            (with_line("one\u{7}\n"), Characters),
            (good.replace("one", "o\te"), Characters),
            (good.replace("one\n", "one\r\n"), Characters),
            (good.replace("one", "o\0e"), Characters),
            (good.replace("one", "o\u{7f}e"), Characters),
            (good.replace("one", "o\u{9b}e"), Characters),
            (format!("one\n\n{}", format!("{line}\n").repeat(17)), TooManySignatures),
            (format!("{}{good}", "a".repeat(MAX_BYTES - good.len() + 1)), TooLong),
        ];
        for (text, error) in cases {
            assert_eq!(Note::parse(&text), Err(error), "{text:?}");
        }
        assert_eq!(Note::parse(b"one\n\xe2\x80\n"), Err(Characters));

        let good = [
            with_bytes(&[1; 5]),
            format!("one\n\n{}", format!("{line}\n").repeat(16)),
            format!("{}{good}", "a".repeat(MAX_BYTES - good.len())),
        ];
        for text in good {
            assert_eq!(Note::parse(&text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_bad_signature_beside_a_good_one_is_not_forgiven() {
        let public = key(1).public();
        let good = Note::sign("text".to_owned(), "name", &key(1));
        let of = |name: &str, text: &str, seed| Note::sign(text.to_owned(), name, &key(seed)).signatures;
        let with =
            |more: Vec<super::Signature>| Note { signatures: [good.signatures.clone(), more].concat(), ..good.clone() };
        let mut short = of("name", "text", 1);
        short[0].bytes.pop();
        let cases = [
            (with(of("name", "text", 1)), true),
            (with(of("witness", "other", 1)), true),
            (with(of("name", "other", 2)), true),
            (with(of("name", "other", 1)), false),
            (with(short), false),
            (Note { signatures: of("name", "other", 1), ..good.clone() }, false),
            (Note { signatures: of("name", "text", 2), ..good.clone() }, false),
        ];
        for (note, expected) in cases {
            assert_eq!(note.is_signed_by("name", &public), expected, "{note}");
            assert_eq!(Note::parse(note.to_string()), Ok(note));
        }
    }

    #[test]
    fn no_byte_of_a_note_can_be_changed() {
        let note = note().into_bytes();
        let is_good = |bytes: &[u8]| Note::parse(bytes).is_ok_and(|note| note.is_signed_by("name", &key(1).public()));
        assert!(is_good(&note));
        for place in 0..note.len() {
            // The other case of a letter, the next character, and what is no text at all.
            for bit in [0x20, 0x01, 0x80] {
                let mut changed = note.clone();
                changed[place] ^= bit;
                assert!(!is_good(&changed), "{}", String::from_utf8_lossy(&changed));
            }
            let mut shorter = note.clone();
            shorter.remove(place);
            assert!(!is_good(&shorter), "{}", String::from_utf8_lossy(&shorter));
        }
    }

    #[test]
    fn a_checkpoint_is_the_note_that_the_format_describes() {
        let note = checkpoint().sign(&key(1));
        let text = "\
            amplifier-audit/0123456789abcdef0123456789abcdef\n\
            42\n\
            SBNJTRN+FjG7owHVrKtue7eqdM4RhdRWVl71HXN2d7I=\n\
            head 9f2e6d33a3717ee826353a404ba4618d1aeeb6879ad7936bce8ed5f46814924d\n\
            time 2026-01-02T03:04:05.678901Z\n";
        assert_eq!(note.text(), text);
        assert!(note.is_signed_by(&Checkpoint::origin(LOG), &key(1).public()));
        let lines: Vec<_> = note.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 7);
        assert!(lines[5].is_empty() && lines[6].starts_with(&format!("— amplifier-audit/{LOG} ")));
        assert_eq!(Checkpoint::read(&Note::parse(note.to_string()).unwrap()), Ok(checkpoint()));
        let largest = Checkpoint { size: u64::MAX, ..checkpoint() };
        assert_eq!(Checkpoint::read(&largest.sign(&key(1))), Ok(largest));
    }

    #[test]
    fn what_is_no_checkpoint_is_refused() {
        use NoteError::{Line, NoCheckpoint};
        let good = checkpoint().sign(&key(1)).text().to_owned();
        let lines: Vec<_> = good.lines().collect();
        let with = |number: usize, line: &str| {
            let mut lines = lines.clone();
            lines[number - 1] = line;
            lines.join("\n")
        };
        let cases = [
            (lines[..4].join("\n"), NoCheckpoint),
            (format!("{good}more\n"), NoCheckpoint),
            (format!("{good}\n"), NoCheckpoint),
            (format!("\n{good}"), NoCheckpoint),
            (with(1, LOG), Line(1)),
            (with(1, "amplifier-audit/"), Line(1)),
            (with(1, &format!("amplifier-audit/{LOG}0")), Line(1)),
            (with(1, &format!("amplifier-audit/{}", LOG.to_uppercase())), Line(1)),
            (with(1, &format!("other/{LOG}")), Line(1)),
            (with(2, ""), Line(2)),
            (with(2, "042"), Line(2)),
            (with(2, "00"), Line(2)),
            (with(2, "+42"), Line(2)),
            (with(2, "-1"), Line(2)),
            (with(2, "42 "), Line(2)),
            (with(2, "0x2a"), Line(2)),
            (with(2, "18446744073709551616"), Line(2)),
            (with(3, ""), Line(3)),
            (with(3, "AAAA"), Line(3)),
            (with(3, &BASE64_STANDARD.encode([0; 33])), Line(3)),
            (with(3, lines[3]), Line(3)),
            (with(3, &BASE64_STANDARD.encode([0; 32]).replace("A=", "B=")), Line(3)),
            (with(3, lines[2].trim_end_matches('=')), Line(3)),
            (with(4, lines[4]), Line(4)),
            (with(4, &lines[3][5..]), Line(4)),
            (with(4, &lines[3].to_uppercase()), Line(4)),
            (with(4, &lines[3][..68]), Line(4)),
            (with(4, &lines[3].replace("head ", "head  ")), Line(4)),
            (with(5, "time"), Line(5)),
            (with(5, "time "), Line(5)),
            (with(5, "time a b"), Line(5)),
            (with(5, "2026-01-02T03:04:05.678901Z"), Line(5)),
            (rotation_text(LOG, 1, &Hash::ZERO, &key(2).public()), Line(2)),
        ];
        for (text, error) in cases {
            let note = Note::sign(text, "name", &key(1));
            assert_eq!(Checkpoint::read(&note), Err(error), "{note}");
        }
    }

    #[test]
    fn a_rotation_names_the_log_the_place_and_the_new_key() {
        let new = key(2).public();
        let text = rotation_text(LOG, 7, &Hash::ZERO, &new);
        let zeros = "0".repeat(64);
        assert_eq!(text, format!("amplifier-audit/{LOG}\nrotate\n7\n{zeros}\n{new}\n"));
    }

    #[test]
    fn a_file_of_notes_is_split_and_a_torn_end_is_the_rest() {
        let first = checkpoint().sign(&key(1)).to_string();
        let two_signatures = format!("{first}{}\n", first.lines().last().unwrap());
        let file = format!("{first}\n{two_signatures}\n{first}\n");
        let ends = [0, first.len() + 1, first.len() + two_signatures.len() + 2, file.len()];
        let notes = [&first, &two_signatures, &first].map(|note| note.as_bytes());
        // Wherever a crash cuts the file, even within a character: the whole notes, and what is left of the next.
        for length in 0..=file.len() {
            let whole = ends.iter().filter(|end| **end <= length).count() - 1;
            let rest = &file.as_bytes()[ends[whole]..length];
            assert_eq!(split_notes(&file.as_bytes()[..length]), (notes[..whole].to_vec(), rest), "{length}");
        }
    }

    #[test]
    fn what_can_be_no_note_is_not_taken_for_a_torn_one() {
        let good = note();
        let cases: [(String, &[&str], &str); 7] = [
            (String::new(), &[], ""),
            (format!("junk\n\n{good}\n"), &["junk\n", &good], ""),
            (format!("{good}\njunk\n\n{good}\n"), &[&good, "junk\n", &good], ""),
            (format!("{good}\njunk\n\nmore"), &[&good, "junk\n"], "more"),
            (format!("{good}\njunk\n\n"), &[&good], "junk\n\n"),
            (format!("junk\n{good}\n"), &[&format!("junk\n{good}")], ""),
            (format!("\n\n{good}\n"), &["\n", &good], ""),
        ];
        for (file, notes, rest) in cases {
            let notes = notes.iter().map(|note| note.as_bytes()).collect();
            assert_eq!(split_notes(&file), (notes, rest.as_bytes()), "{file:?}");
        }
        assert!(Note::parse("junk\n").is_err());
    }
}
