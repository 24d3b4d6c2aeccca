//! Ships the log of a machine to the centre.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::records::error::blocking;
use crate::records::local_log::LocalLog;
use crate::records::receipt::CollectorKey;
use crate::records::shipper_task::ShipperTask;
use crate::{Connection, FleetName};

/// The log to ship.
#[derive(Clone, Debug)]
pub struct ShipperOptions {
    pub(crate) folder: PathBuf,
    pub(crate) machine: FleetName,
    pub(crate) collectors: Vec<CollectorKey>,
}

impl ShipperOptions {
    /// Sets the folder of the log, and the machine's name.
    pub fn new(folder: impl Into<PathBuf>, machine: FleetName) -> Self {
        Self { folder: folder.into(), machine, collectors: Vec::new() }
    }

    /// Adds a collector whose receipts count.
    #[must_use]
    pub fn collector(mut self, name: FleetName, key: amplifier_audit::PublicKey) -> Self {
        self.collectors.push(CollectorKey { name, key });
        self
    }
}

/// The current work of a shipper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShipperState {
    /// Not connected yet, or the log does not exist yet.
    #[default]
    Waiting,
    /// Another process of this machine ships the log.
    OtherProcess,
    /// Ships, or has shipped everything.
    Shipping,
    /// The centre or the disk fails, for this reason. Attempts go on.
    Failing(String),
    /// The local log is not the one that the centre has received, for this reason. Nothing more is shipped.
    Breach(String),
}

/// The status of a shipper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShipperStatus {
    /// The current work.
    pub state: ShipperState,
    /// The log's id, when it is known.
    pub log: Option<FleetName>,
    /// The number of records in the local log, when it was last read.
    pub size: u64,
    /// The number of records that the stream has stored.
    pub sent: u64,
    /// The number of records that a collector has stored, verified and signed.
    pub received: u64,
    /// The number of records that the stream had stored and lost. They were sent again.
    pub lost_by_centre: u64,
    /// The last problem that a collector reported, or that a receipt has.
    pub problem: Option<String>,
}

impl ShipperStatus {
    /// Returns the number of records that no collector has received.
    pub fn unreceived(&self) -> u64 {
        self.size.saturating_sub(self.received)
    }
}

/// The centre has not received all records. They are kept in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the centre has not received the last {records} records of `{}`{}; keep the log, or ship it later",
    folder.display(),
    cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default()
)]
pub struct RecordsNotReceived {
    /// The number of these records.
    pub records: u64,
    /// The folder of the log.
    pub folder: PathBuf,
    /// The cause, if it is known.
    pub cause: Option<String>,
}

/// Ships a log in the background, for as long as the value exists. It never delays the log's writers.
///
/// Several processes may ship the same log: one of them does, and the others follow its progress. Dropping the shipper stops it; another process,
/// or the next start, continues.
///
/// ```no_run
/// # use std::time::Duration;
/// use amplifier_audit::{Log, PublicKey};
/// use amplifier_fleet::Connection;
/// use amplifier_fleet::records::{Shipper, ShipperOptions};
///
/// # async fn session(connection: Connection, collector: PublicKey) -> Result<(), Box<dyn std::error::Error>> {
/// let options = ShipperOptions::new("audit", "laptop-1".parse()?).collector("a".parse()?, collector);
/// let shipper = Shipper::start(std::future::ready(connection), options);
/// let log = Log::at("audit", "audit.key").retention_limit(shipper.received()).open()?;
/// // …
/// log.close()?;
/// shipper.close(Duration::from_secs(10)).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Shipper {
    options: ShipperOptions,
    status: watch::Receiver<ShipperStatus>,
    task: JoinHandle<()>,
}

impl Shipper {
    /// Starts to ship a log, which need not exist yet, as soon as there is a connection.
    pub fn start(connection: impl Future<Output = Connection> + Send + 'static, options: ShipperOptions) -> Self {
        let (sender, status) = watch::channel(ShipperStatus::default());
        let mine = options.clone();
        let task = tokio::spawn(async move { ShipperTask::new(connection.await, mine, sender).run().await });
        Self { options, status, task }
    }

    /// Returns the status, which changes.
    pub fn status(&self) -> watch::Receiver<ShipperStatus> {
        self.status.clone()
    }

    /// Returns the number of received records, for [`LogOptions::retention_limit`](amplifier_audit::LogOptions::retention_limit).
    pub fn received(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let status = self.status.clone();
        move || status.borrow().received
    }

    /// Waits until a collector has received all records that the log has now, and stops. Close the log before, so that a checkpoint
    /// covers its last records. Without collectors, waits until the stream has stored them.
    ///
    /// # Errors
    /// If some records are not received within the limit. They stay in the log.
    ///
    /// # Cancel safety
    /// Dropping the future stops the shipper.
    pub async fn close(self, limit: Duration) -> Result<(), RecordsNotReceived> {
        let folder = self.options.folder.clone();
        let read = move || LocalLog::new(folder).size();
        let size = match blocking(read).await.and_then(|size| size) {
            Ok(size) => size,
            Err(error) => return Err(self.not_received(self.status.borrow().unreceived(), Some(error.to_string()))),
        };
        let needs_receipt = !self.options.collectors.is_empty();
        let safe = |status: &ShipperStatus| if needs_receipt { status.received } else { status.sent };
        let mut status = self.status.clone();
        let is_over = |status: &ShipperStatus| safe(status) >= size || matches!(status.state, ShipperState::Breach(_));
        // An error means that the limit has passed, or the task has ended: the status says the rest.
        let _ = tokio::time::timeout(limit, status.wait_for(is_over)).await;
        let last = self.status.borrow().clone();
        let records = size.saturating_sub(safe(&last));
        if records == 0 {
            return Ok(());
        }
        let cause = match last.state {
            ShipperState::Failing(cause) | ShipperState::Breach(cause) => Some(cause),
            ShipperState::Waiting => Some("not connected".to_owned()),
            ShipperState::OtherProcess | ShipperState::Shipping => last.problem,
        };
        Err(self.not_received(records, cause))
    }

    fn not_received(&self, records: u64, cause: Option<String>) -> RecordsNotReceived {
        RecordsNotReceived { records, folder: self.folder().to_owned(), cause }
    }

    fn folder(&self) -> &Path {
        &self.options.folder
    }
}

impl Drop for Shipper {
    fn drop(&mut self) {
        self.task.abort();
    }
}
