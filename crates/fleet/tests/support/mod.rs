//! Real NATS servers in temporary folders.

#[allow(dead_code, reason = "not every test needs each failure")]
mod server;

pub(crate) use server::{Cluster, Server, free_port, new_server, old_server};
