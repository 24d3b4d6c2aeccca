//! A WebAssembly component that is asked about every event, each time in a fresh sandbox.

mod engine;
mod guest;
mod sandbox;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use amplifier_core::{EventData, Hook, HookError, HookResult};
use tokio::time::timeout;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;

use super::protocol::{self, HookRequest, MAX_ERROR_CHARS, PROTOCOL};
use super::{Grant, MAX_OUTPUT, MAX_OUTPUT_CHARS, TIMEOUT, TransportError, head, program, runtime};
use engine::WasmRuntime;
use guest::Guest;
use sandbox::{DeadlineExceeded, ResolvedGrant, Sandbox};

const MIB: usize = 1024 * 1024;

/// How a [`WasmHook`] runs.
#[derive(Clone, Debug)]
pub struct WasmOptions {
    /// The name of the hook, which is part of every request.
    pub name: String,
    /// The component: a file.
    pub component: PathBuf,
    /// What relative paths start from, those of the component and of what is granted; the folder of the agent.
    pub folder: PathBuf,
    /// What the component may touch; nothing.
    pub grant: Grant,
    /// How many bytes of memory one call may have; 64 MiB, and at most 1 GiB.
    pub memory: usize,
    /// How long one call may take; 30 seconds.
    pub timeout: Duration,
    /// How many bytes an answer may have, and what is written to stdout and stderr; 1 MiB each.
    pub most_output: usize,
}

impl WasmOptions {
    /// Asks a component that may touch nothing, with the usual limits.
    pub fn new(name: impl Into<String>, component: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            component: component.into(),
            folder: PathBuf::new(),
            grant: Grant::default(),
            memory: 64 * MIB,
            timeout: TIMEOUT,
            most_output: MAX_OUTPUT,
        }
    }
}

/// A hook that asks a WebAssembly component, as in `wit/hook.wit`, each time in a fresh sandbox.
///
/// The sandbox has no files, no network and no environment but what is granted. A component that traps, wants more memory than it may have,
/// runs for too long or answers nonsense is a failure of the hook. While it computes, it yields every few milliseconds, so that it does not hold up
/// what else runs on the agent's threads.
///
/// Components are compiled once in a process, however many hooks use them.
///
/// ```no_run
/// use amplifier_core::{HookRegistry, TOOL_PRE};
/// use amplifier_modules::transport::{WasmHook, WasmOptions};
///
/// let hook = WasmHook::new(WasmOptions::new("secrets", "guards/secrets.wasm"))?;
/// HookRegistry::new().hook(TOOL_PRE).named("secrets").handler(hook);
/// # Ok::<(), amplifier_modules::transport::TransportError>(())
/// ```
#[derive(Debug)]
pub struct WasmHook {
    options: WasmOptions,
    shared: &'static WasmRuntime,
    guest: Guest,
    granted: ResolvedGrant,
}

impl WasmHook {
    /// Compiles a component. Nothing of it runs yet.
    ///
    /// # Errors
    /// If the file is no such component, the limits are out of bounds, or what is granted does not exist.
    pub fn new(options: WasmOptions) -> Result<Self, TransportError> {
        let hook = &options.name;
        if !(1..=engine::MAX_MEMORY).contains(&options.memory) {
            return Err(TransportError::Memory { hook: hook.clone(), most: engine::MAX_MEMORY / MIB });
        }
        let granted = ResolvedGrant::resolve(hook, &options.grant, &options.folder)?;
        let path = options.folder.join(&options.component);
        let unusable = |why: String| TransportError::Component { hook: hook.clone(), path: path.clone(), why };
        let shared = WasmRuntime::get().map_err(unusable)?;
        let guest = shared.guest(&guest::read(&path).map_err(unusable)?).map_err(unusable)?;
        Ok(Self { options, shared, guest, granted })
    }

    /// One call, in a sandbox of its own. What the component writes goes to `output`.
    async fn call(&self, request: &str, output: MemoryOutputPipe) -> wasmtime::Result<Result<String, String>> {
        let deadline = Instant::now().checked_add(self.options.timeout);
        let _permit = self.shared.acquire_permit().await?;
        let sandbox = Sandbox::new(&self.granted, self.options.memory, output)?;
        let mut store = sandbox.into_store(self.shared.engine(), deadline, self.options.most_output);
        self.guest.handle(&mut store, request).await
    }
}

impl Hook for WasmHook {
    /// Asks the component.
    ///
    /// # Cancel safety
    /// Dropping the future ends the component and its sandbox.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let WasmOptions { name, timeout: limit, most_output, .. } = &self.options;
        runtime()?;
        let request = serde_json::to_string(&HookRequest { protocol: PROTOCOL, id: None, hook: name, event, data })?;
        // One byte more tells what is too much from what just fits.
        let output = MemoryOutputPipe::new(most_output.saturating_add(1));
        let called = timeout(*limit, self.call(&request, output.clone())).await;
        let said = output.contents();
        let failed = |what: String| Err(HookError::Failed(program::with_stderr(what, &said)));
        if said.len() > *most_output {
            return failed("the component wrote more to stderr than it may".to_owned());
        }
        match called {
            Ok(Ok(Ok(answer))) if answer.len() > *most_output => {
                failed(format!("the component answered with more than {most_output} bytes"))
            }
            Ok(Ok(Ok(answer))) => {
                let answer = protocol::read(answer.as_bytes())?;
                let said = head(&said, MAX_OUTPUT_CHARS);
                Ok(if said.is_empty() { answer } else { answer.with_output(said) })
            }
            Ok(Ok(Err(error))) => failed(head(error.as_bytes(), MAX_ERROR_CHARS)),
            Ok(Err(error)) if !error.is::<DeadlineExceeded>() => failed(format!("the component failed: {error:#}")),
            Err(_) | Ok(Err(_)) => {
                let late = HookError::TimedOut(*limit);
                // The plain error holds no text: it is right only where there is none.
                if said.is_empty() { Err(late) } else { failed(format!("the component {late}")) }
            }
        }
    }
}
