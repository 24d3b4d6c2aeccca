//! The task of a shipper.

mod receipts;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amplifier_audit::{AuditError, Hash};
use amplifier_process::locks::FileLock;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::records::blob::Blobs;
use crate::records::chunk::{Chunk, ChunkHeader};
use crate::records::error::blocking;
use crate::records::local_log::LocalLog;
use crate::records::receipt::Receipt;
use crate::records::{LogPosition, RecordsError, ShipperOptions, ShipperState, ShipperStatus};
use crate::{Connection, FleetError, FleetName, subjects};

/// The interval at which the end of the log is read.
const POLL: Duration = Duration::from_millis(100);
/// The interval at which receipts are read while some are expected.
const RECEIPTS: Duration = Duration::from_millis(500);
/// The interval at which receipts are read otherwise: a collector may lack older records.
const IDLE_RECEIPTS: Duration = Duration::from_secs(5);
/// The pauses between attempts after failures.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// Room for headers in a message.
const HEADERS: usize = 8 << 10;

pub(crate) struct ShipperTask {
    connection: Connection,
    options: ShipperOptions,
    // A std lock: it is held on a thread for blocking work, never across an await.
    local: Arc<Mutex<LocalLog>>,
    status: watch::Sender<ShipperStatus>,
    /// The sequence number of the last message of the log's subject.
    sequence: u64,
    /// The newest chunk that the stream has stored for this process: its end, and its sequence number.
    acked: Option<(LogPosition, u64)>,
    /// The number of acked records that the stream lacks now; certain when it takes them again.
    lost: u64,
    /// For each collector, the last message with a request that was served.
    served: HashMap<FleetName, u64>,
    receipts_read: Option<Instant>,
    /// The time that the comparison of the receipts with the log took.
    receipts_took: Duration,
    /// The first record that a collector lacks.
    rewind: Option<u64>,
}

/// The end of an attempt.
enum Failure {
    /// Another attempt may succeed.
    Retry(RecordsError),
    /// The local log is not the one that the centre has received.
    Breach(String),
}

impl<E: Into<RecordsError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Retry(error.into())
    }
}

impl ShipperTask {
    pub(crate) fn new(connection: Connection, options: ShipperOptions, status: watch::Sender<ShipperStatus>) -> Self {
        let local = Arc::new(Mutex::new(LocalLog::new(options.folder.clone())));
        Self {
            connection,
            options,
            local,
            status,
            sequence: 0,
            acked: None,
            lost: 0,
            served: HashMap::new(),
            receipts_read: None,
            receipts_took: Duration::ZERO,
            rewind: None,
        }
    }

