//! Programs that run another program, given in their arguments.

use super::command::{Command, Stdin, base_name};
use super::dialect::Dialect;
use super::effects::{ChangeExtent, FileReference};
use super::options::{Arguments, Syntax};
use super::shells::{is_shell, joined};
use super::walk::Walker;
use super::word::Word;
use super::{containers, exemption, packages, ssh, variables};

/// Syntax of a wrapper's own arguments before the command.
struct Wrapper {
    name: &'static str,
    /// The known options; with an unknown option, the effect is unknown.
    syntax: Syntax,
    /// Number of operands before the command.
    operands: usize,
    /// `true` if the wrapper has no effect of its own.
    transparent: bool,
}

const fn wrapper(name: &'static str, short: &'static str, long: &'static str) -> Wrapper {
    Wrapper { name, syntax: Syntax { short, long }, operands: 0, transparent: false }
}

const fn transparent(name: &'static str, short: &'static str, long: &'static str) -> Wrapper {
    Wrapper { transparent: true, ..wrapper(name, short, long) }
}

const WRAPPERS: [Wrapper; 49] = [
    transparent("env", "0a:C:iu:v", "argv0: chdir: debug help ignore-environment null unset: version"),
    wrapper(
        "sudo",
        "AbBC:D:Eg:h:HnNp:Pr:R:St:T:u:U:",
        "askpass background bell chdir: close-from: group: help host: non-interactive preserve-env:: preserve-groups prompt: \
         role: set-home stdin type: user: version",
    ),
    wrapper("doas", "C:Lnu:", ""),
    wrapper("nohup", "", "help version"),
    Wrapper {
        operands: 1,
        ..transparent("timeout", "fk:ps:v", "foreground help kill-after: preserve-status signal: verbose version")
    },
    transparent("nice", "0123456789n:", "adjustment: help version"),
    wrapper("ionice", "c:n:p:P:tu:", ""),
    transparent("time", "af:o:pqvV", "append format: help output: portability quiet verbose version"),
    transparent("command", "pvV", ""),
    transparent("builtin", "", ""),
    wrapper("exec", "a:cl", ""),
    transparent("stdbuf", "e:i:o:", "error: help input: output: version"),
    wrapper("setsid", "cfw", "ctty fork help version wait"),
    wrapper("busybox", "", ""),
    wrapper("toybox", "", ""),
    Wrapper { operands: 1, ..wrapper("taskset", "acp", "all-tasks cpu-list help pid version") },
    wrapper("strace", "a:b:cCdDe:E:fFhiI:kno:O:p:P:qrs:S:tTu:vVwxX:yYzZ", ""),
    wrapper("caffeinate", "dimst:uw:", ""),
    Wrapper {
        operands: 1,
        ..wrapper("flock", "eE:FnosuvVw:x", "close exclusive nonblock shared timeout: unlock verbose")
    },
    transparent("xargs", XARGS.short, XARGS.long),
    wrapper("linux32", SETARCH, SETARCH_LONG),
    wrapper("linux64", SETARCH, SETARCH_LONG),
    wrapper("i386", SETARCH, SETARCH_LONG),
    wrapper("x86_64", SETARCH, SETARCH_LONG),
    Wrapper { operands: 1, ..wrapper("setarch", SETARCH, SETARCH_LONG) },
    wrapper("prlimit", "hVc::d::e::f::i::l::m::n::o:p:q::r::s::t::u::v::x::y::", PRLIMIT),
    Wrapper {
        operands: 1,
        ..wrapper(
            "chrt",
            "abdfimoprRvP:D:T:",
            "all-tasks batch deadline fifo idle max other pid reset-on-fork rr verbose",
        )
    },
    wrapper("setpriv", "d", SETPRIV),
    wrapper("choom", "n:p:", "adjust: pid:"),
    wrapper("catchsegv", "", ""),
    wrapper("unbuffer", "p", ""),
    wrapper("fakeroot", "hi:l:s:ub:v", "lib: faked: unknown-is-real version help"),
    wrapper("dbus-run-session", "", "config-file: dbus-daemon:"),
    wrapper("dbus-launch", "", "exit-with-session sh-syntax auto-syntax"),
    wrapper("firejail", "", "quiet private private:: net: noprofile profile: seccomp caps.drop:"),
    wrapper("ltrace", "a:A:bcCD:e:fF:hiI:l:Ln:o:p:rs:StTu:Vw:x:X:", ""),
    Wrapper { operands: 1, ..wrapper("faketime", "fm", "exclude-monotonic") },
    wrapper("valgrind", "dhqv", VALGRIND),
    Wrapper { operands: 1, ..wrapper("perf", "adD:e:gp:F:r:o:st:v", "") },
    wrapper("pkexec", "", "user: disable-internal-agent"),
    wrapper("systemd-inhibit", "", "what: who: why: mode: list"),
    wrapper(
        "numactl",
        "aC:c:hiHi:lm:N:p:sS",
        "all cpunodebind: hardware interleave: localalloc membind: physcpubind: preferred: show",
    ),
    wrapper("chronic", "ve", ""),
    wrapper("ts", "irsm", ""),
    wrapper("proxychains", "qf:", ""),
    wrapper("torify", "", ""),
    wrapper("torsocks", "", ""),
    wrapper("cross-env", "", ""),
    wrapper("entr", "acdnprsxz", ""),
];

