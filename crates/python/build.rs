//! Lays the library out so that importing it takes little memory.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=layout.ld");
    let is = |what: &str, value: &str| env::var(what).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    let layout = env::current_dir().unwrap_or_default().join("layout.ld");
    // As two words: within `-Wl,` a comma in the path would end it.
    println!("cargo::rustc-cdylib-link-arg=-T");
    println!("cargo::rustc-cdylib-link-arg={}", layout.display());
    // Otherwise a tenth of what is mapped says only where addresses are to be filled in.
    if env::var("HOST") == env::var("TARGET") && c_library().is_some_and(|version| version >= (2, 36)) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's C library. Older ones than 2.36 cannot load what is packed, so that what is built beside an old one,
/// as wheels for many machines are, is not packed.
fn c_library() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let said = String::from_utf8(said).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
