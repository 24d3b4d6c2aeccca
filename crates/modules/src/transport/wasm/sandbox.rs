//! What one call of a component has, and how much of it.

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

/// How many files, streams and the like a component can have open.
const MAX_RESOURCES: usize = 1000;

/// The least that a component can hand over to WASI at a time.
const MIN_TRANSFER: usize = 64 * 1024;

/// What is granted, with its values.
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

/// The values of variables may be secrets.
impl std::fmt::Debug for ResolvedGrant {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ResolvedGrant").finish_non_exhaustive()
    }
}

impl ResolvedGrant {
    /// Looks up what is granted. Relative paths start from `base`.
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
                .map_err(|error| error.context(format!("`{}`, which is granted, cannot be opened", path.display())))?;
        }
        if !self.addresses.is_empty() {
            let addresses = self.addresses.clone();
            context.allow_tcp(true).socket_addr_check(move |address, of| {
                let may = match of {
                    SocketAddrUse::TcpConnect => addresses.contains(&address),
                    // Connecting binds to whatever is free. Whoever binds cannot listen.
                    SocketAddrUse::TcpBind => address.ip().is_unspecified() && address.port() == 0,
                    _ => false,
                };
                Box::pin(std::future::ready(may))
            });
        }
        Ok(context.build())
    }
}

/// A context in which there is nothing but a place to write to.
fn builder(output: &MemoryOutputPipe) -> WasiCtxBuilder {
    let mut context = WasiCtxBuilder::new();
    context.stdout(output.clone()).stderr(output.clone());
    context.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false).max_random_size(MIB as u64);
    context
}

/// What one call has.
pub(super) struct Sandbox {
    memory: MemoryLimiter,
    output: MemoryOutputPipe,
    resources: ResourceTable,
    /// Made when it is first needed, because many components never do.
    context: Option<WasiCtx>,
}

impl Sandbox {
    pub(super) fn new(granted: &ResolvedGrant, memory: usize, output: MemoryOutputPipe) -> wasmtime::Result<Self> {
        let context = if granted.is_empty { None } else { Some(granted.context(&output)?) };
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(MAX_RESOURCES);
        Ok(Self { memory: MemoryLimiter { most: memory, used: 0 }, output, resources, context })
    }

    /// Puts it in a store that yields while the component computes, and ends it at the deadline.
    pub(super) fn into_store(self, engine: &Engine, deadline: Option<Instant>, most_output: usize) -> Store<Self> {
        let mut store = Store::new(engine, self);
        store.limiter(|sandbox| &mut sandbox.memory);
        store.set_hostcall_fuel(most_output.max(MIN_TRANSFER));
        store.set_max_component_handles(MAX_RESOURCES);
        store.set_epoch_deadline(1);
        let mut has_yielded = false;
        store.epoch_deadline_callback(move |store| {
            // The runtime's timer alone would not do: a component that keeps a thread busy keeps it from looking at its timers.
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(DeadlineExceeded.into());
            }
            // A component that does not care whether its output goes anywhere would go on until then.
            if store.data().output.contents().len() > most_output {
                return Err(OutputLimitExceeded.into());
            }
            has_yielded = !has_yielded;
            Ok(if has_yielded {
                // Of no ticks, so that this is asked again before the component goes on: others may have taken long.
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

/// The component has run for as long as it may.
#[derive(Debug, thiserror::Error)]
#[error("the time is up")]
pub(super) struct DeadlineExceeded;

/// The component has written more than it may. The hook tells that by what was written.
#[derive(Debug, thiserror::Error)]
#[error("it wrote too much")]
struct OutputLimitExceeded;

/// Counts the memory of a sandbox, that of all its linear memories together.
struct MemoryLimiter {
    most: usize,
    used: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("it needs more memory than the {} MiB that it may have", .0 / MIB)]
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
