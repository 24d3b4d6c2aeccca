//! Guests in Rust, which are built when they are first needed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the workspace is.
pub(super) fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Builds a crate of the workspace for the sandbox, if this machine can; else it says so.
pub(super) fn build(folder: &str, file: &str) -> Option<PathBuf> {
    build_at(&workspace().join(folder), file)
}

/// Builds a crate that is anywhere.
pub(super) fn build_at(folder: &Path, file: &str) -> Option<PathBuf> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let found = Command::new(rustc).args(["--print", "target-libdir", "--target", "wasm32-wasip2"]).output().unwrap();
    if !Path::new(String::from_utf8(found.stdout).unwrap().trim()).is_dir() {
        // Not `eprintln!`, which nobody sees of a test that passes.
        let _ = writeln!(
            std::io::stderr(),
            "\n!!! NOT TESTED: the guest in `{}`, because the target wasm32-wasip2 is missing. \
             Please run `rustup target add wasm32-wasip2`. Components given as text are tested. !!!\n",
            folder.display()
        );
        return None;
    }
    let target = workspace().join("target/guests");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--target", "wasm32-wasip2", "--target-dir"])
        .arg(&target)
        .current_dir(folder)
        // Those of this build are for another target.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .unwrap();
    assert!(built.success(), "the guest in `{}` cannot be built", folder.display());
    Some(target.join("wasm32-wasip2/release").join(file))
}
