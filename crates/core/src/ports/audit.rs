//! The port for audit logs.

use std::future::Future;
use std::sync::Arc;

use super::{BoxFuture, PortError};
use crate::audit::AuditRecord;
use crate::sync::{Mutex, lock};

/// A log that records everything.
pub trait AuditLog: Send + Sync + 'static {
    /// Takes a record. Must not wait: slow work belongs into [`flush`](AuditLog::flush).
    ///
    /// # Errors
    /// If the record is refused.
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError>;

    /// Waits until every record taken so far is as safe as the log promises. Awaited before a gated operation begins.
    ///
    /// # Errors
    /// If the receipt's record or a later one was lost.
    fn flush(&self, since: Receipt) -> impl Future<Output = Result<(), PortError>> + Send {
        let _ = since;
        async { Ok(()) }
    }
}

/// The position of a taken record: later records have larger numbers. The log chooses them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Receipt(pub u64);

impl<T: AuditLog> AuditLog for Arc<T> {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        T::record(self, record)
    }

    fn flush(&self, since: Receipt) -> impl Future<Output = Result<(), PortError>> + Send {
        T::flush(self, since)
    }
}

pub(crate) trait AnyAuditLog: Send + Sync {
    fn take(&self, record: AuditRecord) -> Result<Receipt, PortError>;
    fn flushed(&self, since: Receipt) -> BoxFuture<'_, Result<(), PortError>>;
}

impl<T: AuditLog> AnyAuditLog for T {
    fn take(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        self.record(record)
    }

    fn flushed(&self, since: Receipt) -> BoxFuture<'_, Result<(), PortError>> {
        Box::pin(async move { self.flush(since).await })
    }
}

/// An audit log in memory. A handle: clones share the same records.
#[derive(Clone, Debug, Default)]
pub struct MemoryAudit {
    // A std lock: nothing awaits while it is held.
    records: Arc<Mutex<Vec<AuditRecord>>>,
}

impl MemoryAudit {
    /// Creates a log without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all records so far.
    pub fn records(&self) -> Vec<AuditRecord> {
        lock(&self.records).clone()
    }
}

impl AuditLog for MemoryAudit {
    fn record(&self, record: AuditRecord) -> Result<Receipt, PortError> {
        let mut records = lock(&self.records);
        records.push(record);
        Ok(Receipt(records.len() as u64))
    }
}
