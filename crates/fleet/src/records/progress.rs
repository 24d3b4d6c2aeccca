//! The progress of a log that another process may ship.

use crate::records::chunk::ChunkHeader;
use crate::records::error::blocking;
use crate::records::local_log::LocalLog;
use crate::records::receipt::{Receipt, read_receipt};
use crate::records::{RecordsError, ShipperOptions};
use crate::{Connection, FleetName, subjects};

/// The progress of a log on its way to the centre.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogProgress {
    /// The log's id.
    pub log: FleetName,
    /// The number of records in the local log.
    pub size: u64,
    /// The number of records that the stream has stored; 0 after its messages have expired.
    pub sent: u64,
    /// The number of records that a collector has stored, verified and signed.
    pub received: u64,
}

impl LogProgress {
    /// Reads the progress of a log; `None` if the log does not exist. Unlike a [`Shipper`](crate::records::Shipper), it does not compare records.
    ///
    /// # Errors
    /// If the log cannot be read, the centre does not reply, or a receipt is not signed by its collector.
    pub async fn read(connection: &Connection, options: &ShipperOptions) -> Result<Option<Self>, RecordsError> {
        let folder = options.folder.clone();
        let local = blocking(move || {
            let local = LocalLog::new(folder);
            Ok::<_, RecordsError>((local.id()?, local.size()?))
        });
        let (Some(id), size) = local.await?? else { return Ok(None) };
        let Ok(log) = id.parse::<FleetName>() else { return Ok(None) };
        let subject = subjects::audit(&options.machine, &log);
        let sent = match connection.last_message(subjects::AUDIT, &subject).await? {
            Some(last) => ChunkHeader::read(&subject, &last.headers)?.to.size,
            None => 0,
        };
        let mut received = 0;
        for collector in &options.collectors {
            let receipt = read_receipt(connection, &options.machine, &log, collector).await?;
            received = receipt.as_ref().map_or(0, Receipt::received).max(received);
        }
        Ok(Some(Self { log, size, sent, received }))
    }

    /// Returns the number of records that no collector has received.
    pub fn unreceived(&self) -> u64 {
        self.size.saturating_sub(self.received)
    }
}
