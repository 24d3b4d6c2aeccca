//! Audit records: machines send the bytes of their logs, collectors mirror and verify them, and return receipts.
//!
//! The log on the machine is the truth. The stream only carries it: [`Shipper`] asks where to resume, and a [`Collector`] takes only records that
//! follow. A record is safe elsewhere when a collector has [signed](Receipt) that.

mod blob;
mod chunk;
mod collector;
mod collector_task;
mod error;
mod local_log;
mod mirror;
mod mirror_set;
mod position;
mod progress;
mod receipt;
mod shipper;
mod shipper_task;
mod stream_reader;
mod verify;

pub use collector::{Collector, CollectorOptions, CollectorStatus, MirrorStatus};
pub use error::RecordsError;
pub use mirror_set::{LogName, list_mirrors, mirror_folder};
pub use position::LogPosition;
pub use progress::LogProgress;
pub use receipt::{CollectorKey, Receipt, read_receipt};
pub use shipper::{RecordsNotReceived, Shipper, ShipperOptions, ShipperState, ShipperStatus};
pub use verify::{MirrorReport, read_receipts, verify_mirrors};
