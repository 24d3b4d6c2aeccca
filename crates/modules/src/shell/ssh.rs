//! Commands on other machines that only read there.

use super::command::{Command, Stdin};
use super::dialect::Dialect;
use super::options::Arguments;
use super::shells::joined;
use super::walk::Walker;
use super::word::Word;
use super::{ShellCommand, readonly, services, shells, syntax, wrappers};

/// Programs that only report the state of a machine, with any arguments.
const TELLS: &[&str] = &[
    "ss",
    "netstat",
    "lsof",
    "vmstat",
    "iostat",
    "mpstat",
    "w",
    "who",
    "last",
    "lscpu",
    "lsblk",
    "lsb_release",
    "zcat",
    "zgrep",
    "less",
    "more",
    "env",
    "getent",
    "nvidia-smi",
    "ls",
    "pidof",
    "findmnt",
    "sar",
    "dig",
    "host",
    "nslookup",
    "set",
    "shopt",
    "ulimit",
    "top",
    "pstree",
    "hostnamectl",
    "timedatectl",
    "egrep",
    "test",
    "printf",
];

/// Programs with commands that only report the state of a machine.
const COMMANDS: &[(&str, &[&str])] = &[
    (
        "systemctl",
        &[
            "status",
            "is-active",
            "is-enabled",
            "is-failed",
            "list-units",
            "list-timers",
            "list-unit-files",
            "show",
            "cat",
        ],
    ),
    ("docker", DOCKER),
    ("podman", DOCKER),
    ("docker-compose", &["ps", "logs", "top", "images", "config", "version"]),
    ("git", &["status", "log", "diff", "show", "rev-parse", "describe", "branch", "ls-files"]),
    ("ip", &["a", "addr", "address", "r", "route", "link", "-br", "neigh"]),
    ("pm2", &["list", "ls", "status", "logs", "show", "describe", "jlist"]),
    ("supervisorctl", &["status"]),
    ("service", &["--status-all"]),
    ("nginx", &["-t", "-T", "-v", "-V"]),
    ("crontab", &["-l"]),
    ("journalctl", JOURNAL),
    ("dmesg", &["-T", "-H", "--ctime", "--level=err"]),
];
const DOCKER: &[&str] =
    &["ps", "logs", "images", "inspect", "stats", "version", "info", "top", "port", "diff", "history", "events"];
const JOURNAL: &[&str] =
    &["-u", "-n", "-f", "-xe", "-e", "-k", "-b", "--since", "--no-pager", "-fu", "--unit", "-p", "-r", "-t"];

/// Options of `journalctl` and `ip` that change something.
const CHANGES: &[&str] = &["--vacuum", "--rotate", "--flush", "--sync", "add", "del", "set", "replace", "--setup"];

/// Options of `ssh` that forward nothing and select no other configuration.
const PLAIN: &str = "46aBbcCeiIJklmnopqQtTvxyE";

/// Follows `ssh`: the remote command is analysed as if it ran here. It sends nothing if it only reads.
pub(super) fn follow(command: &Command, begin: usize, walker: &mut Walker) {
    let options = Arguments::read(syntax::for_program("ssh"), command.words.get(1..begin).unwrap_or_default());
    let text = match (joined(command.words.get(begin..).unwrap_or_default()), &command.stdin) {
        (Some(text), Stdin::Text(input)) if text.is_empty() => Some(input.clone()),
        (Some(text), Stdin::Inherited) if !walker.is_fed() => Some(text),
        (Some(text), _) => {
            walker.sends("sends data or changes something elsewhere", &command.source_text());
            Some(text)
        }
        (None, _) => None,
    };
    let Some(text) = text else {
        walker.sends("sends data or changes something elsewhere", &command.source_text());
        return walker.refuse("the command of `ssh` is unknown until run time; write the command itself");
    };
    let first = walker.analysis.commands.len();
    let (writes, losses) = (walker.analysis.writes.len(), walker.effects.losses.len());
    if !text.is_empty() {
        walker.script(&text, Dialect::Bash);
    }
    let commands = walker.analysis.commands.get(first..).unwrap_or_default().to_vec();
    let only_reads = !commands.is_empty()
        && options.has_only(PLAIN)
        && walker.analysis.writes.len() == writes
        && walker.effects.losses.len() == losses
        && commands.iter().all(|command| is_read(command, walker));
    if !only_reads {
        walker.sends("sends data or changes something elsewhere", &command.source_text());
    }
}

/// Returns `true` if a command only reads, judged by its words. Programs that run others are judged by those.
fn is_read(called: &ShellCommand, walker: &mut Walker) -> bool {
    let name = called.program.as_str();
    if readonly::is_reader(name) || TELLS.contains(&name) {
        return true;
    }
    if wrappers::is_known(name) || shells::is_shell(name) {
        return !matches!(name, "npx" | "ssh");
    }
    let words = std::iter::once(name).chain(called.arguments.iter().map(String::as_str)).map(Word::known).collect();
    let command = Command { words, stdin: Stdin::default() };
    let first = called.arguments.first().map(String::as_str);
    let first = if matches!((name, first), ("docker" | "podman", Some("compose" | "container" | "image" | "volume"))) {
        called.arguments.get(1).map(String::as_str).map(|verb| if verb == "ls" { "ps" } else { verb })
    } else {
        first
    };
    if let Some((_, commands)) = COMMANDS.iter().find(|(program, _)| *program == name) {
        let changes = |text: &String| CHANGES.iter().any(|change| text == change || text.starts_with("--vacuum"));
        return first.is_some_and(|first| commands.contains(&first)) && !called.arguments.iter().any(changes);
    }
    if !called.resolved {
        return false;
    }
    let arguments = Arguments::read(syntax::for_program(name), command.arguments());
    services::only_reads(name, &command) == Some(true) || readonly::only_reads(name, &command, &arguments, walker)
}
