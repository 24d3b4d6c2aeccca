//! The ports: what the kernel needs from the world around it.
//!
//! A port is a trait with plain async methods and a private twin without types, so that a session can hold any of them.
//! Ports know events and results, never each other.

pub(crate) mod approval;
pub(crate) mod audit;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod conversation;
pub(crate) mod display;
pub(crate) mod preview;
pub(crate) mod rules;

use std::future::Future;
use std::pin::Pin;

/// What went wrong in a port.
pub type PortError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
