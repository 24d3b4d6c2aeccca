//! Programs that run another program, given in their arguments.

use super::command::Command;
use super::dialect::Dialect;
use super::options::{Arguments, Syntax};
use super::shells::joined;
use super::walk::Walker;
use super::word::Word;

/// How a wrapper's own arguments are told from the command that it runs.
struct Wrapper {
    name: &'static str,
    /// Its options; with those that are missing it does something else, or nobody knows what it does.
    syntax: Syntax,
    /// Operands before the command.
    operands: usize,
    /// Whether nothing but what it runs has an effect.
    transparent: bool,
}

const fn wrapper(name: &'static str, short: &'static str, long: &'static str) -> Wrapper {
    Wrapper { name, syntax: Syntax { short, long }, operands: 0, transparent: false }
}

const fn transparent(name: &'static str, short: &'static str, long: &'static str) -> Wrapper {
    Wrapper { transparent: true, ..wrapper(name, short, long) }
}

const WRAPPERS: [Wrapper; 20] = [
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
    wrapper("xargs", XARGS.short, XARGS.long),
];

const XARGS: Syntax = Syntax {
    short: "0a:d:e::E:i::I:J:l::L:n:opP:rR:s:tx",
    long: "arg-file: delimiter: eof:: exit help interactive max-args: max-chars: max-lines:: max-procs: no-run-if-empty null \
           open-tty replace:: verbose version",
};

/// Whether `name` runs other programs.
pub(super) fn is_known(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name) || matches!(name, "find" | "watch" | "ssh")
}

/// Follows a program that runs another one; false when the command is none.
pub(super) fn run(name: &str, command: &Command, walker: &mut Walker) -> bool {
    match name {
        "find" => find(command, walker),
        "watch" => watch(command, walker),
        "ssh" => ssh(command, walker),
        _ => match WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            Some(wrapper) => follow(wrapper, command, walker),
            None => return false,
        },
    }
    true
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
    let Some(begin) = begin(command, wrapper, walker) else {
        return walker.refuse(format!("`{name}` is not analysed with these options; run the command itself"));
    };
    let mut words = command.words.get(begin..).unwrap_or_default().to_vec();
    if words.is_empty() {
        // `env` alone prints, `exec` alone redirects, `xargs` alone echoes.
        return;
    }
    if name == "xargs" {
        let options = Arguments::read(XARGS, command.words.get(1..begin).unwrap_or_default());
        replace(&mut words, &options);
        // What is read is put at the end, unless it has another place; of these options the last one counts.
        if !options.surely_has("iI", &["replace"]) || options.may_have("lLn", &["max-args", "max-lines"]) {
            words.push(Word::unknown("…"));
        }
    }
    Command { words, stdin: command.stdin.clone() }.inspect(walker);
}

