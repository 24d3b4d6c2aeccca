//! Programs that run another program, given in their arguments.

use super::command::Command;
use super::shells::joined;
use super::walk::Walker;
use super::word::Word;

/// How a wrapper's own arguments are told from the command that it runs.
struct Wrapper {
    name: &'static str,
    /// Short options that take a value.
    valued: &'static str,
    /// Long options that take a value as a word of its own.
    valued_long: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
    /// Short options with which it does something else.
    refused: &'static str,
    /// Whether nothing but what it runs has an effect.
    transparent: bool,
}

const fn wrapper(name: &'static str, valued: &'static str, operands: usize, transparent: bool) -> Wrapper {
    Wrapper { name, valued, valued_long: &[], operands, refused: "", transparent }
}

/// Long options of wrappers that take no value and change nothing of importance.
const FLAGS: [&str; 16] = [
    "--foreground",
    "--preserve-status",
    "--verbose",
    "--ignore-environment",
    "--null",
    "--no-run-if-empty",
    "--interactive",
    "--non-interactive",
    "--preserve-env",
    "--stdin",
    "--wait",
    "--portability",
    "--exit",
    "--help",
    "--version",
    "--differences",
];

const WRAPPERS: [Wrapper; 20] = [
    Wrapper { valued_long: &["--unset", "--chdir"], refused: "S", ..wrapper("env", "uC", 0, true) },
    Wrapper {
        valued_long: &["--user", "--group", "--host", "--prompt", "--close-from", "--chdir", "--role", "--type"],
        refused: "sieKklv",
        ..wrapper("sudo", "ugpChTrtDRU", 0, false)
    },
    wrapper("doas", "uC", 0, false),
    wrapper("nohup", "", 0, false),
    Wrapper { valued_long: &["--signal", "--kill-after"], ..wrapper("timeout", "ks", 1, true) },
    Wrapper { valued_long: &["--adjustment"], ..wrapper("nice", "n", 0, true) },
    wrapper("ionice", "cnpPu", 0, false),
    wrapper("time", "fo", 0, true),
    wrapper("command", "", 0, true),
    wrapper("builtin", "", 0, true),
    wrapper("exec", "a", 0, false),
    Wrapper { valued_long: &["--input", "--output", "--error"], ..wrapper("stdbuf", "ioe", 0, true) },
    wrapper("setsid", "", 0, false),
    wrapper("busybox", "", 0, false),
    wrapper("toybox", "", 0, false),
    wrapper("taskset", "", 1, false),
    wrapper("strace", "eopsuEPSabIOX", 0, false),
    wrapper("caffeinate", "tw", 0, false),
    Wrapper { refused: "c", ..wrapper("flock", "wE", 1, false) },
    Wrapper {
        valued_long: &[
            "--max-args",
            "--max-procs",
            "--replace",
            "--delimiter",
            "--arg-file",
            "--max-lines",
            "--max-chars",
        ],
        ..wrapper("xargs", "IEdnPLsaJR", 0, false)
    },
];

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
        replace(&mut words, command.words.get(1..begin).unwrap_or_default());
        words.push(Word::unknown("…"));
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
                option if takes_next(wrapper, option)? => {
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
            if !word.is_operand() {
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
    option.chars().find(|letter| wrapper.valued.contains(*letter)).is_some_and(|letter| letters.contains(&letter))
}

/// Whether the word after an option is its value; `None` for options that are not known or run something themselves.
fn takes_next(wrapper: &Wrapper, option: &str) -> Option<bool> {
    if option.starts_with("--") {
        let (name, attached) = option.split_once('=').map_or((option, false), |(name, _)| (name, true));
        if wrapper.valued_long.contains(&name) {
            return Some(!attached);
        }
        return FLAGS.contains(&name).then_some(false);
    }
    let group = option.get(1..)?;
    for (position, letter) in group.char_indices() {
        if wrapper.refused.contains(letter) {
            return None;
        }
        if wrapper.valued.contains(letter) {
            return Some(position + letter.len_utf8() == group.len());
        }
    }
    Some(false)
}

/// With `-I`, what is read takes the place of a text in the command.
fn replace(words: &mut [Word], options: &[Word]) {
    let mut texts = vec!["{}".to_owned()];
    for (position, option) in options.iter().enumerate() {
        let Some(text) = option.literal() else { continue };
        for start in ["-I", "-i", "-J", "--replace="] {
            if let Some(attached) = text.strip_prefix(start) {
                let next = options.get(position + 1).and_then(Word::literal).unwrap_or_default();
                texts.push(if attached.is_empty() { next } else { attached }.to_owned());
            }
        }
    }
    for word in words {
        let replaced = |text: &String| {
            !text.is_empty() && (word.raw.contains(text.as_str()) || word.lead().contains(text.as_str()))
        };
        if texts.iter().any(replaced) {
            *word = Word::unknown(&word.raw);
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
                let words = rest.iter().take(length).map(|word| match word.literal() {
                    Some("{}") => Word::found(),
                    Some(text) if text.contains("{}") => Word::unknown(&word.raw),
                    _ => word.clone(),
                });
                let words: Vec<_> = words.collect();
                at += length + 1;
                Command { words, stdin: command.stdin.clone() }.inspect(walker);
            }
            Some("-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls") => walker.taint(),
            _ => {}
        }
    }
}

/// `watch` hands its arguments to `sh -c`.
fn watch(command: &Command, walker: &mut Walker) {
    let wrapper = wrapper("watch", "nq", 0, true);
    let begin = begin(command, &wrapper, walker).unwrap_or(command.words.len());
    match joined(command.words.get(begin..).unwrap_or_default()) {
        Some(text) if !text.is_empty() => walker.script(&text),
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
    let wrapper = wrapper("ssh", "bcDEeFIiJLlmOopQRSWw", 1, false);
    let Some(begin) = begin(command, &wrapper, walker) else {
        return walker.refuse("what `ssh` runs is not known before; write the command itself");
    };
    match joined(command.words.get(begin..).unwrap_or_default()) {
        Some(text) if text.is_empty() => {}
        Some(text) => walker.script(&text),
        None => walker.refuse("what `ssh` runs is not known before; write the command itself"),
    }
}
