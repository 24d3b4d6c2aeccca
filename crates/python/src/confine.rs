//! Confinement, for Python: programs are started through the interpreter, as a launcher.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use amplifier_modules::SandboxRequest;
use amplifier_process::sandbox::{self, Launcher, Level, Policy, launch};
use pyo3::prelude::*;

/// Runs the program that the arguments name, confined as they say, and gives the code to exit with.
#[pyfunction]
pub(crate) fn become_confined(arguments: Vec<OsString>) -> u8 {
    launch(arguments)
}

/// The sandbox that programs are started in.
#[pyclass(frozen, module = "amplifier_core._native")]
pub(crate) struct Sandbox(pub(crate) sandbox::Sandbox);

/// The sandbox of commands that cannot change some places, nor read what is hidden; what confines them (`namespaces`, `landlock` or `none`); and the reason if that is not
/// `namespaces`.
#[pyfunction]
pub(crate) fn find_sandbox(
    py: Python<'_>,
    read_only: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
) -> PyResult<(Sandbox, &'static str, String)> {
    let starter = starter(py)?;
    let policy = Policy { read_only, hidden, ..Policy::default() };
    // It starts a process, and waits for it.
    let Launcher { sandbox, level } = py.detach(|| policy.strongest_launcher(&starter));
    let sandbox = Sandbox(sandbox);
    Ok(match level {
        Level::Namespaces => (sandbox, "namespaces", String::new()),
        Level::Landlock { no_namespaces } => (sandbox, "landlock", no_namespaces.to_string()),
        Level::None { no_namespaces, .. } => (sandbox, "none", no_namespaces.to_string()),
    })
}

/// The sandbox of a hook: `usual`, which is that of the agent's commands, or another if the bundle wants a stricter one. Whatever that one allows, `read_only` and
/// `hidden` hold.
///
/// # Errors
/// The reason, if this system cannot do it.
pub(crate) fn for_hook(
    request: &SandboxRequest<'_>,
    workspace: &Path,
    read_only: &[PathBuf],
    hidden: &[PathBuf],
    usual: &sandbox::Sandbox,
) -> Result<sandbox::Sandbox, String> {
    let Some(confine) = request.confine else { return Ok(usual.clone()) };
    let starter = Python::attach(|py| starter(py).map_err(|error| error.value(py).to_string()))?;
    let policy = confine.policy(workspace, hidden);
    let policy = policy.map(|policy| Policy { read_only: read_only.to_vec(), ..policy });
    policy.and_then(|policy| policy.launcher(&starter)).map_err(|error| error.to_string())
}

/// The words that start the interpreter as a launcher.
fn starter(py: Python<'_>) -> PyResult<Vec<OsString>> {
    py.import("amplifier_core._confine")?.call_method0("starter")?.extract()
}
