//! Verifies and shows an audit log.
//!
//! ```text
//! cargo run --release --example audit -- verify FOLDER
//! cargo run --release --example audit -- show FOLDER --last 20
//! ```

#![allow(clippy::print_stderr)]

use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use amplifier_audit::{Folder, Kind, Proof, PublicKey, Record, Verifier, read_records};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

/// Verifies and shows an audit log.
///
/// Exit codes: 0 sound, 1 unsound, 2 wrong usage, 3 unreadable.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks every byte, every link and every signature, and says what that proves.
    Verify {
        /// The folder of the log.
        folder: PathBuf,
        /// The public key that the log must be signed with: it stands in the first record, and in the key file's owner's notes.
        #[arg(long)]
        key: Option<PublicKey>,
        /// Checkpoints that were kept elsewhere: the file of an anchor. Can be given several times.
        #[arg(long = "checkpoints", value_name = "FILE")]
        checkpoints: Vec<PathBuf>,
        /// Prints the report as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows records, one line each.
    Show {
        /// The folder of the log.
        folder: PathBuf,
        /// Only those of this session.
        #[arg(long)]
        session: Option<String>,
        /// Only those of this kind, such as `intent`.
        #[arg(long, value_parser = kind)]
        kind: Option<Kind>,
        /// From this record on.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Only the last so many.
        #[arg(long)]
        last: Option<usize>,
        /// Prints the records as they stand in the log.
        #[arg(long)]
        json: bool,
    },
    /// Proves that a record is in the log, for someone who has nothing but a checkpoint.
    Prove {
        /// The folder of the log.
        folder: PathBuf,
        /// The number of the record.
        seq: u64,
    },
    /// Checks such a proof.
    Check {
        /// A file with what `prove` printed.
        proof: PathBuf,
        /// The public key that the checkpoint must be signed with.
        #[arg(long)]
        key: PublicKey,
    },
}

fn kind(word: &str) -> Result<Kind, String> {
    Kind::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("there is no such kind; there are {}", words.join(", "))
    })
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

/// Whoever reads may have seen enough, as `head` does.
fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(command: Command) -> Result<u8, Box<dyn std::error::Error>> {
    let mut out = BufWriter::new(io::stdout().lock());
    let code = match command {
        Command::Verify { folder, key, checkpoints, json } => {
            let mut verifier = Verifier::new();
            if let Some(key) = key {
                verifier = verifier.key(key);
            }
            for file in checkpoints {
                let text = std::fs::read(&file).map_err(|error| format!("`{}`: {error}", file.display()))?;
                verifier = verifier.checkpoints(&text).map_err(|error| format!("`{}`: {error}", file.display()))?;
            }
            let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
            bar.set_style(ProgressStyle::with_template("verifying {bar:30} {percent:>3}%  {bytes_per_sec}  {msg}")?);
            let verifier = verifier.progress(|progress| {
                bar.set_length(progress.of);
                bar.set_position(progress.bytes);
                bar.set_message(format!("{} records", progress.records));
            });
            let report = verifier.folder(folder)?;
            bar.finish_and_clear();
            let text = if json { format!("{:#}\n", report.to_json()) } else { report.to_string() };
            // Whether or not anyone reads it to the end, the exit code tells.
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
                _ => return Ok(report.verdict().exit_code()),
            }
        }
        Command::Show { folder, session, kind, from, last, json } => {
            let mut lines = std::collections::VecDeque::new();
            let mut failed = None;
            read_records(&Folder::new(folder), |record| {
                let is_wanted = record.seq >= from
                    && session.as_ref().is_none_or(|session| record.session.as_deref() == Some(session))
                    && kind.is_none_or(|kind| record.kind == kind);
                if !is_wanted {
                    return ControlFlow::Continue(());
                }
                let line = if json { record.line().to_owned() } else { shown(record) };
                match last {
                    Some(last) => {
                        lines.push_back(line);
                        if lines.len() > last {
                            lines.pop_front();
                        }
                    }
                    None => {
                        if let Err(error) = writeln!(out, "{line}") {
                            failed = Some(error);
                            return ControlFlow::Break(());
                        }
                    }
                }
                ControlFlow::Continue(())
            })?;
            if let Some(error) = failed {
                return Err(error.into());
            }
            for line in lines {
                writeln!(out, "{line}")?;
            }
            0
        }
        Command::Prove { folder, seq } => {
            let proof = Proof::of(&Folder::new(folder), seq)?;
            writeln!(out, "{}", serde_json::to_string_pretty(&proof)?)?;
            0
        }
        Command::Check { proof, key } => {
            let text = std::fs::read(&proof).map_err(|error| format!("`{}`: {error}", proof.display()))?;
            let proof: Proof = serde_json::from_slice(&text)?;
            match proof.check(&key) {
                Ok(checkpoint) => {
                    writeln!(out, "proved: the record is in the log {} as of {}", checkpoint.log, checkpoint.time)?;
                    0
                }
                Err(error) => {
                    writeln!(out, "NOT PROVED: {error}")?;
                    1
                }
            }
        }
    };
    out.flush()?;
    Ok(code)
}

/// A record for the eye: what matters first, the body cut where a line gets long.
fn shown(record: &Record<'_>) -> String {
    const WIDTH: usize = 120;
    let body = record.body.get();
    let body = if body.len() > WIDTH { format!("{}…", &body[..WIDTH]) } else { body.to_owned() };
    format!(
        "{:>6}  {}  {:<17} {:<10} {:<18} {body}",
        record.seq,
        record.time,
        record.kind.as_str(),
        record.session.as_deref().unwrap_or("-").escape_default().to_string(),
        record.event.as_deref().unwrap_or("-").escape_default().to_string(),
    )
}
