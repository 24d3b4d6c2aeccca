//! A background reader of recorded events.

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

/// The number of events per batch. Sending single events would cost more than deciding on them.
const BATCH: usize = 128;

/// The maximum number of waiting batches.
const WAITING: usize = 8;

pub(super) type Batch = Vec<RecordedEmission>;

pub(super) struct EventReader {
    pub(super) logs: Vec<PathBuf>,
    pub(super) since: Option<Moment>,
    pub(super) session: Option<String>,
    pub(super) event: Option<EventPattern>,
    /// Events to count even if they are not selected.
    pub(super) counted: BTreeSet<String>,
}

impl EventReader {
    /// Reads on a separate thread, because reading takes as long as deciding. Ends early when the receiver is dropped.
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

    /// Returns `true` if an event's name and time are selected. The session is not checked.
    pub(super) fn is_selected(&self, event: &str, time: &str) -> bool {
        self.since.as_ref().is_none_or(|since| since.is_before(time))
            && self.event.as_ref().is_none_or(|pattern| pattern.matches(event))
    }

    /// Returns `true` for records of events that are selected or counted.
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
