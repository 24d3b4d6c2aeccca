//! Shells, and builtins that run text.

use super::builtins;
use super::command::{Command, Stdin};
use super::dialect::Dialect;
use super::walk::Walker;
use super::word::Word;

const SHELLS: [&str; 12] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "pwsh"];

/// Builtins and programs that redefine names or run unknown code.
const OPAQUE: [&str; 31] = [
    "source",
    ".",
    "alias",
    "unalias",
    "trap",
    "coproc",
    "enable",
    "bind",
    "complete",
    "compgen",
    "hash",
    "mapfile",
    "readarray",
    "fc",
    "su",
    "runuser",
    "at",
    "batch",
    "parallel",
    "script",
    "expect",
    "screen",
    "tmux",
    "sudoedit",
    "visudo",
    "entr",
    "chroot",
    "unshare",
    "nsenter",
    "systemd-run",
    "start-stop-daemon",
];

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Returns `true` if `name` runs or redefines text in its own way.
pub(super) fn is_known(name: &str) -> bool {
    SHELLS.contains(&name) || OPAQUE.contains(&name) || name == "eval"
}

/// Follows shells and `eval`; returns `false` for other commands.
pub(super) fn run(name: &str, command: &Command, walker: &mut Walker) -> bool {
    if SHELLS.contains(&name) {
        shell(name, command, walker);
    } else if name == "eval" {
        match joined(command.arguments()) {
            Some(text) => walker.same_shell(&text),
            None if matches!(command.arguments(), [word] if is_known_setup(&word.raw)) => walker.taint(),
            None => {
                if walker.fetched_in_words {
                    walker.runs_download();
                }
                walker.refuse("`eval` runs text that is unknown until run time; write the command itself");
            }
        }
    } else if let "source" | "." = name
        && let Some(file) = command.arguments().first()
    {
        walker.runs_script(name, file);
    } else if builtins::run(name, command, walker) {
    } else if OPAQUE.contains(&name) {
        walker.refuse(format!("what `{name}` runs is not analysed; run the command itself"));
    } else {
        return false;
    }
    true
}

/// Returns `true` if a word for `eval` is the output of a well-known program that sets up a shell.
fn is_known_setup(raw: &str) -> bool {
    const PROGRAMS: [&str; 14] = [
        "ssh-agent",
        "direnv hook",
        "brew shellenv",
        "/opt/homebrew/bin/brew shellenv",
        "pyenv init",
        "rbenv init",
        "fnm env",
        "starship init",
        "conda shell.bash hook",
        "zoxide init",
        "mise activate",
        "minikube docker-env",
        "opam env",
        "dircolors",
    ];
    let inner = raw.trim_matches('"').strip_prefix("$(").and_then(|raw| raw.strip_suffix(')'));
    inner.is_some_and(|inner| {
        !inner.contains([';', '|', '&', '$', '`', '(', '<', '>', '\n', '/'])
            && PROGRAMS.iter().any(|program| inner.starts_with(program))
    })
}

/// Returns the words as a text for a shell, if all are known.
pub(super) fn joined(words: &[Word]) -> Option<String> {
    words.iter().map(Word::literal).collect::<Option<Vec<_>>>().map(|texts| texts.join(" "))
}

fn shell(name: &str, command: &Command, walker: &mut Walker) {
    if matches!(name, "fish" | "csh" | "tcsh" | "pwsh") {
        return walker.refuse(format!("the language of `{name}` is not analysed; use `bash -c`"));
    }
    // Their grammars differ: a pattern of zsh can run commands.
    if !matches!(name, "sh" | "bash" | "dash" | "ash") {
        walker.taint();
    }
    let mut dialect = if matches!(name, "sh" | "dash" | "ash") { Dialect::Sh } else { Dialect::Bash };
    let (mut reads_text, mut reads_input, mut ended) = (false, false, false);
    let mut arguments = command.arguments().iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.literal() else {
            if walker.fetched_in_words {
                walker.runs_download();
            }
            return walker
                .refuse(format!("`{name}` runs text that is unknown until run time; write the command itself"));
        };
        match text {
            "--version" => return,
            "--norc" | "--noprofile" => {}
            "--posix" => dialect = Dialect::Sh,
            "-" | "--" if ended => return walker.refuse(format!("`{name}` runs the file `{text}`")),
            "-" | "--" => ended = true,
            "-o" | "+o" if !ended => {
                walker.taint();
                arguments.next();
            }
            "-s" if !ended => reads_input = true,
            _ if !ended && text.starts_with("--") => {
                return walker.refuse(format!("`{name}` with the option `{text}` is not analysed; leave it out"));
            }
            _ if !ended && text.starts_with(['-', '+']) && text.len() > 1 => {
                // Login and interactive shells run files first.
                if text.contains(|c: char| !matches!(c, '-' | 'c' | 'e' | 'u' | 'x' | 'v' | 'f')) {
                    walker.taint();
                }
                if text.contains(['o', 'O', 's']) {
                    return walker
                        .refuse(format!("`{name}` with the options `{text}` is not analysed; use `-c` alone"));
                }
                reads_text |= text.starts_with('-') && text.contains('c');
            }
            _ if reads_text => return walker.script(text, dialect),
            // The following words are the parameters of the script.
            _ if reads_input => break,
            _ => return walker.runs_script(name, word),
        }
    }
    match &command.stdin {
        Stdin::Text(text) if !reads_text => {
            // The commands share this input, so a line may end in the middle of an apparent command.
            if text.trim_end().contains('\n') {
                walker.taint();
            }
            walker.script(text, dialect);
        }
        _ if command.arguments().is_empty() || !reads_text => walker.runs_input(name),
        _ => walker.refuse(format!("`{name}` runs its input; write the commands themselves")),
    }
}
