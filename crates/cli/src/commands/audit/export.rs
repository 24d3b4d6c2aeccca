//! `amplifier audit export`: records for other programs.

use amplifier_host::Home;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use amplifier_audit::{Body, BodyReader, Folder, Record};
use amplifier_process::files::{AtomicFile, Durability};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::LogLocation;
use super::filter::Filter;
use super::reader::LogReader;
use super::text::sanitize;
use crate::commands::output::stdout;

/// Export records as JSON lines or CSV
///
/// JSON lines are the records as stored in the log, so that each can still be verified. Bodies that are stored
/// outside of their line follow at its end as `content`. If such a body was erased, `content` is `null` and `erased` is true. In CSV, the content replaces the body, and text that a spreadsheet would take for a formula begins with an apostrophe.
#[derive(Args, Debug)]
pub(crate) struct Export {
    #[command(flatten)]
    place: LogLocation,
    #[command(flatten)]
    filter: Filter,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Print JSON lines, as without `--format`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// File for the export, written completely or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "output")]
    force: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values with a header
    Csv,
}

impl Export {
    pub(crate) fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        let Self { place, filter, format, output, force, .. } = self;
        let reader = LogReader::open(place.or_home(home)?)?;
        match output {
            None => write(&mut stdout(), reader, filter, format)?,
            Some(file) => write_file(&file, force, |out| write(out, reader, filter, format))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write(out: &mut dyn Write, reader: LogReader, filter: Filter, format: Format) -> anyhow::Result<()> {
    if let Format::Csv = format {
        out.write_all(b"seq,time,writer,session,turn,event,kind,digest,body,h\r\n")?;
    }
    let folder = Folder::new(reader.folder().path());
    let matches = filter.compile(&reader)?;
    let mut bodies = BodyReader::new();
    reader.read(|record| {
        if matches(record, &folder)? {
            let problem = || format!("the body of record {}", record.seq);
            match format {
                Format::Jsonl => writeln!(out, "{}", bodies.line(record, &folder).with_context(problem)?)?,
                Format::Csv => {
                    let body = bodies.read(record, &folder).with_context(problem)?;
                    write!(out, "{}\r\n", csv(record, &body))?;
                }
            }
        }
        Ok(())
    })?;
    Ok(out.flush()?)
}

/// Writes a file atomically: no reader sees an incomplete file.
fn write_file(
    file: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let name = file.display();
    // Checked early to save work; checked again when the file is placed.
    if !force && file.symlink_metadata().is_ok() {
        bail!("`{name}` already exists; use `--force` to replace it");
    }
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        bail!("`{name}` cannot be written: folder `{}` not found; create the folder first", folder.display());
    }
    let failed = || format!("`{name}` cannot be written");
    let mut out = AtomicFile::create(file).with_context(failed)?;
    write(&mut out)?;
    let written = if force { out.replace(Durability::Synced) } else { out.create_new(Durability::Synced) };
    written.with_context(failed)
}

/// Returns a record as a line of CSV (RFC 4180), without the line break.
fn csv(record: &Record<'_>, whole: &Body<'_>) -> String {
    let body = record.body.get();
    let body = match whole {
        Body::Whole(whole) => whole.to_string(),
        Body::Withheld { .. } => body.to_owned(),
        Body::Erased { .. } => format!("{},\"erased\":true}}", body.strip_suffix('}').unwrap_or(body)),
    };
    let turn = record.turn.map(|turn| turn.to_string()).unwrap_or_default();
    let cells = [
        record.seq.to_string(),
        csv_text(&record.time),
        csv_text(&record.writer),
        record.session.as_deref().map(csv_text).unwrap_or_default(),
        turn,
        record.event.as_deref().map(csv_text).unwrap_or_default(),
        record.kind.as_str().to_owned(),
        record.digest.as_deref().map(csv_text).unwrap_or_default(),
        body,
        record.h.to_string(),
    ];
    let cells: Vec<String> = cells.iter().map(|cell| quote(cell)).collect();
    cells.join(",")
}

/// Escapes a text that a spreadsheet would run as a formula. Names come from hooks and tools.
fn csv_text(text: &str) -> String {
    let text = sanitize(text);
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text }
}

fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}
