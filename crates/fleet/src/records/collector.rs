//! Collects the logs of all machines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use amplifier_audit::{PublicKey, SigningKey};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::records::RecordsError;
use crate::records::collector_task::CollectorTask;
use crate::records::error::blocking;
use crate::records::mirror_set::{KnownKeys, MirrorSet};
use crate::{Connection, FleetName};

/// A collector's identity and folder.
#[derive(Clone)]
pub struct CollectorOptions {
    pub(crate) name: FleetName,
    pub(crate) key: SigningKey,
    pub(crate) folder: PathBuf,
    pub(crate) keys: Option<KnownKeys>,
}

impl CollectorOptions {
    /// Sets the name, the key that signs receipts, and the folder for the mirrors. Each collector has a folder of its own.
    pub fn new(name: FleetName, key: SigningKey, folder: impl Into<PathBuf>) -> Self {
        Self { name, key, folder: folder.into(), keys: None }
    }

    /// Sets a function that knows the keys of logs: of a machine and a log. A log with another key is rejected. Without a known key, the
    /// first one that is seen counts.
    #[must_use]
    pub fn log_keys(self, key: impl Fn(&FleetName, &FleetName) -> Option<PublicKey> + Send + Sync + 'static) -> Self {
        Self { keys: Some(Arc::new(key)), ..self }
    }
}

/// The status of one mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorStatus {
    /// The number of mirrored records.
    pub size: u64,
    /// The number of records with a receipt.
    pub received: u64,
    /// The number of large bodies that are missing.
    pub missing_blobs: usize,
    /// `true` if earlier records are missing, and were requested from the machine.
    pub has_gap: bool,
    /// The reason for which records are rejected, if they are.
    pub problem: Option<String>,
}

/// The status of a collector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectorStatus {
    /// The mirrors that changed since the start, by machine and log.
    pub mirrors: BTreeMap<(FleetName, FleetName), MirrorStatus>,
    /// The current failure of the centre or the disk. Attempts go on.
    pub failure: Option<String>,
}

/// Collects logs in the background, for as long as the value exists.
///
/// It keeps no position: after a restart, it reads the stream from its beginning, and the mirrors tell which records are new. Collectors
/// are independent of each other.
#[derive(Debug)]
pub struct Collector {
    status: watch::Receiver<CollectorStatus>,
    task: JoinHandle<()>,
}

impl Collector {
    /// Starts to collect.
    ///
    /// # Errors
    /// If the folder cannot be written, or another process uses it.
    pub async fn start(connection: Connection, options: CollectorOptions) -> Result<Self, RecordsError> {
        let (folder, keys) = (options.folder.clone(), options.keys.clone());
        let mirrors = blocking(move || MirrorSet::open(folder, keys)).await??;
        let (sender, status) = watch::channel(CollectorStatus::default());
        let task = CollectorTask::new(connection, options, Arc::new(Mutex::new(mirrors)), sender);
        Ok(Self { status, task: tokio::spawn(task.run()) })
    }

    /// Returns the status, which changes.
    pub fn status(&self) -> watch::Receiver<CollectorStatus> {
        self.status.clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}