const SETARCH: &str = "3BFILRSTXZhVv";
const SETARCH_LONG: &str = "32bit fdpic-funcptrs short-inode addr-compat-layout addr-no-randomize whole-seconds sticky-timeouts \
                            read-implies-exec mmap-page-zero 3gb 4gb uname-2.6 verbose list help version show";
const PRLIMIT: &str = "help version as:: core:: cpu:: data:: fsize:: locks:: memlock:: msgqueue:: nice:: nofile:: nproc:: noheadings \
                       output: pid: raw resource rss:: rtprio:: rttime:: sigpending:: stack:: verbose";
const SETPRIV: &str = "dump nnp no-new-privs ambient-caps: inh-caps: bounding-set: ruid: euid: rgid: egid: reuid: regid: clear-groups \
                       keep-groups init-groups groups: list-caps securebits: pdeathsig: ptracer: selinux-label: \
                       apparmor-profile: landlock-access: reset-env help version";
const VALGRIND: &str = "tool: leak-check: show-leak-kinds: track-origins: error-exitcode: log-file: num-callers: suppressions: \
                        gen-suppressions: trace-children: quiet verbose help version";

const XARGS: Syntax = Syntax {
    short: "0a:d:e::E:i::I:J:l::L:n:opP:rR:s:tx",
    long: "arg-file: delimiter: eof:: exit help interactive max-args: max-chars: max-lines:: max-procs: no-run-if-empty null \
           open-tty replace:: verbose version",
};

pub(super) fn is_known(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name) || matches!(name, "find" | "watch" | "ssh" | "npx" | "sg")
}

/// Follows a program that runs another one; returns `false` for other commands.
pub(super) fn run(name: &str, command: &Command, walker: &mut Walker) -> bool {
    match name {
        "find" => find(command, walker),
        "watch" => watch(command, walker),
        "ssh" => ssh(command, walker),
        "docker" | "podman" if containers::runs(command) => containers::run(command, walker),
        "sg" => sg(command, walker),
        // `cmake -E rm`: its own versions of small programs.
        "cmake" if command.texts().next() == Some("-E") => {
            let names = [("remove_directory", "rm -r"), ("remove", "rm"), ("rename", "mv"), ("copy", "cp")];
            let tool = command.words.get(2).and_then(Word::literal).unwrap_or_default();
            let tool = names.iter().find(|(own, _)| *own == tool).map_or(tool, |(_, name)| name);
            let words = tool.split(' ').map(Word::known).chain(command.words.iter().skip(3).cloned()).collect();
            walker.taint();
            Command { words, stdin: command.stdin.clone() }.inspect(walker);
        }
        "fd" | "fdfind" => {
            fd(command, walker);
            return false;
        }
        // For any wrapper, a shell runs the text after this option.
        "entr" | "flock" if command.texts().any(|text| matches!(text, "-s" | "-c" | "--command")) => {
            walker.refuse(format!("`{name}` runs a text through a shell; write the command itself"));
        }
        _ if runner(name, command, walker) => {}
        _ => match WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            Some(wrapper) => follow(wrapper, command, walker),
            None => return false,
        },
    }
    true
}

