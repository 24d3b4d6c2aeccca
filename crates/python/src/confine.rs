//! Confinement, for Python: programs are started through the interpreter, as a launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use amplifier_modules::Sandbox;
use amplifier_process::sandbox::{Launcher, Level, Policy, launch};
use pyo3::prelude::*;

/// Runs the program that the arguments name, confined as they say, and gives the code to exit with.
#[pyfunction]
pub(crate) fn become_confined(arguments: Vec<OsString>) -> u8 {
    launch(arguments)
}

/// The words to put before a command that cannot change some places, nor read what is hidden; what confines it (`namespaces`, `landlock` or `none`); and the reason if that is not
/// `namespaces`.
#[pyfunction]
pub(crate) fn launcher(
    py: Python<'_>,
    read_only: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
) -> PyResult<(Vec<OsString>, &'static str, String)> {
    let starter = starter(py)?;
    let policy = Policy { read_only, hidden, ..Policy::default() };
    // It starts a process, and waits for it.
    let Launcher { words, level } = py.detach(|| policy.strongest_launcher(&starter));
    Ok(match level {
        Level::Namespaces => (words, "namespaces", String::new()),
        Level::Landlock { no_namespaces } => (words, "landlock", no_namespaces.to_string()),
        Level::None { no_namespaces, .. } => (words, "none", no_namespaces.to_string()),
    })
}

/// The words to put before the command of a hook: `usual`, which stand before the agent's commands, or others if the bundle wants a stricter sandbox. Whatever
/// that sandbox allows, `read_only` and `hidden` hold.
///
/// # Errors
/// The reason, if this system cannot do it.
pub(crate) fn for_hook(
    sandbox: &Sandbox<'_>,
    workspace: &Path,
    read_only: &[PathBuf],
    hidden: &[PathBuf],
    usual: &[OsString],
) -> Result<Vec<OsString>, String> {
    let Some(confine) = sandbox.confine else { return Ok(usual.to_vec()) };
    let starter = Python::attach(|py| starter(py).map_err(|error| error.value(py).to_string()))?;
    let policy = confine.policy(workspace, hidden);
    let policy = policy.map(|policy| Policy { read_only: read_only.to_vec(), ..policy });
    policy.and_then(|policy| policy.launcher(&starter)).map_err(|error| error.to_string())
}

/// The words that start the interpreter as a launcher.
fn starter(py: Python<'_>) -> PyResult<Vec<OsString>> {
    py.import("amplifier_core._confine")?.call_method0("starter")?.extract()
}