    /// Ships until the task is aborted, or the local log turns out to be another one.
    pub(crate) async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        let mut lock = None;
        loop {
            let sent = self.status.borrow().sent;
            let Err(failure) = self.attempt(&mut lock).await else { continue };
            match failure {
                Failure::Breach(text) => {
                    tracing::error!(text, "the audit log is no longer sent to the centre");
                    return self.set_state(ShipperState::Breach(text));
                }
                // Another writer, or the own message whose ack was lost: the next attempt asks for the position again.
                Failure::Retry(RecordsError::Centre(FleetError::Conflict { .. })) => {}
                Failure::Retry(RecordsError::Log(AuditError::Restarted)) => {}
                Failure::Retry(error) => {
                    tracing::debug!(%error, "records cannot be sent to the centre; they wait in the log");
                    self.set_state(ShipperState::Failing(error.to_string()));
                }
            }
            if self.status.borrow().sent > sent {
                pause = FIRST_PAUSE;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn attempt(&mut self, lock: &mut Option<FileLock>) -> Result<(), Failure> {
        let Some(log) = self.log().await? else {
            sleep(POLL).await;
            return Ok(());
        };
        if lock.is_none() {
            *lock = self.lock().await?;
        }
        if lock.is_none() {
            return self.follow(&log).await;
        }
        self.resume(&log).await?;
        self.ship(&log).await
    }

    /// Reads the progress of another process that ships the log.
    async fn follow(&mut self, log: &FleetName) -> Result<(), Failure> {
        self.read_receipts(log).await?;
        let (_, sent) = self.last_chunk(log).await?;
        let size = self.local(|local| local.size()).await?;
        self.status.send_if_modified(|status| {
            let before = status.clone();
            (status.size, status.state) = (size, ShipperState::OtherProcess);
            status.sent = sent.map_or(0, |sent| sent.size);
            *status != before
        });
        sleep(RECEIPTS).await;
        Ok(())
    }

    /// Returns the sequence number of the last message of the log's subject, and the position after its records.
    async fn last_chunk(&self, log: &FleetName) -> Result<(u64, Option<LogPosition>), Failure> {
        let subject = subjects::audit(&self.options.machine, log);
        let Some(last) = self.connection.last_message(subjects::AUDIT, &subject).await? else { return Ok((0, None)) };
        Ok((last.sequence, Some(ChunkHeader::read(&subject, &last.headers)?.to)))
    }

    /// Ships until an error.
    async fn ship(&mut self, log: &FleetName) -> Result<(), Failure> {
        loop {
            let chunk = self.local(|local| local.next_chunk().map(|chunk| chunk.cloned())).await?;
            let is_end = chunk.is_none();
            if let Some(chunk) = chunk {
                self.send(log, chunk).await?;
            }
            let at = self.local(|local| Ok(local.at())).await?.map_or(0, |at| at.size);
            self.status.send_if_modified(|status| {
                let before = status.clone();
                status.size = status.size.max(at);
                status.sent = at;
                status.state = ShipperState::Shipping;
                *status != before
            });
            if self.receipts_read.is_none_or(|at| at.elapsed() >= self.receipts_pause()) {
                let size = self.local(|local| local.size()).await?;
                self.status.send_if_modified(|status| std::mem::replace(&mut status.size, size) != size);
                self.read_receipts(log).await?;
                if let Some(number) = self.rewind.take() {
                    self.local(move |local| local.seek(number)).await?;
                }
            }
            if is_end {
                sleep(POLL).await;
            }
        }
    }

    /// Returns the time until receipts are read again.
    fn receipts_pause(&self) -> Duration {
        let is_received = self.status.borrow().unreceived() == 0;
        let pause = if is_received { IDLE_RECEIPTS } else { RECEIPTS };
        // The comparison with records that are long past takes time, which belongs to the agent.
        pause.max(20 * self.receipts_took)
    }

    /// Asks the centre for the position from which to continue.
    async fn resume(&mut self, log: &FleetName) -> Result<(), Failure> {
        let (sequence, sent) = self.last_chunk(log).await?;
        let received = self.read_receipts(log).await?;
        let sizes = || received.iter().map(Receipt::position);
        let newest = sizes().max_by_key(|position| position.size);
        // An empty stream: perhaps its records have expired, and a collector that was off lacks some of them.
        let oldest = sizes().min_by_key(|position| position.size).unwrap_or(LogPosition::START);
        let position = match (sent, newest) {
            (Some(sent), Some(newest)) if newest.size > sent.size => newest,
            (Some(sent), _) => sent,
            (None, _) => oldest,
        };
        if let Some(sent) = sent {
            self.check(sent).await?;
        }
        self.sequence = sequence;
        // Messages that expired after a collector had read them are no loss.
        let known = received.iter().map(Receipt::received).chain(sent.map(|sent| sent.size)).max().unwrap_or(0);
        self.lost = match self.acked {
            Some((acked, sequence)) if self.sequence < sequence => acked.size.saturating_sub(known),
            _ => 0,
        };
        let number = self.rewind.take().map_or(position.size, |number| number.min(position.size));
        let is_there = move |local: &LocalLog| local.at().is_some_and(|at| at.size == number);
        self.local(move |local| if is_there(local) { Ok(()) } else { local.seek(number) }).await?;
        Ok(())
    }

    async fn send(&mut self, log: &FleetName, chunk: Chunk) -> Result<(), Failure> {
        let subject = subjects::audit(&self.options.machine, log);
        self.send_blobs(log, chunk.blobs.iter().map(|blob| blob.hash).collect()).await?;
        let Chunk { mut header, mut lines, .. } = chunk;
        let most = self.connection.client().server_info().max_payload.saturating_sub(HEADERS);
        if lines.len() > most {
            let hash = Hash::sha256(&lines);
            self.blobs(log).send(&hash, Some(std::mem::take(&mut lines))).await?;
            header.lines = Some(hash);
        }
        let published = self.connection.publish(&subject, header.headers(self.sequence), lines).await?;
        self.sequence = published;
        self.acked = Some((header.to, published));
        self.local(|local| {
            local.take_chunk();
            Ok(())
        })
        .await?;
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            tracing::warn!(records = lost, "the centre lost records; they are sent again");
            self.status.send_modify(|status| status.lost_by_centre += lost);
        }
        Ok(())
    }

    async fn send_blobs(&self, log: &FleetName, hashes: Vec<Hash>) -> Result<(), Failure> {
        for hash in hashes {
            let content = self.local(move |local| local.blob(&hash)).await?;
            self.blobs(log).send(&hash, content).await?;
        }
        Ok(())
    }

    fn blobs<'a>(&'a self, log: &'a FleetName) -> Blobs<'a> {
        Blobs { connection: &self.connection, machine: &self.options.machine, log }
    }

    /// Returns the log's id, when there is a log.
    async fn log(&self) -> Result<Option<FleetName>, Failure> {
        let known = self.status.borrow().log.clone();
        if known.is_some() {
            return Ok(known);
        }
        let id = self.local(|local| local.id()).await?;
        let log: Option<FleetName> = id.and_then(|id| id.parse().ok());
        if log.is_some() {
            self.status.send_modify(|status| status.log = log.clone());
        }
        Ok(log)
    }

    /// Takes the right to ship the log, unless another process has it.
    async fn lock(&self) -> Result<Option<FileLock>, Failure> {
        let file = self.options.folder.join("shipper.lock");
        let locked = blocking(move || FileLock::try_lock(&file).map_err(RecordsError::file(file))).await??;
        Ok(locked)
    }

    async fn local<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut LocalLog) -> Result<T, RecordsError> + Send + 'static,
    ) -> Result<T, RecordsError> {
        let local = self.local.clone();
        blocking(move || run(&mut local.lock().unwrap_or_else(PoisonError::into_inner))).await?
    }

    fn set_state(&self, state: ShipperState) {
        self.status.send_if_modified(|status| std::mem::replace(&mut status.state, state.clone()) != state);
    }
}