/// Follows project managers that run programs, and downloaders of tools; returns `false` for other commands.
fn runner(name: &str, command: &Command, walker: &mut Walker) -> bool {
    if let Some(at) = packages::tool_at(name, &command.words) {
        walker.taint();
        tool(command, at, walker);
        return true;
    }
    let Some(at) = packages::run_at(name, &command.words) else { return false };
    walker.taint();
    let words = command.words.get(at..).unwrap_or_default().to_vec();
    let is_shell = matches!(words.as_slice(), [word] if word.literal().is_some_and(|name| is_shell(base_name(name))));
    if is_shell && !walker.is_fed() && matches!(command.stdin, Stdin::Inherited) {
        // A shell for the user, as in `docker exec -it web bash`.
        return true;
    }
    Command { words, stdin: command.stdin.clone() }.inspect(walker);
    true
}

/// Follows `npx` and similar programs: the tool must be common, or installed in the project.
fn tool(command: &Command, at: usize, walker: &mut Walker) {
    let before = command.words.get(..at).unwrap_or_default();
    let packages = before.iter().zip(before.iter().skip(1));
    let packages = packages.filter(|(option, _)| matches!(option.lead(), "-p" | "--package" | "--from" | "--with"));
    let words = command.words.get(at..).unwrap_or_default();
    for word in packages.map(|(_, package)| package).chain(words.first()) {
        let Some(package) = word.literal() else {
            return walker.refuse("the downloaded program is unknown until run time; write its name");
        };
        let package = packages::without_version(package);
        if !packages::COMMON.contains(&package) {
            let name = package.rsplit('/').next().unwrap_or(package);
            let file = walker.file_reference(&Word::known(&format!("node_modules/.bin/{name}")));
            walker.effects.tools.push(FileReference { written: package.to_owned(), ..file });
        }
    }
    let name = words.first().and_then(Word::literal).map(packages::without_version).unwrap_or_default();
    let words = std::iter::once(Word::known(name)).chain(words.iter().skip(1).cloned()).collect();
    Command { words, stdin: command.stdin.clone() }.inspect(walker);
}

/// Follows `fd … -x command`, which runs the command for each match.
fn fd(command: &Command, walker: &mut Walker) {
    let is_action = |word: &Word| matches!(word.literal(), Some("-x" | "-X" | "--exec" | "--exec-batch"));
    let Some(at) = command.words.iter().position(is_action) else { return };
    let rest = command.words.get(at + 1..).unwrap_or_default();
    let words = rest.iter().take_while(|word| word.literal() != Some(";"));
    let replaced = words.map(|word| if word.raw.contains('{') { Word::unknown("…") } else { word.clone() });
    let mut words: Vec<Word> = replaced.collect();
    words.push(Word::unknown("…"));
    Command { words, stdin: command.stdin.clone() }.inspect(walker);
}

/// Follows `sg group -c command` and `sg group command`; the command is a text for a shell.
fn sg(command: &Command, walker: &mut Walker) {
    walker.taint();
    let text = command.arguments().iter().skip(1).find(|word| word.literal() != Some("-c"));
    match text.map(Word::literal) {
        Some(Some(text)) => walker.script(text, Dialect::Sh),
        _ => walker.refuse("the command of `sg` is unknown until run time; write the command itself"),
    }
}

fn follow(wrapper: &Wrapper, command: &Command, walker: &mut Walker) {
    let name = wrapper.name;
    if !wrapper.transparent {
        walker.taint();
    }
    let first = command.arguments().first().and_then(Word::literal);
    if name == "command" && matches!(first, Some("-v" | "-V")) {
        return;
    }
    // An option may change the folder of the command.
    let folders = walker.folders.clone();
    let Some(begin) = command_index(command, wrapper, walker) else {
        return walker.refuse(format!("`{name}` is not analysed with these options; run the command itself"));
    };
    note_outputs(wrapper, command.words.get(1..begin).unwrap_or_default(), walker);
    let mut words = command.words.get(begin..).unwrap_or_default().to_vec();
    if words.is_empty() {
        // `env` alone prints, `exec` alone redirects, `xargs` alone echoes.
        return;
    }
    if name == "xargs" {
        let options = Arguments::read(XARGS, command.words.get(1..begin).unwrap_or_default());
        replace(&mut words, &options);
        // The input is appended, unless another position is given; the last of these options applies.
        if !options.surely_has("iI", &["replace"]) || options.may_have("lLn", &["max-args", "max-lines"]) {
            words.push(Word::unknown("…"));
        }
    }
    let elevated = walker.elevated;
    walker.elevated |= matches!(name, "sudo" | "doas" | "pkexec");
    Command { words, stdin: command.stdin.clone() }.inspect(walker);
    walker.elevated = elevated;
    // `builtin cd` changes the folder of the shell itself.
    if !matches!(name, "builtin" | "command" | "time") {
        walker.folders = folders;
    }
}

