//! Real NATS servers in temporary folders, and networks that fail.

#[allow(dead_code, reason = "not every test needs each failure")]
mod proxy;
#[allow(dead_code, reason = "not every test needs each failure")]
mod server;

mod centre;

pub(crate) use centre::Centre;
pub(crate) use proxy::Proxy;
pub(crate) use server::{Cluster, Server, free_port, new_server, old_server, sync_of};
