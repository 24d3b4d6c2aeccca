//! Receipts and requests of collectors, compared with the local log.

use tokio::time::Instant;

use super::{Failure, ShipperTask};
use crate::FleetName;
use crate::records::LogPosition;
use crate::records::local_log::Comparison;
use crate::records::receipt::{Receipt, read_state};

impl ShipperTask {
    /// Reads the receipts of all collectors, serves their requests, and returns the valid ones.
    pub(super) async fn read_receipts(&mut self, log: &FleetName) -> Result<Vec<Receipt>, Failure> {
        let mut receipts = Vec::new();
        let mut problem = None;
        for collector in self.options.collectors.clone() {
            let read = read_state(&self.connection, &self.options.machine, log, &collector.name).await?;
            let Some((sequence, state)) = read else { continue };
            match state.receipt(log, &collector) {
                Ok(receipt) => receipts.extend(receipt),
                Err(error) => problem = Some(error.to_string()),
            }
            if let Some(text) = &state.problem {
                problem = Some(format!("collector `{}`: {text}", collector.name));
            }
            let is_new = self.served.insert(collector.name, sequence) != Some(sequence);
            if is_new {
                self.send_blobs(log, state.blobs).await?;
            }
            if is_new && state.has_gap {
                self.check(state.end).await?;
                self.rewind = Some(self.rewind.map_or(state.end.size, |other| other.min(state.end.size)));
            }
        }
        let began = Instant::now();
        for receipt in &receipts {
            self.check(receipt.position()).await?;
        }
        (self.receipts_read, self.receipts_took) = (Some(Instant::now()), began.elapsed());
        let received = receipts.iter().map(Receipt::received).max().unwrap_or(0);
        self.status.send_if_modified(|status| {
            let before = status.clone();
            status.received = status.received.max(received);
            status.problem = problem;
            *status != before
        });
        Ok(receipts)
    }

    /// Compares a position of the centre with the local log.
    pub(super) async fn check(&self, position: LogPosition) -> Result<(), Failure> {
        match self.local(move |local| local.compare(position)).await? {
            Comparison::Same | Comparison::Removed(_) => Ok(()),
            Comparison::Different => Err(Failure::Breach(format!(
                "record {} of the local log differs from the history that the centre has already received: \
                 the log was rewritten, or another machine has a copy of it",
                position.size.saturating_sub(1)
            ))),
            Comparison::Shorter => Err(Failure::Breach(format!(
                "the centre has already received {} records, and the local log has fewer: \
                 it was cut, or restored from an older copy",
                position.size
            ))),
        }
    }
}
