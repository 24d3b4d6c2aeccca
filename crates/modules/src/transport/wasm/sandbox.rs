//! Resources and limits of one call.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime::{Engine, ResourceLimiter, Store, UpdateDeadline};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::sockets::SocketAddrUse;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use super::MIB;
use crate::transport::{ExpansionError, Grant, TransportError};

/// Maximum number of open files, streams and similar resources.
const MAX_RESOURCES: usize = 1000;

/// Minimum limit of data passed to WASI at once, in bytes.
const MIN_TRANSFER: usize = 64 * 1024;

#[derive(Clone)]
pub(super) struct ResolvedGrant {
    is_empty: bool,
    variables: Vec<(String, String)>,
    folders: Vec<GrantedFolder>,
    addresses: Arc<[SocketAddr]>,
}

#[derive(Clone)]
struct GrantedFolder {
    path: PathBuf,
    guest_path: String,
    permissions: FsPerms,
}

/// Without the values of variables, which may be secrets.
impl std::fmt::Debug for ResolvedGrant {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ResolvedGrant").finish_non_exhaustive()
    }
}

impl ResolvedGrant {
    /// Resolves a grant. Relative paths start from `base`.
    pub(super) fn resolve(hook: &str, grant: &Grant, base: &Path) -> Result<Self, TransportError> {
        let mut variables = Vec::new();
        for name in &grant.env {
            let value = std::env::var(name).map_err(|_| TransportError::Expansion {
                hook: hook.to_owned(),
                place: "grant".to_owned(),
                why: ExpansionError::NoVariable(name.clone()),
            })?;
            variables.push((name.clone(), value));
        }
        let mut folders = Vec::new();
        for granted in &grant.files {
            let path = base.join(&granted.path);
            if !path.is_dir() {
                return Err(TransportError::Folder { hook: hook.to_owned(), path });
            }
            let permissions = if granted.write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
            folders.push(GrantedFolder { path, guest_path: granted.path.clone(), permissions });
        }
        let addresses = grant.network.clone().into();
        Ok(Self { is_empty: grant.is_empty(), variables, folders, addresses })
    }

    fn context(&self, output: &MemoryOutputPipe) -> wasmtime::Result<WasiCtx> {
        let mut context = builder(output);
        context.envs(&self.variables);
        for GrantedFolder { path, guest_path, permissions } in &self.folders {
            context
                .preopened_dir(path, guest_path, *permissions)
                .map_err(|error| error.context(format!("granted folder `{}` cannot be opened", path.display())))?;
        }
        if !self.addresses.is_empty() {
            let addresses = self.addresses.clone();
            context.allow_tcp(true).socket_addr_check(move |address, of| {
                let may = match of {
                    SocketAddrUse::TcpConnect => addresses.contains(&address),
                    // Connecting binds to any free port. Listening stays forbidden.
                    SocketAddrUse::TcpBind => address.ip().is_unspecified() && address.port() == 0,
                    _ => false,
                };
                Box::pin(std::future::ready(may))
            });
        }
        Ok(context.build())
    }
}

/// Returns a context with an output and nothing else.
fn builder(output: &MemoryOutputPipe) -> WasiCtxBuilder {
    let mut context = WasiCtxBuilder::new();
    context.stdout(output.clone()).stderr(output.clone());
    context.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false).max_random_size(MIB as u64);
    context
}

/// The state of one call.
pub(super) struct Sandbox {
    memory: MemoryLimiter,
    output: MemoryOutputPipe,
    resources: ResourceTable,
    /// Created on first use, because many components never need it.
    context: Option<WasiCtx>,
}

impl Sandbox {
    pub(super) fn new(granted: &ResolvedGrant, memory: usize, output: MemoryOutputPipe) -> wasmtime::Result<Self> {
        let context = if granted.is_empty { None } else { Some(granted.context(&output)?) };
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(MAX_RESOURCES);
        Ok(Self { memory: MemoryLimiter { most: memory, used: 0 }, output, resources, context })
    }

    /// Creates a store that yields regularly and ends the component at the deadline.
    pub(super) fn into_store(self, engine: &Engine, deadline: Option<Instant>, most_output: usize) -> Store<Self> {
        let mut store = Store::new(engine, self);
        store.limiter(|sandbox| &mut sandbox.memory);
        store.set_hostcall_fuel(most_output.max(MIN_TRANSFER));
        store.set_max_component_handles(MAX_RESOURCES);
        store.set_epoch_deadline(1);
        let mut has_yielded = false;
        store.epoch_deadline_callback(move |store| {
            // The runtime's timers alone are not enough: a busy component keeps its thread from checking them.
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(DeadlineExceeded.into());
            }
            // A component that ignores failed writes would run until the deadline.
            if store.data().output.contents().len() > most_output {
                return Err(OutputLimitExceeded.into());
            }
            has_yielded = !has_yielded;
            Ok(if has_yielded {
                // Zero ticks, so that the deadline is checked again before the component continues: other tasks may have taken long.
                UpdateDeadline::YieldCustom(0, Box::pin(tokio::task::yield_now()))
            } else {
                UpdateDeadline::Continue(1)
            })
        });
        store
    }
}

impl WasiView for Sandbox {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Self { output, resources, context, .. } = self;
        WasiCtxView { ctx: context.get_or_insert_with(|| builder(output).build()), table: resources }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("time limit exceeded")]
pub(super) struct DeadlineExceeded;

/// The hook detects this by the size of the output.
#[derive(Debug, thiserror::Error)]
#[error("output limit exceeded")]
struct OutputLimitExceeded;

/// Limits the total size of all linear memories.
struct MemoryLimiter {
    most: usize,
    used: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("memory limit of {} MiB exceeded", .0 / MIB)]
struct MemoryLimitExceeded(usize);

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > self.most {
            return Err(MemoryLimitExceeded(self.most).into());
        }
        self.used = used;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // The pool has a limit of its own.
        Ok(true)
    }
}
