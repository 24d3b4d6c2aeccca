//! The sandbox of a session, its level, and advice for a better one.

use std::ffi::OsString;
use std::fs;

use amplifier_process::sandbox::{ConfinementLevel, Sandbox, SandboxChoice, SandboxPolicy};

use super::{NO_LAUNCHER, ProtectionPlan};
use crate::environment::Environment;

/// The sandbox for programs of a session.
#[derive(Clone, Debug)]
pub struct ActiveSandbox {
    /// The sandbox. Without one, programs still get their own session, without the terminal of the agent.
    pub sandbox: Sandbox,
    /// The level of protection.
    pub level: SandboxLevel,
    pub(super) launcher: Vec<OsString>,
}

/// The levels of protection, strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxLevel {
    /// Namespaces.
    Namespaces,
    /// Landlock, which protects files and little else. With the reason.
    Landlock(String),
    /// Only the analysis of commands. With the reason.
    Analysis(String),
}

impl ActiveSandbox {
    /// No sandbox, with a reason. Hooks that require one get it if there is a launcher.
    pub fn none(reason: impl Into<String>, environment: &Environment) -> Self {
        let launcher = environment.launcher_words().to_vec();
        Self { sandbox: Sandbox::default(), level: SandboxLevel::Analysis(reason.into()), launcher }
    }

    /// Finds the strongest sandbox of this system, unless confinement is off.
    pub fn find(is_confined: bool, protection: &ProtectionPlan, environment: &Environment) -> Self {
        let launcher = environment.launcher_words().to_vec();
        if launcher.is_empty() {
            return Self::none(NO_LAUNCHER, environment);
        }
        if !is_confined {
            let level = SandboxLevel::Analysis("`confinement` is `off`".to_owned());
            return Self { sandbox: SandboxPolicy::session_sandbox(&launcher), level, launcher };
        }
        let SandboxChoice { sandbox, level } = protection.policy().strongest_sandbox(&launcher);
        let level = match level {
            ConfinementLevel::Namespaces => SandboxLevel::Namespaces,
            ConfinementLevel::Landlock { no_namespaces } => SandboxLevel::Landlock(no_namespaces.to_string()),
            // Systems other than Linux have the same reason for both.
            ConfinementLevel::None { no_namespaces, no_landlock } if no_namespaces == no_landlock => {
                SandboxLevel::Analysis(no_namespaces.to_string())
            }
            ConfinementLevel::None { no_namespaces, no_landlock } => {
                SandboxLevel::Analysis(format!("{no_namespaces}; {no_landlock}"))
            }
        };
        Self { sandbox, level, launcher }
    }
}

impl SandboxLevel {
    /// Returns the name of the level.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock(_) => "landlock",
            Self::Analysis(_) => "analysis",
        }
    }

    /// Returns the reason why the level is not stronger.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Namespaces => None,
            Self::Landlock(reason) | Self::Analysis(reason) => Some(reason),
        }
    }

    /// Returns `true` if programs cannot change protected paths.
    pub fn is_sandbox(&self) -> bool {
        !matches!(self, Self::Analysis(_))
    }

    /// Returns the warning for the start of a session, unless the level is the strongest.
    pub fn warning(&self) -> Option<String> {
        let reason = self.reason()?;
        let warning = match self {
            Self::Namespaces => return None,
            Self::Landlock(_) => format!(
                "commands and hooks are confined by Landlock, because namespaces are not available ({reason}): files are protected, and other processes are \
                 not"
            ),
            Self::Analysis(_) => format!(
                "commands are not confined here ({reason}): those that would change bundles, keys or the audit log are denied by analysis, \
                 which is weaker, and hooks run without a sandbox"
            ),
        };
        Some(self.advice().map_or(warning.clone(), |advice| format!("{warning}; {advice}")))
    }

    /// Returns advice for a stronger level, if there is any.
    pub fn advice(&self) -> Option<String> {
        let reason = self.reason()?;
        if !reason.contains("user namespaces") {
            return None;
        }
        // The first setting with this value is the obstacle.
        const SETTINGS: [(&str, &str, &str); 3] = [
            ("user.max_user_namespaces", "0", "15000"),
            ("kernel.unprivileged_userns_clone", "0", "1"),
            ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ];
        let is_set = |(name, value, _): &&(&str, &str, &str)| {
            let file = format!("/proc/sys/{}", name.replace('.', "/"));
            fs::read_to_string(file).is_ok_and(|text| text.trim() == *value)
        };
        Some(match SETTINGS.iter().find(is_set) {
            Some((name, _, value)) => format!("to allow them: sudo sysctl -w {name}={value}"),
            None => "in a container, start it so that user namespaces are allowed".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ActiveSandbox, SandboxLevel};
    use crate::environment::Environment;
    use crate::protection::ProtectionPlan;

    #[test]
    fn a_system_without_any_sandbox_has_one_reason() {
        // The launcher fails in the same way for every sandbox.
        let environment = Environment::default().launcher(["/bin/false"]);
        let active = ActiveSandbox::find(true, &ProtectionPlan::default(), &environment);
        assert_eq!(active.level, SandboxLevel::Analysis("the launcher ended without a reason".to_owned()));
        let warning = active.level.warning().unwrap();
        assert!(
            warning.starts_with("commands are not confined here (the launcher ended without a reason): "),
            "{warning}"
        );
    }
}