/// Wrappers with options that name a file to write.
const OUTPUTS: [(&str, &str, &[&str]); 5] = [
    ("strace", "o", &["output"]),
    ("ltrace", "o", &["output"]),
    ("perf", "o", &["output"]),
    ("valgrind", "", &["log-file"]),
    ("fakeroot", "s", &[]),
];

/// Records the files that a wrapper writes itself.
fn note_outputs(wrapper: &Wrapper, own: &[Word], walker: &mut Walker) {
    let arguments = Arguments::read(wrapper.syntax, own);
    if wrapper.name == "flock" {
        let locks: Vec<Word> = arguments.operands().cloned().collect();
        for lock in walker.file_references(&locks) {
            walker.changes(lock, ChangeExtent::File);
        }
    }
    let Some((_, short, long)) = OUTPUTS.iter().find(|(program, ..)| *program == wrapper.name) else { return };
    for file in arguments.values(short, long) {
        match file.lead().strip_prefix(['|', '!']) {
            Some(program) => walker.script(program, Dialect::Sh),
            None => walker.write(file),
        }
    }
}

/// Returns the index of the command in the words of its wrapper; `None` if unknown.
fn command_index(command: &Command, wrapper: &Wrapper, walker: &mut Walker) -> Option<usize> {
    let assigns = matches!(wrapper.name, "env" | "sudo" | "doas" | "cross-env");
    let mut at = 1;
    let mut operands = wrapper.operands;
    let mut ended = false;
    while let Some(word) = command.words.get(at) {
        let is_option = word.lead().starts_with('-') && !ended;
        if assigns && is_assignment(word.lead()) && word.is_operand() {
            let name = word.lead().split('=').next().unwrap_or_default();
            walker.assigned(name);
            let value = word.literal().and_then(|text| text.get(name.len() + 1..));
            walker.settings.extend(value.map(str::to_owned));
            if variables::runs(name, value) {
                walker.refuse(format!("programs run the value of the variable `{name}`; leave the variable out"));
            }
        } else if is_option {
            if moves(wrapper, word.literal()?) {
                walker.moves();
            }
            match word.literal()? {
                "--" => ended = true,
                option if wrapper.syntax.takes_next(option)? => {
                    // An unknown value may expand to several words.
                    at += 1;
                    command.words.get(at)?.literal()?;
                }
                _ => {}
            }
            if wrapper.name == "time" && word.raw.contains('o') {
                walker.taint();
            }
        } else if operands > 0 {
            if !word.is_operand() || word.is_many() {
                return None;
            }
            operands -= 1;
        } else {
            return Some(at);
        }
        at += 1;
    }
    Some(at)
}

/// Returns `true` if an option changes the folder of the command.
fn moves(wrapper: &Wrapper, option: &str) -> bool {
    let letters = match wrapper.name {
        "env" => ['C'].as_slice(),
        "sudo" => &['D', 'R'],
        _ => return false,
    };
    if option.starts_with("--") {
        return option.starts_with("--chdir") || option.starts_with("--chroot");
    }
    // The rest after the first letter with a value is the value.
    let valued = option.chars().find(|letter| wrapper.syntax.takes_value(*letter));
    valued.is_some_and(|letter| letters.contains(&letter))
}

/// Applies `-I`: the input replaces a text in the command.
fn replace(words: &mut [Word], options: &Arguments) {
    let given = options.values("IiJ", &["replace"]).map(Word::lead);
    // The last of several applies; the others are replaced as well, if there are few.
    let mut texts: Vec<&str> = given.chain(["{}"]).filter(|text| !text.is_empty()).collect();
    texts.drain(..texts.len().saturating_sub(8));
    for word in words {
        if let Some(text) = texts.iter().find(|text| word.raw.contains(*text) || word.lead().contains(*text)) {
            *word = Word::unknown(&word.raw.replace(text, "…"));
        }
    }
}

