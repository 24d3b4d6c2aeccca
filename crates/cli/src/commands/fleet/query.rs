//! Records of all machines, from the mirrors of a collector.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_audit::{BodyReader, Folder, RecordedDecision};
use amplifier_fleet::FleetName;
use amplifier_fleet::records::{list_mirrors, mirror_folder};
use amplifier_host::Home;
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::commands::audit::filter::Filter;
use crate::commands::audit::reader::LogReader;
use crate::commands::audit::row::Form;
use crate::commands::output::stdout;

/// Print records of all machines from the mirrors of a collector, machine by machine
///
/// Hashes are checked; signatures are checked only by `amplifier fleet verify`.
#[derive(Args, Debug)]
pub(super) struct RecordQuery {
    /// Folder of the mirrors [default: the one of `amplifier serve --fleet`]
    #[arg(long, value_name = "FOLDER")]
    mirrors: Option<PathBuf>,
    /// Only records of this machine; can be repeated
    #[arg(long, value_name = "NAME")]
    machine: Vec<FleetName>,
    /// Only records that hold this decision; can be repeated
    #[arg(long, value_name = "DECISION", value_parser = decision)]
    decision: Vec<RecordedDecision>,
    #[command(flatten)]
    filter: Filter,
    /// Print JSON, one record per line, with its machine
    #[arg(long)]
    json: bool,
}

impl RecordQuery {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode> {
        let Self { mirrors, machine: machines, decision: decisions, filter, json: as_json } = self;
        let root = mirrors.unwrap_or_else(|| home.mirror_folder());
        let mut all = list_mirrors(&root)?;
        all.retain(|(machine, _)| machines.is_empty() || machines.contains(machine));
        if all.is_empty() {
            bail!("no mirrors of these machines in `{}`", root.display());
        }
        let (mut found, mut unknown_session) = (false, None);
        for (machine, log) in all {
            let folder = mirror_folder(&root, &machine, &log);
            match print(&machine, &folder, filter.clone(), &decisions, as_json)? {
                Ok(()) => found = true,
                Err(error) => unknown_session = Some(error),
            }
        }
        match unknown_session {
            Some(error) if !found => Err(error),
            _ => Ok(ExitCode::SUCCESS),
        }
    }
}

/// Prints the records of one mirror. The inner error means that the mirror does not have the session.
fn print(
    machine: &FleetName,
    folder: &Path,
    filter: Filter,
    decisions: &[RecordedDecision],
    as_json: bool,
) -> Result<Result<()>> {
    let reader = LogReader::open(folder.to_owned())?;
    let matches = match filter.compile(&reader) {
        Ok(matches) => matches,
        Err(error) => return Ok(Err(error)),
    };
    let (mut out, form, mut bodies, folder) = (stdout(), Form::new(as_json), BodyReader::new(), Folder::new(folder));
    reader.read(|record| {
        let has_decision = decisions.is_empty()
            || RecordedDecision::read(record, &folder)?.is_some_and(|decision| decisions.contains(&decision));
        if !has_decision || !matches(record, &folder)? {
            return Ok(());
        }
        let line = form.line(record, &mut bodies, &folder)?;
        match as_json {
            true => {
                let record: Value = serde_json::from_str(&line)?;
                writeln!(out, "{}", json!({ "machine": machine, "record": record }))?;
            }
            false => writeln!(out, "{machine:<16}  {line}")?,
        }
        Ok(())
    })?;
    out.flush()?;
    Ok(Ok(()))
}

const DECISIONS: [(&str, RecordedDecision); 6] = [
    ("allowed", RecordedDecision::Allowed),
    ("denied", RecordedDecision::Denied),
    ("asked", RecordedDecision::Asked),
    ("cancelled", RecordedDecision::Cancelled),
    ("granted", RecordedDecision::Granted),
    ("refused", RecordedDecision::Refused),
];

fn decision(word: &str) -> Result<RecordedDecision, String> {
    let known = DECISIONS.iter().find(|(name, _)| *name == word).map(|(_, decision)| *decision);
    known.ok_or_else(|| {
        let names: Vec<&str> = DECISIONS.iter().map(|(name, _)| *name).collect();
        format!("unknown decision `{word}`; expected one of {}", names.join(", "))
    })
}
