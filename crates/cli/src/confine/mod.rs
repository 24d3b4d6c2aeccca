//! Confinement of programs: this program starts others through itself, as `amplifier confined OPTIONS -- PROGRAM ARGUMENTS`, which confines itself and
//! starts the program.

mod active;
mod folders;
mod lists;
mod protection;
mod settings;

pub use active::{ActiveSandbox, SandboxLevel};
pub use protection::Protection;
pub use settings::SandboxSettings;

use std::ffi::OsString;
use std::process::ExitCode;

use amplifier_modules::SandboxRequest;
use amplifier_process::sandbox::{self, Launcher, NotConfined, Policy, Sandbox};

/// The word that makes this program a launcher. It is not for people, so no help names it.
const CONFINED: &str = "confined";

/// This very program, also when its file has been replaced or removed since it was started.
const THIS: &str = "/proc/self/exe";

/// Runs the launcher, if the arguments ask for that. It has to be called first of all: namespaces are entered by a process with one
/// thread.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    arguments.next_if(|word| word == CONFINED)?;
    Some(ExitCode::from(sandbox::launch(arguments)))
}

/// The sandbox with a policy.
///
/// # Errors
/// If this system cannot do it.
fn launcher(policy: &Policy) -> Result<Sandbox, NotConfined> {
    policy.launcher(&[THIS.into(), CONFINED.into()])
}

/// The strongest launcher that works here.
pub fn strongest_launcher(policy: &Policy) -> Launcher {
    policy.strongest_launcher(&[THIS.into(), CONFINED.into()])
}

/// What gives a program that is not confined a session without the terminal of the agent.
pub fn session_launcher() -> Sandbox {
    Policy::session_launcher(&[THIS.into(), CONFINED.into()])
}

/// The sandbox of a hook: that of the agent's commands, or another if the bundle wants a stricter one.
///
/// # Errors
/// In words, if this system cannot do it.
pub fn for_hook(hook: &SandboxRequest<'_>, protection: &Protection, active: &ActiveSandbox) -> Result<Sandbox, String> {
    let mut base = protection.policy();
    let Some(confine) = hook.confine else {
        let writes_to_protected = base.read_only.iter().any(|place| hook.outputs.contains(place));
        if !active.level.is_sandbox() || !writes_to_protected {
            return Ok(active.sandbox.clone());
        }
        base.read_only.retain(|place| !hook.outputs.contains(place));
        return Ok(strongest_launcher(&base).sandbox);
    };
    let policy = confine.policy(protection.workspace(), &base.hidden);
    let policy = policy.map(|policy| Policy { read_only: base.read_only, ..policy });
    policy.and_then(|policy| launcher(&policy)).map_err(|error| error.to_string())
}
