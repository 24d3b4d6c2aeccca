#![doc = include_str!("../README.md")]

mod connection;
mod error;
mod message;
mod name;
pub mod records;
mod streams;
pub mod subjects;

pub use connection::{Connection, ConnectionOptions};
pub use error::FleetError;
pub use message::StoredMessage;
pub use name::{FleetName, InvalidFleetName};
pub use streams::{Replicas, create_streams};
