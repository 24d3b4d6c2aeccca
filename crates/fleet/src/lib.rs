#![doc = include_str!("../README.md")]

mod approvals;
mod connection;
pub mod enrol;
mod error;
mod hooks;
mod message;
mod name;
pub mod policies;
pub mod records;
mod streams;
pub mod subjects;

pub use approvals::{
    AnswerError, Console, ConsoleEvent, ConsoleKeys, FleetApprovals, FleetApprovalsOptions, InvalidAnswer,
    ServerBridge, SignedAnswer,
};
pub use connection::{Connection, ConnectionOptions};
pub use error::FleetError;
pub use hooks::{FleetHooks, HookCall, HookService};
pub use message::StoredMessage;
pub use name::{FleetName, InvalidFleetName};
pub use streams::{Replicas, create_streams};
