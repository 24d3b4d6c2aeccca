//! Recorded events, read beside their judging.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use amplifier_audit::{AssembledEntry, EmissionAssembler, Folder, Kind, Record};
use amplifier_core::text::counted;
use amplifier_core::{EventPattern, RecordedEmission};
use anyhow::Result;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::commands::audit::filter::Moment;
use crate::commands::audit::reader::LogReader;
use crate::commands::audit::verify::progress_bar;

/// How many events are handed over at once: one by one, that would cost more than judging them.
const BATCH: usize = 128;

/// How many batches may wait to be judged.
const WAITING: usize = 8;

/// Events, in order.
pub(super) type Batch = Vec<RecordedEmission>;

/// Which events are meant.
pub(super) struct EventReader {
    pub(super) logs: Vec<PathBuf>,
    pub(super) since: Option<Moment>,
    pub(super) session: Option<String>,
    pub(super) event: Option<EventPattern>,
    /// Events that are counted, also where they are not meant.
    pub(super) counted: BTreeSet<String>,
}

impl EventReader {
    /// Reads in a thread of its own, because that takes as long as judging. It ends early when nobody receives any more.
    pub(super) fn start(self: Arc<Self>) -> (Receiver<Batch>, JoinHandle<Result<()>>) {
        let (send, receive) = channel(WAITING);
        (receive, spawn_blocking(move || self.read(&send)))
    }

    fn read(&self, send: &Sender<Batch>) -> Result<()> {
        let bar = progress_bar("replaying")?;
        let readers: Vec<LogReader> = self.logs.iter().map(|log| LogReader::open_path(log)).collect::<Result<_>>()?;
        bar.set_length(readers.iter().map(LogReader::bytes).sum::<Result<u64>>()?);
        let mut events = 0;
        for reader in readers {
            let folder = Folder::new(reader.folder().path());
            let mut assembler = EmissionAssembler::new();
            let (mut batch, mut bytes) = (Vec::with_capacity(BATCH), 0);
            let mut send_batch = |batch: &mut Batch| {
                events += batch.len();
                bar.set_message(counted(events, "event"));
                Ok(send.blocking_send(std::mem::replace(batch, Vec::with_capacity(BATCH)))?)
            };
            reader.read(|record| {
                bytes += record.line().len() as u64 + 1;
                if !self.is_relevant(record) {
                    return Ok(());
                }
                batch.extend(assembler.push(record, &folder)?.into_iter().filter_map(|entry| match entry {
                    AssembledEntry::Emission(emission) => Some(*emission),
                    AssembledEntry::Unassigned(_) => None,
                }));
                if batch.len() < BATCH {
                    return Ok(());
                }
                bar.inc(std::mem::take(&mut bytes));
                send_batch(&mut batch)
            })?;
            batch.extend(std::mem::take(&mut assembler).finish());
            send_batch(&mut batch)?;
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Whether an event of a session that is meant is meant itself, by its name and its time.
    pub(super) fn is_selected(&self, event: &str, time: &str) -> bool {
        self.since.as_ref().is_none_or(|since| since.is_before(time))
            && self.event.as_ref().is_none_or(|pattern| pattern.matches(event))
    }

    /// Whether a record says something about an event that is meant, or counted.
    fn is_relevant(&self, record: &Record<'_>) -> bool {
        let event = || record.event.as_deref().unwrap_or_default();
        matches!(
            record.kind,
            Kind::Event
                | Kind::HookReport
                | Kind::Injection
                | Kind::ApprovalRequest
                | Kind::ApprovalDecision
                | Kind::Seal
        ) && self.session.as_deref().is_none_or(|session| record.session.as_deref() == Some(session))
            && (record.kind == Kind::Seal || self.counted.contains(event()) || self.is_selected(event(), &record.time))
    }
}
