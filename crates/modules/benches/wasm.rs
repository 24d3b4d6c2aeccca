//! What a WASM hook costs beside the floor: the same component, the same request, a fresh instance of it from a pool, and nothing else.
//!
//! ```sh
//! cargo bench -p amplifier-modules --features wasm --bench wasm [-- COMPONENT]
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark is a program")]

use std::path::Path;
use std::time::{Duration, Instant};

use amplifier_core::{EventData, Hook, data};
use amplifier_modules::transport::{HookRequest, WasmHook, WasmOptions};
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{Config, Enabled, Engine, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// How much memory of an instance is cleared rather than given back.
const KEPT: usize = 64 << 10;

/// A component that denies everything.
const DENIES: &str = r#"(component
  (core module $module
    (memory (export "memory") 17)
    (data (i32.const 1024) "{\22action\22:\22deny\22,\22reason\22:\22no\22}")
    (data (i32.const 16) "\00\00\00\00\00\04\00\00\1f\00\00\00")
    (func (export "allocate") (param i32 i32 i32 i32) (result i32) (i32.const 65536))
    (func (export "handle") (param i32 i32) (result i32) (i32.const 16)))
  (core instance $instance (instantiate $module))
  (func (export "handle") (param "request" string) (result (result string (error string)))
    (canon lift (core func $instance "handle") (memory (core memory $instance "memory")) (realloc (core func $instance "allocate")))))"#;

const BATCHES: usize = 200;
const CALLS: usize = 100;

fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let folder = tempfile::tempdir().unwrap();
    let denies = folder.path().join("denies.wasm");
    std::fs::write(&denies, wat::parse_str(DENIES).unwrap()).unwrap();
    compare("a component that denies", &denies);
    if let Some(component) = given {
        compare(&component, Path::new(&component));
    }
}

fn compare(name: &str, component: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let data = data! { "tool_name": "Bash", "tool_input": { "command": "cargo test", "note": "x".repeat(900) } };
    let floor = Floor::new(component);
    let hook = WasmHook::new(WasmOptions::new("bench", component)).unwrap();
    let request = request(&data);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    // In turns, so that what else happens on the machine happens to both.
    for _ in 0..BATCHES {
        floors.push(timed(|| drop(floor.call(&request))));
        ours.push(timed(|| drop(runtime.block_on(hook.handle("tool:pre", &data)).unwrap())));
    }
    let (floor, ours) = (median(floors), median(ours));
    println!(
        "{name}: floor {floor:.1?}, ours {ours:.1?}, {:.2} times the floor",
        ours.as_secs_f64() / floor.as_secs_f64()
    );
}

fn request(data: &EventData) -> String {
    serde_json::to_string(&HookRequest::new("bench", "tool:pre", data, None)).unwrap()
}

fn timed(mut call: impl FnMut()) -> Duration {
    let begun = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    begun.elapsed() / CALLS as u32
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// wasmtime alone, with its own defaults for the pool.
struct Floor {
    engine: Engine,
    prepared: InstancePre<Wasi>,
}

struct Wasi {
    context: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Wasi {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.context, table: &mut self.table }
    }
}

impl Floor {
    fn new(component: &Path) -> Self {
        // What ours keeps between calls, too: the floor is wasmtime at its best, not as it comes.
        let mut pool = PoolingAllocationConfig::new();
        pool.linear_memory_keep_resident(KEPT).table_keep_resident(KEPT).pagemap_scan(Enabled::Auto);
        let mut config = Config::new();
        config.allocation_strategy(pool);
        let engine = Engine::new(&config).unwrap();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
        let prepared = linker.instantiate_pre(&Component::from_file(&engine, component).unwrap()).unwrap();
        Self { engine, prepared }
    }

    fn call(&self, request: &str) -> Result<String, String> {
        let wasi = Wasi { context: WasiCtx::builder().build(), table: ResourceTable::new() };
        let mut store = Store::new(&self.engine, wasi);
        let instance = self.prepared.instantiate(&mut store).unwrap();
        let handle = instance.get_typed_func::<(&str,), (Result<String, String>,)>(&mut store, "handle").unwrap();
        handle.call(&mut store, (request,)).unwrap().0
    }
}
