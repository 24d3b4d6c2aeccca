//! The programs: the command, the hook program, and the static program that only echoes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

const ECHO: &str = "use std::io::{Read, Write};
fn main() {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).unwrap();
    std::io::stdout().write_all(&bytes).unwrap();
}
";

/// Builds all programs with the profile of this one, into one folder.
pub(crate) fn programs(base: &Path) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().ok_or("this program has no folder")?;
    let folder_name = folder.file_name().and_then(|name| name.to_str()).ok_or("this program has no profile")?;
    let profile = if folder_name == "debug" { "dev" } else { folder_name };
    let programs = base.join("bin");
    fs::create_dir_all(&programs)?;
    build(&["--profile", profile, "-p", "amplifier", "--bins"])?;
    fs::copy(folder.join("amplifier"), programs.join("amplifier"))?;
    let target = target();
    build(&["--profile", profile, "-p", "amplifier-hook", "--bins", "--target", &target])?;
    let target_folder = folder.parent().ok_or("this program has no folder")?.join(&target);
    fs::copy(target_folder.join(folder_name).join("amplifier-hook"), programs.join("amplifier-hook"))?;
    echo(&programs, &target)?;
    Ok(programs)
}

/// The target of the hook program and of its floor: with musl if it is installed, as it is recommended, else that of this program.
pub(crate) fn target() -> String {
    let [musl, gnu] = ["musl", "gnu"].map(|library| format!("{}-unknown-linux-{library}", std::env::consts::ARCH));
    let folder = Command::new(rustc()).args(["--print", "target-libdir", "--target", &musl]).output();
    let is_installed = folder.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    if is_installed { musl } else { gnu }
}

fn build(arguments: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).args(["build", "--quiet"]).args(arguments).status()?;
    match built.success() {
        true => Ok(()),
        false => Err("a program could not be built: run this with cargo, inside the repository".into()),
    }
}

fn echo(folder: &Path, target: &str) -> Result<()> {
    let source = folder.join("echo.rs");
    fs::write(&source, ECHO)?;
    let arguments = ["-O", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "--target", target, "-o"];
    let built = Command::new(rustc()).args(arguments).arg(folder.join("echo")).arg(&source).status()?;
    if built.success() { Ok(()) } else { Err("the static program could not be built".into()) }
}

fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}
