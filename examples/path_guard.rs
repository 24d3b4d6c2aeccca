//! Blocks writes into protected directories, and everything that the guard does not understand.
//!
//! Run it with `cargo run --example path_guard`.
#![allow(clippy::print_stdout)]

use std::path::{Component, PathBuf};

use amplifier_core::{Coordinator, Event, HookError, HookRegistry, HookResult, OnError, TOOL_PRE, ToolPre, data};
use serde_json::Value;

const PROTECTED: [&str; 3] = ["/etc", "/root", "/boot"];

fn guard(event: Event<ToolPre>) -> Result<Option<HookResult>, HookError> {
    if !matches!(event.tool_name(), "Write" | "Edit" | "MultiEdit") {
        return Ok(None);
    }
    let file_path = event.text_at("/tool_input/file_path");
    let file_path = file_path.ok_or_else(|| HookError::failed("a write without `file_path`"))?;
    let path = resolve(file_path)?;
    let is_protected = PROTECTED.iter().any(|directory| path.starts_with(directory))
        || path.components().any(|part| part.as_os_str() == ".ssh");
    Ok(is_protected.then(|| HookResult::deny(format!("{} is in a protected directory", path.display()))))
}

/// The path as it will be opened: absolute, without `.` and `..`.
///
/// This compares names only. A guard for real work also follows symbolic links (`std::fs::canonicalize` of the
/// deepest directory that exists), or `link-to-etc/passwd` gets past it.
fn resolve(path: &str) -> std::io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            part => resolved.push(part),
        }
    }
    Ok(resolved)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hooks = HookRegistry::new();
    // A guard that fails must not let anything through.
    hooks.hook(TOOL_PRE).named("path-guard").priority(-10).on_error(OnError::Deny).run(guard);
    let session = Coordinator::builder(hooks).build();

    let inputs = [
        data! { "file_path": "src/main.rs" },
        data! { "file_path": "/etc/passwd" },
        data! { "file_path": "/tmp/../etc/passwd" },
        data! { "file_path": "/srv/ada/.ssh/authorized_keys" },
        // Compared part by part: a name that only begins alike is another name.
        data! { "file_path": "/etcetera/notes.txt" },
        // Not understood, so not allowed.
        data! { "path": "/etc/passwd" },
    ];
    for input in inputs {
        println!("Write {}", Value::from(input.clone()));
        println!("  {}", session.emit(TOOL_PRE, ToolPre::new("Write", input)).await);
    }
    Ok(())
}
