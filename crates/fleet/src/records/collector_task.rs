//! The task of a collector.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::records::RecordsError;
use crate::records::blob::{Blobs, StoredBlob};
use crate::records::collector::{CollectorOptions, CollectorStatus, MirrorStatus};
use crate::records::error::blocking;
use crate::records::mirror::{Append, Mirror};
use crate::records::mirror_set::{LogName, MirrorSet};
use crate::records::stream_reader::{LastMessage, StreamChunk, StreamReader};
use crate::{Connection, subjects};

/// The shortest time between receipts.
const RECEIPTS: Duration = Duration::from_millis(200);
/// The interval at which the stream is compared with what was read.
const CHECK: Duration = Duration::from_secs(1);
/// The interval at which missing records and large bodies are requested again.
const REQUEST: Duration = Duration::from_secs(5);
/// The shortest time between readings of the whole stream because of gaps, which a machine can cause.
const REREAD: Duration = Duration::from_mins(1);
/// The pauses between attempts after failures.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct CollectorTask {
    connection: Connection,
    options: CollectorOptions,
    // A std lock: it is held on a thread for blocking work, never across an await.
    mirrors: Arc<Mutex<MirrorSet>>,
    status: watch::Sender<CollectorStatus>,
    /// The last message of the stream that was read.
    last: Option<LastMessage>,
    /// The mirrors that changed since their last receipt.
    changed: BTreeSet<LogName>,
    /// The mirrors whose state the centre does not know yet.
    unpublished: BTreeSet<LogName>,
    /// The mirrors with a gap: their sizes when the stream was read again because of it.
    gaps: BTreeMap<LogName, u64>,
    /// The mirrors with a gap whose records were requested from the machine.
    requested: BTreeSet<LogName>,
    /// `true` if the centre may lack receipts of mirrors that do not change.
    must_announce: bool,
    last_receipts: Instant,
    last_requests: Instant,
    last_reread: Option<Instant>,
}

/// The effects of several chunks.
#[derive(Default)]
struct Appends {
    changed: BTreeSet<LogName>,
    /// The logs with a gap, and the sizes of their mirrors.
    gaps: BTreeMap<LogName, u64>,
}

impl CollectorTask {
    pub(crate) fn new(
        connection: Connection,
        options: CollectorOptions,
        mirrors: Arc<Mutex<MirrorSet>>,
        status: watch::Sender<CollectorStatus>,
    ) -> Self {
        Self {
            connection,
            options,
            mirrors,
            status,
            last: None,
            changed: BTreeSet::new(),
            unpublished: BTreeSet::new(),
            gaps: BTreeMap::new(),
            requested: BTreeSet::new(),
            must_announce: true,
            last_receipts: Instant::now(),
            last_requests: Instant::now(),
            last_reread: None,
        }
    }

