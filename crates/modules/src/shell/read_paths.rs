//! The files that a program reads, judged by its arguments.

use super::sed_edits;

/// Programs that read only the files that their arguments name, or nothing.
#[rustfmt::skip]
const READERS: [&str; 58] = [
    "ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "rg", "find", "fd", "tree", "stat", "file", "du", "sort", "uniq", "cut", "nl",
    "diff", "cmp", "pwd", "echo", "basename", "dirname", "true", "false", "test", "[", "cd", "git", "tr", "sed", "awk", "gawk", "mawk", "jq", "tac",
    "rev", "paste", "comm", "join", "fold", "expand", "unexpand", "od", "hexdump", "strings", "realpath", "readlink", "md5sum", "sha1sum",
    "sha256sum", "sha512sum", "b2sum", "cksum", "column", "zcat",
];

/// Programs that read no file, and report the state of the machine at most.
#[rustfmt::skip]
const FILELESS: [&str; 22] = [
    "sleep", "seq", "date", "uname", "nproc", "which", "type", "df", "free", "uptime", "id", "whoami", "groups", "hostname", "arch", "pgrep", "tty",
    ":", "expr", "printf", "exit", "numfmt",
];

/// Returns the arguments that may be paths, of a program that reads no other files; `None` for other programs and unknown arguments.
pub(super) fn read_paths(name: &str, arguments: &[Option<String>]) -> Option<Vec<String>> {
    let arguments: Vec<&str> = arguments.iter().map(Option::as_deref).collect::<Option<_>>()?;
    if FILELESS.contains(&name) || arguments == ["--version"] || name == "ps" && !shows_environment(&arguments) {
        return Some(Vec::new());
    }
    // The script of another `sed` may name files.
    let arguments = match (name, arguments.as_slice()) {
        ("sed", ["-n", script, files @ ..]) if is_line_range(script) => files.to_vec(),
        ("sed", arguments) => sed_edits::files_read(arguments)?,
        ("awk" | "gawk" | "mawk", arguments) => {
            program_files(arguments, &["-F", "-v"], &[], &["getline", "ENVIRON", "ARGV", "@"])?
        }
        ("jq", arguments) => program_files(
            arguments,
            &["--arg", "--argjson"],
            &JQ,
            &["env", "ENV", "import", "include", "input_filename"],
        )?,
        (_, arguments) => arguments.to_vec(),
    };
    // The shell expands `~` at the beginning of a word.
    let leaves =
        |text: &str| text.split('/').any(|part| part.ends_with("..")) || text.starts_with('~') || text.contains("=~");
    if !READERS.contains(&name) || arguments.iter().any(|argument| leaves(argument)) {
        return None;
    }
    let mut paths = Vec::new();
    // The pipe of another command, which is a part of its own.
    for argument in arguments.into_iter().filter(|argument| *argument != "/dev/fd/*") {
        let value = argument.split_once('=').map(|(_, value)| value);
        let attached = argument.find('/').and_then(|at| argument.get(at..));
        let plain = Some(argument).filter(|argument| !argument.starts_with('-'));
        paths.extend([plain, value, attached.filter(|_| plain.is_none())].into_iter().flatten().map(str::to_owned));
    }
    paths.dedup();
    Some(paths)
}

/// Options of `jq` without a value.
#[rustfmt::skip]
const JQ: [&str; 24] = [
    "-r", "-c", "-s", "-S", "-e", "-n", "-j", "-a", "-M", "-C", "-R", "-rn", "-rs", "-rc", "-cr", "-sr", "-nr", "-er", "--raw-output",
    "--compact-output", "--slurp", "--sort-keys", "--exit-status", "--tab",
];

/// Returns the files behind the program text of `awk` or `jq`; `None` for an unknown option, or a text that may read other files.
fn program_files<'a>(arguments: &[&'a str], valued: &[&str], flags: &[&str], reads: &[&str]) -> Option<Vec<&'a str>> {
    let mut words = arguments.iter();
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        match *word {
            option if valued.contains(&option) => {
                words.next()?;
                if option.starts_with("--") {
                    words.next()?;
                }
            }
            // `-F,`
            option if valued.iter().any(|known| known.len() == 2 && option.starts_with(known)) => {}
            option if flags.contains(&option) => {}
            option if option.starts_with('-') && option.len() > 1 => return None,
            operand => operands.push(operand),
        }
    }
    let (text, files) = operands.split_first()?;
    (!reads.iter().any(|word| text.contains(word))).then(|| files.to_vec())
}

/// Returns `true` if `ps` may show the variables of programs, as `ps e` does.
fn shows_environment(arguments: &[&str]) -> bool {
    arguments.iter().any(|word| {
        !word.starts_with('-') && word.contains(['e', 'E']) || word.contains("env") || word.starts_with("-E")
    })
}

/// Returns `true` for a script of `sed` that prints lines: `10,20p`.
fn is_line_range(script: &str) -> bool {
    let lines = script.strip_suffix('p').unwrap_or_default();
    !lines.is_empty() && lines.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '$'))
}
