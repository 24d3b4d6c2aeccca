//! The environment variables that programs inherit.

use std::ffi::{OsStr, OsString};

use crate::system::programs::BASIC_VARIABLES;

/// Parts of names that indicate a secret.
const SECRET_WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "PRIVATE"];

/// Variables that make the loader, a shell or Node run code before the requested program. A launcher would run that code before it confines itself,
/// and a shell would run another command than the one that was analysed and shown.
///
/// A trailing `*` matches any suffix.
const NEVER_INHERITED: [&str; 12] = [
    "LD_*",
    "DYLD_*",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_*",
    "SHELLOPTS",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "NODE_OPTIONS",
];

/// Variables that make interpreters and git run or import other code. Commands keep them: a project may need its `PYTHONPATH`, and a command could
/// set them itself. Hooks decide about commands, so they must not run files that commands can write.
const NOT_INHERITED_BY_HOOKS: [&str; 23] = [
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONUSERBASE",
    "PYTHONPLATLIBDIR",
    "PYTHONEXECUTABLE",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "PYTHONPYCACHEPREFIX",
    "NODE_PATH",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "LUA_*",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "ZDOTDIR",
    "GIT_*",
];

/// The variables of this process that a program inherits.
///
/// ```
/// use amplifier_process::Environment;
///
/// assert!(Environment::Commands.inherits("PATH".as_ref()) && Environment::Commands.inherits("PYTHONPATH".as_ref()));
/// assert!(!Environment::Commands.inherits("LD_PRELOAD".as_ref()) && !Environment::Commands.inherits("GITHUB_TOKEN".as_ref()));
/// assert!(Environment::Hooks.inherits("PATH".as_ref()) && !Environment::Hooks.inherits("PYTHONPATH".as_ref()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// For commands of the agent: no secrets, and no variable that makes another program run first.
    Commands,
    /// For hooks and other programs that decide: as for commands, and no variable that makes an interpreter run or import other code.
    Hooks,
    /// For third-party programs: only the basic variables, such as `HOME` and `PATH`.
    Basic,
}

impl Environment {
    /// Returns `true` if a program inherits a variable of that name.
    pub fn inherits(self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        // Names are not case-sensitive on Windows. The lists are in capitals.
        let name = if cfg!(windows) { name.to_uppercase().into() } else { name };
        let is_harmless = || !is_secret_variable(&name) && !is_listed(&name, &NEVER_INHERITED);
        match self {
            Self::Commands => is_harmless(),
            Self::Hooks => is_harmless() && !is_listed(&name, &NOT_INHERITED_BY_HOOKS),
            Self::Basic => is_listed(&name, BASIC_VARIABLES),
        }
    }

    /// Returns the inherited variables.
    pub(crate) fn inherited(self) -> impl Iterator<Item = (OsString, OsString)> {
        std::env::vars_os().filter(move |(name, _)| self.inherits(name))
    }

    /// Returns the names of the variables that are not inherited.
    pub(crate) fn removed(self) -> impl Iterator<Item = OsString> {
        std::env::vars_os().map(|(name, _)| name).filter(move |name| !self.inherits(name))
    }
}

/// Returns `true` if the name of a variable looks like that of a secret.
pub fn is_secret_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|secret| upper.contains(secret))
}

/// Returns `true` if the loader obeys the variable, so that a launcher must not see it.
pub(crate) fn is_for_loader(name: &OsStr) -> bool {
    is_listed(&name.to_string_lossy(), &NEVER_INHERITED[..4])
}

fn is_listed(name: &str, list: &[&str]) -> bool {
    list.iter().any(|listed| match listed.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *listed,
    })
}
