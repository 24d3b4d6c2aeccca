//! A compiled component.

use std::fmt;
use std::io::Read;
use std::path::Path;

use amplifier_process::files::open_regular;
use wasmtime::component::types::{ComponentItem, Type};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};
use wasmtime::{Engine, Store};

use super::MIB;
use super::sandbox::Sandbox;

const HANDLE: &str = "handle";

const BUILD: &str = "build it with `cargo build --release --target wasm32-wasip2`";

const MAX_SIZE: usize = 64 * MIB;

/// A compiled component, prepared for calls.
#[derive(Clone)]
pub(super) struct Guest {
    prepared: InstancePre<Sandbox>,
    handle: ComponentExportIndex,
}

impl fmt::Debug for Guest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Guest").finish_non_exhaustive()
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("the file cannot be read: {error}");
    let (file, _) = open_regular(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_SIZE as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_SIZE {
        return Err(format!("the file is larger than {} MiB", MAX_SIZE / MIB));
    }
    Ok(bytes)
}

impl Guest {
    /// Compiles a component, and checks that it is a hook that needs nothing but WASI.
    pub(super) fn compile(engine: &Engine, linker: &Linker<Sandbox>, bytes: &[u8]) -> Result<Self, String> {
        // Clear messages for the most frequent mistakes: another file, or a build for another target.
        match bytes.first_chunk() {
            Some(b"\0asm\x01\0\0\0") => {
                return Err(format!("the file is a WebAssembly module, not a component; {BUILD}"));
            }
            Some([b'\0', b'a', b's', b'm', _, _, _, _]) => {}
            _ => return Err(format!("the file is not WebAssembly; {BUILD}")),
        }
        let component = Component::from_binary(engine, bytes).map_err(|error| format!("{error:#}"))?;
        let function = match component.component_type().get_export(engine, HANDLE).map(|export| export.ty) {
            Some(ComponentItem::ComponentFunc(function)) => function,
            _ => return Err(format!("the function `{HANDLE}` is not exported; see the world `hook` in `hook.wit`")),
        };
        let takes_text = function.params().map(|(_, of)| of).eq([Type::String]);
        let mut results = function.results();
        let gives_text = match (results.next(), results.next()) {
            (Some(Type::Result(of)), None) => of.ok() == Some(Type::String) && of.err() == Some(Type::String),
            _ => false,
        };
        if !takes_text || !gives_text {
            return Err(format!("the function `{HANDLE}` is not `func(request: string) -> result<string, string>`"));
        }
        let prepared = linker.instantiate_pre(&component).map_err(|error| format!("{error:#}"))?;
        let handle = component.get_export_index(None, HANDLE).ok_or("no exports found")?;
        Ok(Self { prepared, handle })
    }

    pub(super) async fn handle(
        &self,
        store: &mut Store<Sandbox>,
        request: &str,
    ) -> wasmtime::Result<Result<String, String>> {
        let instance = self.prepared.instantiate_async(&mut *store).await?;
        let handle = instance.get_typed_func::<(&str,), (Result<String, String>,)>(&mut *store, &self.handle)?;
        let (answer,) = handle.call_async(store, (request,)).await?;
        Ok(answer)
    }
}
