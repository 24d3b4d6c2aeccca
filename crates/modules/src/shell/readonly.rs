//! The programs that only read, and with which options.

use super::command::Command;
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::{destructive, network, scripts, shells, wrappers, writes};

/// Programs that only read, whatever their arguments are.
const ALWAYS: [&str; 66] = [
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

/// Programs that only read without certain options: short ones, and long ones.
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

/// Programs that only say which version they are. Not those that run, install or look for another version first, as `cargo`, `go`,
/// `npm` and `terraform` do.
const VERSIONED: [&str; 13] =
    ["node", "python", "python3", "pip", "java", "gcc", "clang", "make", "cmake", "docker", "ruby", "perl", "git"];

/// Variables that change how text looks, and nothing else.
const HARMLESS: [&str; 7] = ["LANG", "TZ", "NO_COLOR", "COLUMNS", "LINES", "TERM", "REPLY"];

/// Whether it is proven that the command only reads. What a declaration assigns is told to the walker.
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
        "sed" => texts.is_some() && scripts::sed_only_reads(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => scripts::awk_only_reads(command),
        "read" => texts.is_some_and(|texts| texts.iter().all(|text| *text == "-r" || is_harmless_variable(text))),
        "export" | "declare" | "local" | "typeset" | "readonly" => {
            for word in command.arguments() {
                walker.assigned(word.lead().split('=').next().unwrap_or_default());
            }
            // A name that is not known may have a subscript, and a value in brackets is expanded once more.
            texts.is_some_and(|texts| !texts.iter().any(|text| text.contains(['(', '['])))
        }
        _ => false,
    }
}

/// Whether `printf` assigns to no variable, as it does with `-v` and, in bash, with `%n`.
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

/// Whether a builtin takes its arguments for names of variables with subscripts, or for arithmetic.
pub(super) fn evaluates(name: &str, command: &Command, arguments: &Arguments) -> bool {
    const NAMES: [&str; 9] = ["export", "declare", "local", "typeset", "readonly", "read", "unset", "let", "wait"];
    NAMES.contains(&name) && command.arguments().iter().any(Word::hides_command)
        || matches!(name, "test" | "[") && tests_names(command)
        || name == "printf" && arguments.may_have("v", &[])
}

/// Whether `test` may take an argument for the name of a variable. Nothing ends its options.
fn tests_names(command: &Command) -> bool {
    command.arguments().iter().any(|word| word.may_be(&["-v", "-R"]))
}

/// Whether the program of this name takes its arguments for text or files that it reads.
pub(super) fn is_reader(name: &str) -> bool {
    ALWAYS.contains(&name) || WITHOUT.iter().any(|(program, ..)| *program == name)
}

/// Whether a program of this name is known to do something, so that a function of that name would mislead.
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

/// Whether no program behaves differently when this variable has another value. Programs ask for names in capitals.
pub(super) fn is_harmless_variable(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    HARMLESS.contains(&name)
        || name.starts_with("LC_")
        || !name.is_empty() && name.bytes().all(plain) && !name.ends_with("_proxy") && name.as_bytes()[0] != b'_'
}