/// Returns `true` for a word with a `=`, which `env` reads as an assignment, whatever the name.
fn is_assignment(text: &str) -> bool {
    text.find('=').is_some_and(|at| at > 0) && !text.starts_with('-')
}

/// Follows `find`, which only reads unless an action changes something.
fn find(command: &Command, walker: &mut Walker) {
    if !command.is_certain() {
        walker.taint();
    }
    let files = walker.file_references(exemption::find_starts(command).iter());
    let paths: Option<Vec<Vec<String>>> = files.into_iter().map(|file| file.paths).collect();
    let found = std::mem::replace(&mut walker.found, paths.map(|paths| paths.concat()));
    let litter = std::mem::replace(&mut walker.finds_litter, exemption::is_litter(command));
    let name = std::mem::replace(&mut walker.found_name, exemption::found_name(command));
    let folders = walker.folders.clone();
    let mut at = 1;
    while let Some(word) = command.words.get(at) {
        at += 1;
        match word.literal() {
            Some(action @ ("-exec" | "-execdir" | "-ok" | "-okdir")) => {
                if action.ends_with("dir") {
                    walker.moves();
                }
                let rest = command.words.get(at..).unwrap_or_default();
                // A plus ends the command only after the placeholder for the files.
                let text = |at: usize| rest.get(at).and_then(Word::literal);
                let ends = |at: &usize| {
                    text(*at) == Some(";") || text(*at) == Some("+") && *at > 0 && text(at - 1) == Some("{}")
                };
                let length = (0..rest.len()).find(ends).unwrap_or(rest.len());
                // Busybox ends the command at any plus.
                if rest.iter().take(length).any(|word| word.literal() == Some("+")) {
                    walker.taint();
                }
                let many = text(length) == Some("+");
                let words = rest.iter().take(length).map(|word| match word.literal() {
                    Some("{}") => Word::found_path(many),
                    Some(text) if text.contains("{}") => Word::unknown(&word.raw),
                    _ => word.clone(),
                });
                let words: Vec<_> = words.collect();
                at += length + 1;
                Command { words, stdin: command.stdin.clone() }.inspect(walker);
                walker.folders.clone_from(&folders);
            }
            // With paths from a file, a match may look like an option.
            Some("-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls" | "-files0-from") => walker.taint(),
            _ => {}
        }
    }
    (walker.found, walker.found_name, walker.finds_litter) = (found, name, litter);
}

/// Follows `watch`, which passes its arguments to `sh -c`.
fn watch(command: &Command, walker: &mut Walker) {
    let wrapper = wrapper("watch", "bcd::egn:pq:rtwx", "differences:: errexit interval: no-title precise");
    let begin = command_index(command, &wrapper, walker).unwrap_or(command.words.len());
    match joined(command.words.get(begin..).unwrap_or_default()) {
        Some(text) if !text.is_empty() => walker.script(&text, Dialect::Sh),
        _ => walker.refuse("the command of `watch` is unknown until run time; write the command itself"),
    }
}

/// Follows the command that runs on another machine.
fn ssh(command: &Command, walker: &mut Walker) {
    if command.texts().any(|text| matches!(text, "-V" | "-h" | "--version" | "--help"))
        && command.arguments().len() == 1
    {
        return;
    }
    let runs = |text: &str| {
        let text = text.to_ascii_lowercase();
        ["proxycommand", "localcommand", "knownhostscommand", "proxyusefdpass", "match", "include"]
            .iter()
            .any(|o| text.contains(o))
    };
    if command.texts().any(runs) {
        walker.sends("sends data or changes something elsewhere", &command.source_text());
        return walker.refuse("`ssh` runs a program that its options name; leave them out");
    }
    let syntax = "46aAb:B:c:CD:e:E:fF:gGi:I:J:kKl:L:m:MnNo:O:p:P:qQ:R:sS:tTvVw:W:xXyY";
    let wrapper = Wrapper { operands: 1, ..wrapper("ssh", syntax, "") };
    let Some(begin) = command_index(command, &wrapper, walker) else {
        walker.sends("sends data or changes something elsewhere", &command.source_text());
        return walker.refuse("the command of `ssh` is unknown until run time; write the command itself");
    };
    ssh::follow(command, begin, walker);
}
