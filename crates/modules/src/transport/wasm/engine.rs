//! The WebAssembly runtime that all components of a process share: engine, pool of sandboxes, compiled components.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, PoolingAllocationConfig};

use super::MIB;
use super::guest::Guest;
use super::sandbox::Sandbox;

pub(super) const MAX_MEMORY: usize = 1024 * MIB;

/// Maximum number of concurrent calls; others wait.
const MAX_CALLS: u32 = 64;

/// Maximum parts of one component. The pool reserves address space for all concurrent calls.
const MAX_CORE_INSTANCES: u32 = 16;
const MAX_MEMORIES: u32 = 2;
const MAX_TABLES: u32 = 8;

/// Memory of a sandbox that is cleared for reuse; the rest is returned to the system. Some systems do not report written pages, so all of it is
/// cleared: clearing more takes longer than returning it.
const KEPT_MEMORY: usize = 64 * 1024;

/// Maximum number of cached components.
const MAX_GUESTS: usize = 16;

/// Interval in which a running component yields and checks its deadline.
const TICK: Duration = Duration::from_millis(5);

/// Number of ticks without a call after which the clock stops.
const IDLE_TICKS: u32 = 200;

pub(super) struct WasmRuntime {
    engine: Engine,
    linker: Linker<Sandbox>,
    calls: Semaphore,
    clock: Clock,
    /// Compiled components by the hash of their bytes, most recently used last.
    // A std lock: nothing awaits while it is held.
    guests: Mutex<Vec<([u8; 32], Guest)>>,
}

impl fmt::Debug for WasmRuntime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WasmRuntime").finish_non_exhaustive()
    }
}

/// Permission for one call; the clock runs while it exists.
pub(super) struct CallPermit<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    clock: &'a Clock,
}

impl WasmRuntime {
    /// Returns the runtime of this process, created on first use.
    pub(super) fn get() -> Result<&'static Self, String> {
        static SHARED: LazyLock<Result<WasmRuntime, String>> = LazyLock::new(|| {
            WasmRuntime::new().map_err(|error| format!("this machine cannot run WebAssembly: {error:#}"))
        });
        SHARED.as_ref().map_err(Clone::clone)
    }

    fn new() -> wasmtime::Result<Self> {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(MAX_CALLS)
            .total_stacks(MAX_CALLS)
            .max_core_instances_per_component(MAX_CORE_INSTANCES)
            .total_core_instances(MAX_CALLS * MAX_CORE_INSTANCES)
            .max_memories_per_component(MAX_MEMORIES)
            .total_memories(MAX_CALLS * MAX_MEMORIES)
            .max_tables_per_component(MAX_TABLES)
            .total_tables(MAX_CALLS * MAX_TABLES)
            .max_memory_size(MAX_MEMORY)
            .linear_memory_keep_resident(KEPT_MEMORY)
            .table_keep_resident(KEPT_MEMORY)
            // Clears written pages only.
            .pagemap_scan(Enabled::Auto);
        let mut config = Config::new();
        // The position in the code does not help the readers of an error.
        config.allocation_strategy(pool).epoch_interruption(true).wasm_backtrace_max_frames(None);
        let engine = Engine::new(&config)?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        let clock = Clock::start(engine.clone())?;
        let calls = Semaphore::new(MAX_CALLS as usize);
        Ok(Self { engine, linker, calls, clock, guests: Mutex::default() })
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Waits until one more call can run.
    pub(super) async fn acquire_permit(&self) -> std::io::Result<CallPermit<'_>> {
        // Fails only for a closed semaphore, which never happens; the pool enforces the limit anyway.
        let permit = self.calls.acquire().await.ok();
        self.clock.enter()?;
        Ok(CallPermit { _permit: permit, clock: &self.clock })
    }

    /// Returns a compiled component, from the cache if possible.
    pub(super) fn guest(&self, bytes: &[u8]) -> Result<Guest, String> {
        let hash: [u8; 32] = Sha256::digest(bytes).into();
        if let Some(guest) = self.cached(&hash) {
            return Ok(guest);
        }
        let guest = Guest::compile(&self.engine, &self.linker, bytes)?;
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.push((hash, guest.clone()));
        if guests.len() > MAX_GUESTS {
            guests.remove(0);
        }
        Ok(guest)
    }

    fn cached(&self, hash: &[u8; 32]) -> Option<Guest> {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        let found = guests.iter().position(|(of, _)| of == hash)?;
        guests[found..].rotate_left(1);
        guests.last().map(|(_, guest)| guest.clone())
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.clock.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that counts the engine's epochs during calls, and sleeps otherwise.
struct Clock {
    engine: Engine,
    calls: Arc<AtomicUsize>,
    // A std lock: nothing awaits while it is held.
    thread: Mutex<ClockThread>,
}

/// The thread and its process: threads do not survive a fork.
struct ClockThread {
    process: u32,
    thread: Thread,
}

impl Clock {
    fn start(engine: Engine) -> std::io::Result<Self> {
        let calls = Arc::new(AtomicUsize::new(0));
        let thread = Mutex::new(ClockThread::start(engine.clone(), calls.clone())?);
        Ok(Self { engine, calls, thread })
    }

    /// Starts the clock for a call. Without a clock, an endless component would never be stopped.
    fn enter(&self) -> std::io::Result<()> {
        let mut clock = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if clock.process != std::process::id() {
            *clock = ClockThread::start(self.engine.clone(), self.calls.clone())?;
        }
        // The first of several calls wakes the thread, which is cheap if it is awake.
        if self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            clock.thread.unpark();
        }
        Ok(())
    }
}

impl ClockThread {
    fn start(engine: Engine, counted: Arc<AtomicUsize>) -> std::io::Result<Self> {
        let tick = move || {
            let mut idle = 0;
            loop {
                thread::sleep(TICK);
                engine.increment_epoch();
                idle = if counted.load(Ordering::Relaxed) == 0 { idle + 1 } else { 0 };
                if idle > IDLE_TICKS {
                    // Returns at once if a call has started since.
                    thread::park();
                    idle = 0;
                }
            }
        };
        let thread = thread::Builder::new().name("amplifier-wasm-clock".to_owned()).spawn(tick)?.thread().clone();
        Ok(Self { process: std::process::id(), thread })
    }
}
