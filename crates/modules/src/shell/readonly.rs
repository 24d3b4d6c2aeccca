//! Programs that only read, and the options with which they do.

use super::command::Command;
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::{destructive, network, scripts, sed_edits, shells, wrappers, writes};

/// Programs that only read with any arguments.
const ALWAYS: [&str; 67] = [
    "cat",
    "head",
    "tail",
    "wc",
    "ls",
    "nl",
    "tac",
    "rev",
    "cut",
    "paste",
    "tr",
    "comm",
    "zcat",
    "join",
    "fold",
    "expand",
    "unexpand",
    "od",
    "hexdump",
    "strings",
    "stat",
    "du",
    "df",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "pwd",
    "echo",
    "true",
    "false",
    ":",
    "id",
    "whoami",
    "groups",
    "uname",
    "uptime",
    "nproc",
    "free",
    "ps",
    "pgrep",
    "printenv",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "b2sum",
    "cksum",
    "sum",
    "cmp",
    "grep",
    "egrep",
    "fgrep",
    "seq",
    "sleep",
    "tty",
    "which",
    "type",
    "jq",
    "tsort",
    "numfmt",
    "factor",
    "expr",
    "cd",
    "exit",
    "break",
    "continue",
];

/// Programs that only read without certain short and long options.
const WITHOUT: [(&str, &str, &[&str]); 8] = [
    ("sort", "oST", &["output", "compress-program", "temporary-directory", "buffer-size"]),
    ("rg", "z", &["pre", "pre-glob", "hostname-bin", "search-zip"]),
    ("fd", "xX", &["exec", "exec-batch"]),
    ("tree", "oR", &["output"]),
    ("file", "CzZ", &["compile", "uncompress", "uncompress-noreport"]),
    ("diff", "l", &["paginate"]),
    ("base64", "o", &["output"]),
    ("column", "", &[]),
];

/// Programs that only print their version. Programs that run, install or search for another version first, such as `cargo`,
/// `go`, `npm` and `terraform`, are excluded.
const VERSIONED: [&str; 13] =
    ["node", "python", "python3", "pip", "java", "gcc", "clang", "make", "cmake", "docker", "ruby", "perl", "git"];

/// Variables that only change the formatting of output.
const HARMLESS: [&str; 7] = ["LANG", "TZ", "NO_COLOR", "COLUMNS", "LINES", "TERM", "REPLY"];

/// Returns `true` if the command is proven to only read. Assignments of a declaration are reported to the walker.
pub(super) fn only_reads(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) -> bool {
    if ALWAYS.contains(&name) {
        return true;
    }
    if let Some((_, short, long)) = WITHOUT.iter().find(|(program, ..)| *program == name) {
        return command.is_certain() && !arguments.may_have(short, long);
    }
    let texts: Option<Vec<&str>> = command.arguments().iter().map(Word::literal).collect();
    if VERSIONED.contains(&name) {
        return texts.is_some_and(|texts| matches!(texts[..], ["--version"]));
    }
    match name {
        "date" => texts
            .is_some_and(|texts| texts.iter().all(|text| text.starts_with('+') || matches!(*text, "-u" | "-R" | "-I"))),
        // On macOS, `arch` runs a command.
        "hostname" | "arch" => command.arguments().is_empty(),
        "uniq" => command.is_certain() && arguments.operands().count() <= 1 && !arguments.operands().any(Word::is_many),
        "printf" => printf_only_prints(command),
        "test" | "[" => command.is_certain() && !tests_names(command),
        "sed" => texts.is_some_and(|texts| {
            let prints = !texts.contains(&"-i") && sed_edits::files_read(&texts).is_some();
            prints || scripts::sed_only_reads(arguments)
        }),
        "awk" | "gawk" | "mawk" | "nawk" => scripts::awk_only_reads(command),
        "read" => texts.is_some_and(|texts| texts.iter().all(|text| *text == "-r" || is_harmless_variable(text))),
        "export" | "declare" | "local" | "typeset" | "readonly" => {
            for word in command.arguments() {
                walker.assigned(word.lead().split('=').next().unwrap_or_default());
            }
            // An unknown name may have a subscript, and a value in brackets is expanded again.
            texts.is_some_and(|texts| !texts.iter().any(|text| text.contains(['(', '['])))
        }
        _ => false,
    }
}

/// Returns `true` if `printf` assigns to no variable, as `-v` and, in bash, `%n` do.
fn printf_only_prints(command: &Command) -> bool {
    let mut words = command.arguments().iter();
    let mut format = words.next();
    if format.and_then(Word::literal) == Some("--") {
        format = words.next();
    }
    let prints = |format: &str| {
        let is_flag = |c: char| {
            matches!(c, '0'..='9' | '-' | '+' | ' ' | '#' | '\'' | '.' | '*' | 'h' | 'l' | 'j' | 't' | 'z' | 'L')
        };
        format.split('%').skip(1).all(|rest| !rest.trim_start_matches(is_flag).starts_with('n'))
    };
    format.and_then(Word::literal).is_some_and(|format| !format.starts_with('-') && prints(format))
}

/// Returns `true` if a builtin reads its arguments as variable names with subscripts, or as arithmetic.
pub(super) fn evaluates(name: &str, command: &Command, arguments: &Arguments) -> bool {
    const NAMES: [&str; 9] = ["export", "declare", "local", "typeset", "readonly", "read", "unset", "let", "wait"];
    NAMES.contains(&name) && command.arguments().iter().any(Word::hides_command)
        || matches!(name, "test" | "[") && tests_names(command)
        || name == "printf" && arguments.may_have("v", &[])
}

/// Returns `true` if `test` may read an argument as the name of a variable. Nothing ends its options.
fn tests_names(command: &Command) -> bool {
    command.arguments().iter().any(|word| word.may_be(&["-v", "-R"]))
}

/// Returns `true` if the program reads its arguments as text or input files.
pub(super) fn is_reader(name: &str) -> bool {
    ALWAYS.contains(&name) || WITHOUT.iter().any(|(program, ..)| *program == name)
}

/// Returns `true` for a known program, so that a function of the same name would mislead.
pub(super) fn is_known(name: &str) -> bool {
    const OTHERS: [&str; 20] = [
        "git", "date", "hostname", "arch", "uniq", "printf", "test", "[", "sed", "awk", "gawk", "mawk", "nawk", "read",
        "export", "declare", "local", "typeset", "readonly", "builtin",
    ];
    ALWAYS.contains(&name)
        || WITHOUT.iter().any(|(program, ..)| *program == name)
        || VERSIONED.contains(&name)
        || OTHERS.contains(&name)
        || shells::is_known(name)
        || wrappers::is_known(name)
        || destructive::is_known(name)
        || network::is_known(name)
        || writes::is_known(name)
}

/// Returns `true` if no program behaves differently with another value of this variable. Environment variables of programs are
/// in capitals.
pub(super) fn is_harmless_variable(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    HARMLESS.contains(&name)
        || name.starts_with("LC_")
        || !name.is_empty() && name.bytes().all(plain) && !name.ends_with("_proxy") && name.as_bytes()[0] != b'_'
}
