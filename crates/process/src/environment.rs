//! Which variables of the environment programs inherit: the one list that everything which starts a program uses.

use std::ffi::OsStr;

/// Parts of names that are taken for secrets.
const SECRETS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "PRIVATE"];

/// Variables that make the loader, a shell or Node run code before the program that was asked for. A launcher would run it before it confines itself,
/// and a shell would run another command than the one that was analysed and shown.
///
/// A name that ends with `*` stands for all that begin with it.
const FOR_NOBODY: [&str; 12] = [
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

/// Variables that make interpreters and git run or import other code. Commands of the agent keep them, because a project may need its `PYTHONPATH`, and
/// a command could set them itself. A hook decides about commands, so what it runs must not depend on files that commands can write.
const NOT_FOR_HOOKS: [&str; 23] = [
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

/// `true` if commands of the agent inherit a variable of that name: it neither looks like a secret nor makes another program run first.
///
/// ```
/// use amplifier_process::is_inherited_by_commands;
///
/// assert!(is_inherited_by_commands("PATH".as_ref()) && is_inherited_by_commands("PYTHONPATH".as_ref()));
/// assert!(!is_inherited_by_commands("LD_PRELOAD".as_ref()) && !is_inherited_by_commands("GITHUB_TOKEN".as_ref()));
/// ```
pub fn is_inherited_by_commands(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let upper = name.to_ascii_uppercase();
    !SECRETS.iter().any(|secret| upper.contains(secret)) && !is_listed(&name, &FOR_NOBODY)
}

/// `true` if hooks inherit a variable of that name: commands do, and it does not make an interpreter run or import other code.
///
/// ```
/// use amplifier_process::is_inherited_by_hooks;
///
/// assert!(is_inherited_by_hooks("PATH".as_ref()) && !is_inherited_by_hooks("PYTHONPATH".as_ref()));
/// ```
pub fn is_inherited_by_hooks(name: &OsStr) -> bool {
    is_inherited_by_commands(name) && !is_listed(&name.to_string_lossy(), &NOT_FOR_HOOKS)
}

/// `true` if the loader obeys a variable of that name, so that a launcher must not see it.
pub fn is_for_loader(name: &OsStr) -> bool {
    is_listed(&name.to_string_lossy(), &FOR_NOBODY[..4])
}

fn is_listed(name: &str, list: &[&str]) -> bool {
    list.iter().any(|listed| match listed.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *listed,
    })
}
