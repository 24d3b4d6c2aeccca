//! Hooks that are services of the fleet.
//!
//! A request goes to one instance of its service. If it does not answer in half of the time limit, all instances get the request, and the first answer counts.

mod client;
mod service;

pub use client::FleetHooks;
pub use service::{HookCall, HookService};

/// The header with the error of a service, as in the NATS service protocol.
const ERROR: &str = "Nats-Service-Error";

/// The header with the code of the error.
const ERROR_CODE: &str = "Nats-Service-Error-Code";

/// The code of every error of a service.
const FAILED: &str = "500";