/// Where the command begins in the words of its wrapper; `None` where that cannot be said.
fn begin(command: &Command, wrapper: &Wrapper, walker: &mut Walker) -> Option<usize> {
    let assigns = matches!(wrapper.name, "env" | "sudo" | "doas");
    let mut at = 1;
    let mut operands = wrapper.operands;
    let mut ended = false;
    while let Some(word) = command.words.get(at) {
        let is_option = word.lead().starts_with('-') && !ended;
        if assigns && is_assignment(word.lead()) && word.is_operand() {
            walker.assigned(word.lead().split('=').next().unwrap_or_default());
        } else if is_option {
            if moves(wrapper, word.literal()?) {
                walker.moves();
            }
            match word.literal()? {
                "--" => ended = true,
                option if wrapper.syntax.takes_next(option)? => {
                    // A value that is not known may become several words.
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

/// Whether an option has the command run in another folder.
fn moves(wrapper: &Wrapper, option: &str) -> bool {
    let letters = match wrapper.name {
        "env" => ['C'].as_slice(),
        "sudo" => &['D', 'R'],
        _ => return false,
    };
    if option.starts_with("--") {
        return option.starts_with("--chdir") || option.starts_with("--chroot");
    }
    // What follows the first letter that takes a value is the value.
    let valued = option.chars().find(|letter| wrapper.syntax.takes_value(*letter));
    valued.is_some_and(|letter| letters.contains(&letter))
}

/// With `-I`, what is read takes the place of a text in the command.
fn replace(words: &mut [Word], options: &Arguments) {
    let given = options.values("IiJ", &["replace"]).map(Word::lead);
    // Of several the last one counts; the others are replaced as well, as far as there are few.
    let mut texts: Vec<&str> = given.chain(["{}"]).filter(|text| !text.is_empty()).collect();
    texts.drain(..texts.len().saturating_sub(8));
    for word in words {
        if let Some(text) = texts.iter().find(|text| word.raw.contains(*text) || word.lead().contains(*text)) {
            *word = Word::unknown(&word.raw.replace(text, "…"));
        }
    }
}

/// `env` takes every word with a `=` for an assignment, whatever its name looks like.
fn is_assignment(text: &str) -> bool {
    text.find('=').is_some_and(|at| at > 0) && !text.starts_with('-')
}

/// `find` only reads, unless an action says otherwise.
fn find(command: &Command, walker: &mut Walker) {
    if !command.is_certain() {
        walker.taint();
    }
    let mut at = 1;
    while let Some(word) = command.words.get(at) {
        at += 1;
        match word.literal() {
            Some(action @ ("-exec" | "-execdir" | "-ok" | "-okdir")) => {
                if action.ends_with("dir") {
                    walker.moves();
                }
                let rest = command.words.get(at..).unwrap_or_default();
                // A plus ends the command only after the place for the files.
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
                    Some("{}") => Word::found(many),
                    Some(text) if text.contains("{}") => Word::unknown(&word.raw),
                    _ => word.clone(),
                });
                let words: Vec<_> = words.collect();
                at += length + 1;
                Command { words, stdin: command.stdin.clone() }.inspect(walker);
            }
            // With paths from a file, what is found may look like an option.
            Some("-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls" | "-files0-from") => walker.taint(),
            _ => {}
        }
    }
}

/// `watch` hands its arguments to `sh -c`.
fn watch(command: &Command, walker: &mut Walker) {
    let wrapper = wrapper("watch", "bcd::egn:pq:rtwx", "differences:: errexit interval: no-title precise");
    let begin = begin(command, &wrapper, walker).unwrap_or(command.words.len());
    match joined(command.words.get(begin..).unwrap_or_default()) {
        Some(text) if !text.is_empty() => walker.script(&text, Dialect::Sh),
        _ => walker.refuse("what `watch` runs is not known before; write the command itself"),
    }
}

/// What runs on another machine is looked at as if it ran here.
fn ssh(command: &Command, walker: &mut Walker) {
    walker.network();
    let runs = |text: &str| {
        let text = text.to_ascii_lowercase();
        ["proxycommand", "localcommand", "knownhostscommand", "proxyusefdpass", "match", "include"]
            .iter()
            .any(|o| text.contains(o))
    };
    if command.texts().any(runs) {
        return walker.refuse("`ssh` runs a program that its options name; leave them out");
    }
    let syntax = "46aAb:B:c:CD:e:E:fF:gGi:I:J:kKl:L:m:MnNo:O:p:P:qQ:R:sS:tTvVw:W:xXyY";
    let wrapper = Wrapper { operands: 1, ..wrapper("ssh", syntax, "") };
    let Some(begin) = begin(command, &wrapper, walker) else {
        return walker.refuse("what `ssh` runs is not known before; write the command itself");
    };
    match joined(command.words.get(begin..).unwrap_or_default()) {
        Some(text) if text.is_empty() => {}
        Some(text) => walker.script(&text, Dialect::Bash),
        None => walker.refuse("what `ssh` runs is not known before; write the command itself"),
    }
}
