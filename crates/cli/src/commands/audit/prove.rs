//! `amplifier audit prove`: short proofs that can be checked with only the public key.

use amplifier_core::text::counted;
use amplifier_host::Home;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_audit::{Checkpoint, Folder, Hash, Kind, Note, Proof, PublicKey, is_consistent, read_tree};
use anyhow::{Context, anyhow};
use clap::{ArgGroup, Args};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::LogLocation;
use super::reader::LogReader;
use crate::commands::arguments::whole_number;
use crate::commands::exit::Exit;
use crate::commands::output::{print, print_json};

/// Prove to anyone with the public key that a record is in the log, or that the log continues an earlier one
///
/// The proof is printed as JSON. `--check` checks a proof without the log; its exit codes are 0 proved, 1 not proved, 2 wrong usage, 4 not checked.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true).args(["record", "from", "check"]))]
pub(crate) struct Prove {
    #[command(flatten)]
    place: LogLocation,
    /// Number of a record to prove, as of the newest checkpoint
    #[arg(long, value_name = "SEQ", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    record: Option<u64>,
    /// Prove the first N records unchanged; a checkpoint must cover exactly these
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    from: Option<u64>,
    /// With `--from`: number of records that the later checkpoint covers [default: the newest checkpoint]
    #[arg(long, value_name = "N", requires = "from", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    to: Option<u64>,
    /// File with a proof to check
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "folder")]
    check: Option<PathBuf>,
    /// With `--check`: public key that must have signed the checkpoints, as in the first record of `amplifier audit show`; repeat for rotated keys
    #[arg(long, value_name = "PUBLIC_KEY", requires = "check")]
    key: Vec<PublicKey>,
    /// Print the result of `--check` as JSON; a proof is always JSON
    #[arg(long)]
    json: bool,
}

impl Prove {
    /// Returns `true` if a proof is checked, not made.
    pub(super) fn is_check(&self) -> bool {
        self.check.is_some()
    }

    pub(crate) fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        if let Some(file) = &self.check {
            return self.check_file(file);
        }
        let folder = self.place.or_home(home)?;
        let reader = LogReader::open(folder.clone())?;
        match (self.record, self.from) {
            (Some(seq), _) => print_json(&Proof::for_record(&Folder::new(folder), seq)?),
            (None, from) => print_json(&Continuation::of(reader, &Folder::new(folder), from.unwrap_or(0), self.to)?),
        }
    }

    fn check_file(&self, file: &Path) -> anyhow::Result<ExitCode> {
        let text = std::fs::read(file).with_context(|| format!("`{}`", file.display()))?;
        let proof: AnyProof = serde_json::from_slice(&text)
            .map_err(|_| anyhow!("`{}` is not a proof from `amplifier audit prove`", file.display()))?;
        let result = proof.check(&self.key);
        let code = if result.is_ok() { ExitCode::SUCCESS } else { Exit::Failed.into() };
        if self.json {
            print_json(&match result {
                Ok(proved) => json!({ "proved": true, "what": proved }),
                Err(problem) => json!({ "proved": false, "problem": problem }),
            })?;
        } else {
            print(match result {
                Ok(proved) => format!("proved: {proved}\n"),
                Err(problem) => format!("NOT PROVED: {problem}\n"),
            })?;
        }
        Ok(code)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyProof {
    Inclusion(Proof),
    Continuation(Continuation),
}

impl AnyProof {
    /// Returns the proved statement, or the reason for a failure.
    fn check(&self, keys: &[PublicKey]) -> Result<String, String> {
        match self {
            Self::Inclusion(proof) => {
                let mut checked = keys.iter().map(|key| proof.check(key));
                let first = checked.next().ok_or("missing key; give one with `--key`")?;
                let checkpoint = checked.fold(first, Result::or).map_err(|error| error.to_string())?;
                let Checkpoint { log, time, .. } = checkpoint;
                Ok(format!("record {} is in the log {log} as of {time}", proof.seq))
            }
            Self::Continuation(proof) => proof.check(keys),
        }
    }
}

/// Two signed checkpoints, and the proof that the later log begins with the records of the earlier one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Continuation {
    earlier: String,
    later: String,
    /// The hashes of the consistency proof, in the order of RFC 6962.
    path: Vec<Hash>,
}

impl Continuation {
    fn of(reader: LogReader, folder: &Folder, from: u64, to: Option<u64>) -> anyhow::Result<Self> {
        let mut notes: Vec<(u64, String)> = Vec::new();
        reader.read(|record| {
            if matches!(record.kind, Kind::Checkpoint | Kind::Segment) {
                let body: Value = serde_json::from_str(record.body.get())?;
                notes.push((record.seq, body["note"].as_str().unwrap_or_default().to_owned()));
            }
            Ok(())
        })?;
        let to = to.or(notes.last().map(|(size, _)| *size)).unwrap_or(0);
        let note = |size: u64| {
            let note = notes.iter().find(|(covered, _)| *covered == size).map(|(_, note)| note.clone());
            note.ok_or_else(|| match notes.iter().map(|(covered, _)| *covered).min_by_key(|near| near.abs_diff(size)) {
                Some(near) => {
                    anyhow!("no checkpoint covers exactly {}; the nearest covers {near}", counted(size, "record"))
                }
                None => anyhow!("the log has no checkpoint yet"),
            })
        };
        let path = read_tree(folder)?.consistency(from, to).ok_or_else(|| {
            anyhow!(
                "no proof from {from} to {}: the first number must not be larger than the second",
                counted(to, "record")
            )
        })?;
        Ok(Self { earlier: note(from)?, later: note(to)?, path })
    }

    fn check(&self, keys: &[PublicKey]) -> Result<String, String> {
        let (earlier, later) = (parse_signed(&self.earlier, keys)?, parse_signed(&self.later, keys)?);
        if earlier.log != later.log {
            return Err("the checkpoints belong to different logs".to_owned());
        }
        if !is_consistent(earlier.size, later.size, &self.path, &earlier.root, &later.root) {
            return Err("the later log does not begin with the records of the earlier one".to_owned());
        }
        Ok(format!(
            "the log {} with {} as of {} begins with the {} that it had at {}",
            later.log,
            counted(later.size, "record"),
            later.time,
            counted(earlier.size, "record"),
            earlier.time
        ))
    }
}

/// Parses a note that must be signed with one of `keys`.
fn parse_signed(text: &str, keys: &[PublicKey]) -> Result<Checkpoint, String> {
    let note = Note::parse(text).map_err(|error| error.to_string())?;
    let checkpoint = Checkpoint::read(&note).map_err(|error| error.to_string())?;
    let origin = Checkpoint::origin(&checkpoint.log);
    match keys.iter().any(|key| note.is_signed_by(&origin, key)) {
        true => Ok(checkpoint),
        false => Err(format!("the checkpoint over {} is not signed with that key", counted(checkpoint.size, "record"))),
    }
}
