//! What all components of a process share: the engine, its pool of sandboxes, and what was compiled.

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

/// The most memory that a sandbox can have.
pub(super) const MAX_MEMORY: usize = 1024 * MIB;

/// How many calls run at a time; others wait for their turn.
const MAX_CALLS: u32 = 64;

/// What one component can be made of. The address space of the pool is reserved for as much of it as there are calls.
const MAX_CORE_INSTANCES: u32 = 16;
const MAX_MEMORIES: u32 = 2;
const MAX_TABLES: u32 = 8;

/// How much of a sandbox's memory is kept and cleared for the next one; what is more goes back to the system. Where the system does not tell which pages were
/// written to, all of it is cleared, written to or not: more than this takes longer than giving it back.
const KEPT_MEMORY: usize = 64 * 1024;

/// How many compiled components are kept.
const MAX_GUESTS: usize = 16;

/// How often a component that computes yields, and looks at the time.
const TICK: Duration = Duration::from_millis(5);

/// After how many ticks without a call the clock stops.
const IDLE_TICKS: u32 = 200;

pub(super) struct WasmRuntime {
    engine: Engine,
    linker: Linker<Sandbox>,
    calls: Semaphore,
    clock: Clock,
    /// By the hash of what they were compiled from, the one that was last asked for at the end.
    // A std lock: nothing awaits while it is held.
    guests: Mutex<Vec<([u8; 32], Guest)>>,
}

impl fmt::Debug for WasmRuntime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WasmRuntime").finish_non_exhaustive()
    }
}

/// The right to run, while which the clock ticks.
pub(super) struct CallPermit<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    clock: &'a Clock,
}

impl WasmRuntime {
    /// That of this process, made when it is first needed.
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
            // Clears the pages that were written to, and no others.
            .pagemap_scan(Enabled::Auto);
        let mut config = Config::new();
        // Where in its code a component failed says nothing to those who read the error.
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
        // It fails only for a semaphore that is closed, which this never is; the pool has the last word anyway.
        let permit = self.calls.acquire().await.ok();
        self.clock.enter()?;
        Ok(CallPermit { _permit: permit, clock: &self.clock })
    }

    /// Compiles a component, unless it was compiled before.
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

/// A thread that counts the engine's epochs while there are calls, and sleeps while there are none.
struct Clock {
    engine: Engine,
    calls: Arc<AtomicUsize>,
    // A std lock: nothing awaits while it is held.
    thread: Mutex<ClockThread>,
}

/// The thread, and the process that has it: a fork leaves threads behind.
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

    /// Without a clock, a component that computes for ever would never be stopped.
    fn enter(&self) -> std::io::Result<()> {
        let mut clock = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if clock.process != std::process::id() {
            *clock = ClockThread::start(self.engine.clone(), self.calls.clone())?;
        }
        // The first of several wakes the thread. That is cheap while it does not sleep.
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
                    // A call that began since has left a token, with which this returns at once.
                    thread::park();
                    idle = 0;
                }
            }
        };
        let thread = thread::Builder::new().name("amplifier-wasm-clock".to_owned()).spawn(tick)?.thread().clone();
        Ok(Self { process: std::process::id(), thread })
    }
}
