//! `amplifier audit show`: records as text.

use amplifier_host::Home;
use std::collections::VecDeque;
use std::io::Write;
use std::process::ExitCode;

use amplifier_audit::{BodyReader, Folder};
use clap::Args;

use super::LogLocation;
use super::filter::Filter;
use super::reader::LogReader;
use super::row::Form;
use crate::commands::arguments::whole_number;
use crate::commands::output::stdout;

/// Print records, one per line: number, time, session, turn, event, kind and summary
///
/// Long lines are shortened; `--json` prints everything. Hashes are checked; signatures are checked only by `amplifier audit verify`.
#[derive(Args, Debug)]
pub(crate) struct Show {
    #[command(flatten)]
    place: LogLocation,
    #[command(flatten)]
    filter: Filter,
    /// Show the last N records
    #[arg(long, short = 'n', value_name = "N", value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    last: Option<usize>,
    /// Print the records as stored in the log, with separately stored bodies as `content`
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        let mut out = stdout();
        let form = Form::new(self.json);
        let mut lines: VecDeque<String> = VecDeque::new();
        let mut bodies = BodyReader::new();
        let reader = LogReader::open(self.place.or_home(home)?)?;
        let matches = self.filter.compile(&reader)?;
        let folder = Folder::new(reader.folder().path());
        reader.read(|record| {
            if !matches(record, &folder)? {
                return Ok(());
            }
            let Some(last) = self.last else {
                return Ok(writeln!(out, "{}", form.line(record, &mut bodies, &folder)?)?);
            };
            lines.push_back(record.line().to_owned());
            if lines.len() > last {
                lines.pop_front();
            }
            Ok(())
        })?;
        for line in lines {
            writeln!(out, "{}", form.line_of(&line, &mut bodies, &folder)?)?;
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}
