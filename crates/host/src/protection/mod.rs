//! Protected paths, and the sandbox that keeps programs from them.

mod folders;
mod lists;
mod plan;
mod sandbox;
mod settings;

pub use plan::{ProtectedPaths, ProtectionPlan};
pub use sandbox::{ActiveSandbox, SandboxLevel};
pub use settings::SandboxSettings;

use amplifier_modules::SandboxRequest;
use amplifier_process::sandbox::{Sandbox, SandboxPolicy};

/// The reason why a program without a launcher has no sandbox.
const NO_LAUNCHER: &str = "sandboxing is not available in this program";

/// Returns the sandbox of a hook: the one for commands, or another if the bundle requires a stricter one.
///
/// # Errors
/// The reason if this system has no such sandbox.
pub(crate) fn hook_sandbox(
    hook: &SandboxRequest<'_>,
    protection: &ProtectionPlan,
    active: &ActiveSandbox,
) -> Result<Sandbox, String> {
    let mut base = protection.policy();
    let Some(confine) = hook.confine else {
        let writes_to_protected = base.read_only.iter().any(|path| hook.outputs.contains(path));
        if !active.level.is_sandbox() || !writes_to_protected {
            return Ok(active.sandbox.clone());
        }
        base.read_only.retain(|path| !hook.outputs.contains(path));
        return Ok(base.strongest_sandbox(&active.launcher).sandbox);
    };
    if active.launcher.is_empty() {
        return Err(active.level.reason().unwrap_or(NO_LAUNCHER).to_owned());
    }
    let policy = confine.policy(protection.workspace(), &base.hidden);
    let policy = policy.map(|policy| SandboxPolicy { read_only: base.read_only, ..policy });
    policy.and_then(|policy| policy.namespace_sandbox(&active.launcher)).map_err(|error| error.to_string())
}