    /// Collects until the task is aborted.
    pub(crate) async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let Err(error) = self.collect().await else { continue };
            tracing::debug!(%error, "records cannot be collected for the moment");
            self.set_failure(Some(error.to_string()));
            if began.elapsed() > LAST_PAUSE {
                pause = FIRST_PAUSE;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Collects until an error, or until the stream must be read again.
    async fn collect(&mut self) -> Result<(), RecordsError> {
        let mut reader = StreamReader::open(&self.connection, self.last.clone()).await?;
        // A replaced centre has no receipts.
        self.must_announce |= self.last.is_some() && reader.last().is_none();
        if std::mem::take(&mut self.must_announce) {
            self.unpublished.extend(self.mirrors(|mirrors| mirrors.logs()).await?);
        }
        let mut checked = Instant::now();
        loop {
            let chunks = reader.next_chunks().await?;
            let appends = self.append(chunks).await?;
            self.last = reader.last();
            self.set_failure(None);
            self.changed.extend(appends.changed);
            if self.must_reread(appends.gaps) {
                self.last = None;
                return Ok(());
            }
            if self.last_requests.elapsed() >= REQUEST {
                self.request_missing();
                if self.mirrors(|mirrors| mirrors.retry_damaged()).await? {
                    self.last = None;
                    return Ok(());
                }
            }
            if self.last_receipts.elapsed() >= RECEIPTS {
                self.publish_receipts().await?;
            }
            if checked.elapsed() >= CHECK {
                checked = Instant::now();
                if reader.has_changed().await? {
                    return Ok(());
                }
            }
        }
    }

    async fn append(&mut self, mut chunks: Vec<StreamChunk>) -> Result<Appends, RecordsError> {
        for chunk in &mut chunks {
            if let Some(hash) = chunk.header.lines {
                let blobs = Blobs { connection: &self.connection, machine: &chunk.machine, log: &chunk.log };
                // Without its lines, the chunk is a gap.
                chunk.lines = match blobs.read(&hash).await? {
                    StoredBlob::Content(lines) => lines,
                    StoredBlob::Erased | StoredBlob::Missing => bytes::Bytes::new(),
                };
            }
        }
        self.mirrors(move |mirrors| {
            let mut appends = Appends::default();
            for chunk in &chunks {
                let name = (chunk.machine.clone(), chunk.log.clone());
                match mirrors.append(chunk) {
                    // A collector may have been killed before it signed them.
                    Ok(Append::Known) if !mirrors.get(&name)?.is_unsigned() => {}
                    Ok(Append::Known) => _ = appends.changed.insert(name),
                    Ok(Append::Appended | Append::Rejected) => _ = appends.changed.insert(name),
                    Ok(Append::Gap) => _ = appends.gaps.insert(name.clone(), mirrors.get(&name)?.end().size),
                    Ok(Append::Damaged) => {}
                    // A damaged mirror must not stop the others. It is reported where receipts are.
                    Err(error) if error.is_damage() => _ = appends.changed.insert(name),
                    Err(error) => return Err(error),
                }
            }
            Ok(appends)
        })
        .await
    }

    /// Returns `true` if a gap is new: perhaps only the reading has it, and not the stream. Otherwise, the machine must send the records again.
    fn must_reread(&mut self, gaps: BTreeMap<LogName, u64>) -> bool {
        let may_reread = self.last_reread.is_none_or(|at| at.elapsed() >= REREAD);
        let mut is_new = false;
        for (log, size) in gaps {
            let is_known = self.gaps.insert(log.clone(), size) == Some(size);
            if may_reread && !is_known {
                is_new = true;
            } else {
                self.changed.insert(log.clone());
                // Repeated at intervals, see `request_missing`.
                if !is_known || self.requested.insert(log.clone()) {
                    self.requested.insert(log.clone());
                    self.unpublished.insert(log);
                }
            }
        }
        if is_new {
            self.last_reread = Some(Instant::now());
            self.requested.clear();
        }
        is_new
    }

    /// Repeats the requests for records and large bodies.
    fn request_missing(&mut self) {
        self.last_requests = Instant::now();
        let incomplete: Vec<LogName> = {
            let status = self.status.borrow();
            let mirrors = status.mirrors.iter();
            mirrors
                .filter(|(_, mirror)| mirror.has_gap || mirror.missing_blobs > 0)
                .map(|(name, _)| name.clone())
                .collect()
        };
        self.changed.extend(incomplete.iter().cloned());
        self.unpublished.extend(incomplete);
    }

    /// Signs receipts for the mirrors that changed, and publishes the state of all that the centre does not know.
    async fn publish_receipts(&mut self) -> Result<(), RecordsError> {
        self.last_receipts = Instant::now();
        while let Some(name) = self.changed.first().cloned() {
            match self.sign(&name).await {
                Err(error) if error.is_damage() => self.set_problem(&name, &error),
                Err(error) => return Err(error),
                Ok((is_new, status)) => {
                    let is_known = self.status.borrow().mirrors.get(&name) == Some(&status);
                    let is_incomplete = status.missing_blobs > 0 || status.problem.is_some();
                    if is_new || (is_incomplete && !is_known) {
                        self.unpublished.insert(name.clone());
                    }
                    self.status.send_modify(|all| _ = all.mirrors.insert(name.clone(), status));
                }
            }
            self.changed.remove(&name);
        }
        while let Some(name) = self.unpublished.first().cloned() {
            let log = name.clone();
            match self.mirrors(move |mirrors| mirrors.state(&log)).await {
                Err(error) if error.is_damage() => self.set_problem(&name, &error),
                Err(error) => return Err(error),
                Ok(None) => {}
                Ok(Some(state)) => {
                    let (headers, payload) = state.message();
                    let subject = subjects::receipt(&name.0, &name.1, &self.options.name);
                    self.connection.publish(&subject, headers, payload).await?;
                }
            }
            self.unpublished.remove(&name);
        }
        Ok(())
    }

    /// Syncs a mirror, and signs a receipt. Returns `true` if the receipt is new.
    async fn sign(&self, name: &LogName) -> Result<(bool, MirrorStatus), RecordsError> {
        self.read_blobs(name).await?;
        let (collector, key, log) = (self.options.name.clone(), self.options.key.clone(), name.clone());
        self.mirrors(move |mirrors| {
            let is_new = mirrors.sign(&log, &collector, &key)?;
            Ok((is_new, status_of(mirrors.get(&log)?)))
        })
        .await
    }

    fn set_problem(&self, name: &LogName, error: &RecordsError) {
        tracing::error!(%error, "a mirror cannot be used");
        self.status.send_modify(|all| all.mirrors.entry(name.clone()).or_default().problem = Some(error.to_string()));
    }

    /// Reads the large bodies that a mirror lacks.
    async fn read_blobs(&self, name: &LogName) -> Result<(), RecordsError> {
        let log = name.clone();
        let missing = self.mirrors(move |mirrors| mirrors.get(&log).map(|mirror| mirror.missing())).await?;
        let blobs = Blobs { connection: &self.connection, machine: &name.0, log: &name.1 };
        for blob in missing {
            let content = match blobs.read(&blob.hash).await? {
                StoredBlob::Content(content) => Some(content),
                StoredBlob::Erased => None,
                StoredBlob::Missing => continue,
            };
            let log = name.clone();
            self.mirrors(move |mirrors| mirrors.get(&log)?.put_blob(&blob, content.as_deref())).await?;
        }
        Ok(())
    }

    async fn mirrors<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut MirrorSet) -> Result<T, RecordsError> + Send + 'static,
    ) -> Result<T, RecordsError> {
        let mirrors = self.mirrors.clone();
        blocking(move || run(&mut mirrors.lock().unwrap_or_else(PoisonError::into_inner))).await?
    }

    fn set_failure(&self, failure: Option<String>) {
        self.status.send_if_modified(|status| std::mem::replace(&mut status.failure, failure.clone()) != failure);
    }
}

fn status_of(mirror: &Mirror) -> MirrorStatus {
    MirrorStatus {
        size: mirror.end().size,
        received: mirror.received(),
        missing_blobs: mirror.missing().len(),
        has_gap: mirror.has_gap(),
        problem: mirror.problem().map(str::to_owned),
    }
}
