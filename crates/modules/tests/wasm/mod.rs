//! Components for tests.

mod guest;
mod hostile;
mod sandbox;

use std::path::{Path, PathBuf};

use amplifier_modules::transport::{WasmHook, WasmOptions};

/// A component as text, which implements the world `hook`: more fields of its module, and the body of its function.
///
/// The function gets the request as `$at` and `$length`. `$answer` makes its result: 0 for an answer or 1 for an error, and where the text is.
pub(crate) fn component(fields: &str, body: &str) -> String {
    let own_memory = fields.starts_with("(memory");
    let memory = if own_memory { String::new() } else { "(memory 32)".to_owned() };
    format!(
        r#"(component
  (core module $module
    {memory}
    {fields}
    (export "memory" (memory 0))
    (global $free (mut i32) (i32.const 65536))
    (func $answer (param $is_error i32) (param $at i32) (param $length i32) (result i32)
      (i32.store (i32.const 16) (local.get $is_error))
      (i32.store (i32.const 20) (local.get $at))
      (i32.store (i32.const 24) (local.get $length))
      (i32.const 16))
    (func (export "allocate") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
      (global.get $free)
      (global.set $free (i32.add (global.get $free) (local.get $size))))
    (func (export "handle") (param $at i32) (param $length i32) (result i32)
      {body}))
  (core instance $instance (instantiate $module))
  (func (export "handle") (param "request" string) (result (result string (error string)))
    (canon lift (core func $instance "handle") (memory (core memory $instance "memory")) (realloc (core func $instance "allocate")))))"#
    )
}

/// A component that always gives the same answer.
pub(crate) fn answering(answer: &str) -> String {
    let length = answer.replace("\\n", "\n").len();
    let text = answer.replace('"', "\\22");
    component(
        &format!("(data (i32.const 1024) \"{text}\")"),
        &format!("(call $answer (i32.const 0) (i32.const 1024) (i32.const {length}))"),
    )
}

/// A component in a file, which is gone with this.
pub(crate) struct Written {
    folder: tempfile::TempDir,
}

impl Written {
    pub(crate) fn new(text: &str) -> Self {
        Self::bytes(&wat::parse_str(text).unwrap())
    }

    /// Writes the text itself, if it is none that stands for a component.
    pub(crate) fn maybe(text: &str) -> Self {
        Self::bytes(&wat::parse_str(text).unwrap_or_else(|_| text.as_bytes().to_vec()))
    }

    fn bytes(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("component.wasm"), bytes).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("component.wasm")
    }
}

pub(crate) fn hook(text: &str) -> WasmHook {
    hook_with(text, |_| {})
}

/// A hook, with options of its own.
pub(crate) fn hook_with(text: &str, change: impl FnOnce(&mut WasmOptions)) -> WasmHook {
    made(&Written::new(text).path(), change)
}

fn made(component: &Path, change: impl FnOnce(&mut WasmOptions)) -> WasmHook {
    let mut options = WasmOptions::new("test", component);
    change(&mut options);
    WasmHook::new(options).unwrap()
}
