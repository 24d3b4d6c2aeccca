//! `amplifier audit tail`: the last records, and new ones.

use amplifier_host::Home;
use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use amplifier_audit::{BodyReader, Folder, Record};
use amplifier_process::signals::Interrupts;
use anyhow::Context;
use clap::Args;

use super::LogLocation;
use super::filter::Filter;
use super::reader::LogReader;
use super::row::Form;
use crate::commands::arguments::whole_number;
use crate::commands::output::stdout;

/// The interval of checks for new records.
const EVERY: Duration = Duration::from_millis(200);

/// Print the last records and, with `--follow`, new ones
#[derive(Args, Debug)]
pub(crate) struct Tail {
    #[command(flatten)]
    place: LogLocation,
    #[command(flatten)]
    filter: Filter,
    /// Number of records to start with
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20, value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    last: usize,
    /// Continue with new records until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Print the records as stored in the log, with separately stored bodies as `content`
    #[arg(long)]
    json: bool,
}

impl Tail {
    pub(crate) fn run(self, home: anyhow::Result<Home>) -> anyhow::Result<ExitCode> {
        // Before any output, so that Ctrl-C works as soon as the first line is visible.
        let interrupted = if self.follow { Some(watch_interrupt()?) } else { None };
        let form = Form::new(self.json);
        let mut out = stdout();
        let mut reader = LogReader::open(self.place.or_home(home)?)?;
        let mut bodies = BodyReader::new();
        let folder = Folder::new(reader.folder().path());
        let matches = self.filter.compile(&reader)?;
        // The id of the log, and the number of the next record.
        let mut shown = (String::new(), 0);
        let kept = |record: &Record<'_>| {
            // Segments come in reverse order.
            shown = (record.log.to_string(), shown.1.max(record.seq + 1));
            Ok(matches(record, &folder)?.then(|| record.line().to_owned()))
        };
        for line in reader.last(self.last, kept)? {
            writeln!(out, "{}", form.line_of(&line, &mut bodies, &folder)?)?;
        }
        out.flush()?;
        let Some(interrupted) = interrupted else { return Ok(ExitCode::SUCCESS) };
        while interrupted.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            reader.advance(|record| {
                // A log with a rewritten end is read from its beginning.
                if record.log == shown.0 && record.seq < shown.1 {
                    return Ok(());
                }
                shown = (record.log.to_string(), record.seq + 1);
                match matches(record, &folder)? {
                    true => Ok(writeln!(out, "{}", form.line(record, &mut bodies, &folder)?)?),
                    false => Ok(()),
                }
            })?;
            out.flush()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns a channel that receives a message on Ctrl-C.
fn watch_interrupt() -> anyhow::Result<Receiver<()>> {
    let problem = "cannot listen for Ctrl-C";
    let (ready, is_ready) = mpsc::sync_channel(1);
    let (sender, receiver) = mpsc::sync_channel(1);
    // On a separate thread, because a command may already run in a runtime, and runtimes cannot be nested.
    std::thread::Builder::new()
        .name("ctrl-c".to_owned())
        .spawn(move || {
            let waited = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
                runtime.block_on(async {
                    let mut interrupts = Interrupts::listen()?;
                    _ = ready.send(Ok(()));
                    interrupts.recv().await;
                    Ok(())
                })
            });
            match waited {
                Ok(()) => _ = sender.send(()),
                Err(error) => _ = ready.send(Err(error)),
            }
        })
        .context(problem)?;
    is_ready.recv().context(problem)?.context(problem)?;
    Ok(receiver)
}
