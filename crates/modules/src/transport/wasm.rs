//! Hooks in WebAssembly components, each call in a fresh sandbox.

mod engine;
mod guest;
mod sandbox;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use amplifier_core::{EventData, Hook, HookError, HookResult};
use tokio::time::timeout;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;

use super::protocol::{self, HookRequest, MAX_ERROR_CHARS};
use super::{Grant, MAX_OUTPUT, MAX_OUTPUT_CHARS, TIMEOUT, TransportError, head, program, runtime};
use engine::WasmRuntime;
use guest::Guest;
use sandbox::{DeadlineExceeded, ResolvedGrant, Sandbox};

const MIB: usize = 1024 * 1024;

/// Options of a [`WasmHook`].
#[derive(Clone, Debug)]
pub struct WasmOptions {
    /// The name of the hook, which is part of every request.
    pub name: String,
    /// File of the component.
    pub component: PathBuf,
    /// Base folder of the component and of granted paths; that of the agent by default.
    pub folder: PathBuf,
    /// Workspace of the agent, for requests; none by default.
    pub workspace: Option<PathBuf>,
    /// Resources of the component; none by default.
    pub grant: Grant,
    /// Memory limit of one call in bytes; 64 MiB by default, at most 1 GiB.
    pub memory: usize,
    /// Time limit of one call; 30 seconds by default.
    pub timeout: Duration,
    /// Maximum number of bytes of an answer, and of stdout and stderr; 1 MiB by default.
    pub most_output: usize,
}

impl WasmOptions {
    /// Creates options without resources, with default limits.
    pub fn new(name: impl Into<String>, component: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            component: component.into(),
            folder: PathBuf::new(),
            workspace: None,
            grant: Grant::default(),
            memory: 64 * MIB,
            timeout: TIMEOUT,
            most_output: MAX_OUTPUT,
        }
    }
}

/// A hook in a WebAssembly component, as in `wit/hook.wit`, called in a fresh sandbox each time.
///
/// The sandbox has no files, no network and no environment except granted ones. A component that traps, exceeds its memory or time limit, or returns
/// an invalid answer is a failure of the hook. A component yields every few milliseconds, so that it does not block the agent's threads.
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
    /// Compiles a component without running it.
    ///
    /// # Errors
    /// If the file is not a hook component, a limit is out of range, or a granted resource does not exist.
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

    /// Makes one call in a new sandbox. Stdout and stderr go to `output`.
    async fn call(&self, request: &str, output: MemoryOutputPipe) -> wasmtime::Result<Result<String, String>> {
        let deadline = Instant::now().checked_add(self.options.timeout);
        let _permit = self.shared.acquire_permit().await?;
        let sandbox = Sandbox::new(&self.granted, self.options.memory, output)?;
        let mut store = sandbox.into_store(self.shared.engine(), deadline, self.options.most_output);
        self.guest.handle(&mut store, request).await
    }
}

impl Hook for WasmHook {
    /// # Cancel safety
    /// Dropping the future ends the component and its sandbox.
    async fn handle(&self, event: &str, data: &EventData) -> Result<HookResult, HookError> {
        let WasmOptions { name, workspace, timeout: limit, most_output, .. } = &self.options;
        runtime()?;
        let request = serde_json::to_string(&HookRequest::new(name, event, data, workspace.as_deref()))?;
        // One byte more, to detect an exceeded limit.
        let output = MemoryOutputPipe::new(most_output.saturating_add(1));
        let called = timeout(*limit, self.call(&request, output.clone())).await;
        let said = output.contents();
        let failed = |what: String| Err(HookError::Failed(program::with_stderr(what, &said)));
        if said.len() > *most_output {
            return failed("the component exceeded the output limit of stderr".to_owned());
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
                // `TimedOut` has no text, so it is used only without stderr.
                if said.is_empty() { Err(late) } else { failed(format!("the component {late}")) }
            }
        }
    }
}
