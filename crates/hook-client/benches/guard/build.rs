//! The programs: the command, the hook program, and the static programs that only echo.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

const ECHO: &str = "use std::io::{Read, Write};
fn main() {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).unwrap();
    RECORD
    std::io::stdout().write_all(&bytes).unwrap();
}
";
/// What a program adds that records as a guarded call must: before the answer, and safe from a loss of power.
const RECORD: &str = "let name = std::env::args().next().unwrap() + \".log\";
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(name).unwrap();
    log.write_all(&[b'.'; SIZE]).unwrap();
    log.sync_data().unwrap();";
/// Without a loader, a program starts faster.
const STATIC: &str = "target-feature=+crt-static";

/// Builds the command and the hook program with a profile, into one folder.
pub(crate) fn programs(base: &Path, profile: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    // This program is in `release/deps` of the target folder.
    let targets = own.ancestors().nth(3).ok_or("this program is in no target folder")?;
    let programs = base.join("bin");
    fs::create_dir_all(&programs)?;
    build(&["--profile", profile, "-p", "amplifier", "--bins"], "")?;
    fs::copy(targets.join(profile).join("amplifier"), programs.join("amplifier"))?;
    let target = target();
    build(&["--profile", profile, "-p", "amplifier-hook", "--bins", "--target", &target], &format!("-C {STATIC}"))?;
    fs::copy(targets.join(&target).join(profile).join("amplifier-hook"), programs.join("amplifier-hook"))?;
    Ok(programs)
}

/// The target of the hook program and of its floor: with musl if it is installed, as it is recommended, else that of this program.
pub(crate) fn target() -> String {
    let [musl, gnu] = ["musl", "gnu"].map(|library| format!("{}-unknown-linux-{library}", std::env::consts::ARCH));
    let folder = Command::new(rustc()).args(["--print", "target-libdir", "--target", &musl]).output();
    let is_installed = folder.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    if is_installed { musl } else { gnu }
}

fn build(arguments: &[&str], flags: &str) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    if !flags.is_empty() {
        cargo.env("RUSTFLAGS", flags);
    }
    let built = cargo.args(["build", "--quiet"]).args(arguments).status()?;
    match built.success() {
        true => Ok(()),
        false => Err("a program could not be built: run this with cargo, inside the repository".into()),
    }
}

/// Builds a static program that echoes. It records so many bytes before, if they are given.
pub(crate) fn echo(folder: &Path, record: Option<u64>) -> Result<PathBuf> {
    let program = folder.join(if record.is_some() { "echo-and-record" } else { "echo" });
    let source = program.with_extension("rs");
    let recording = record.map_or(String::new(), |size| RECORD.replace("SIZE", &size.to_string()));
    fs::write(&source, ECHO.replace("RECORD", &recording))?;
    let arguments = ["-O", "-C", STATIC, "-C", "strip=symbols", "--target", &target(), "-o"];
    let built = Command::new(rustc()).args(arguments).arg(&program).arg(&source).status()?;
    if built.success() { Ok(program) } else { Err("the static program could not be built".into()) }
}

fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}
