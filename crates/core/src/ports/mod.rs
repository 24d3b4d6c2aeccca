//! The ports: the kernel's interfaces to its environment.
//!
//! A port is a trait with plain async methods and a private, object-safe twin, so that a session can hold any implementation.
//! Ports depend on events and results, never on each other.

pub(crate) mod approval;
pub(crate) mod approval_rules;
pub(crate) mod audit;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod conversation;
pub(crate) mod display;
pub(crate) mod operations;
pub(crate) mod preview;

use std::future::Future;
use std::pin::Pin;

/// The error of a port.
pub type PortError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
