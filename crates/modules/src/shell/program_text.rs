//! Programs in other languages: arguments of `python -c`, `awk`, `vim -c` and others.

use super::command::{Command, Stdin, base_name};
use super::dialect::Dialect;
use super::effects::Exemption;
use super::languages::{LANGUAGES, Language};
use super::walk::Walker;
use super::word::Word;
use super::{destructive_calls, emptying, python, scan};

/// Analyses the program given to an interpreter; returns `false` if the command is not an interpreter.
pub(super) fn inspect(name: &str, command: &Command, walker: &mut Walker) -> bool {
    let lower = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_one = |language: &&Language| language.programs.contains(&lower) || language.programs.contains(&name);
    let Some(language) = LANGUAGES.iter().find(is_one) else {
        return tool(name, command, walker);
    };
    let mut words = command.arguments().iter().peekable();
    let mut has_program = false;
    while let Some(word) = words.next() {
        let text = word.lead();
        if language.valued.contains(&text) {
            words.next();
            continue;
        }
        if language.other.contains(&text) {
            has_program = true;
            // Modules such as `timeit` take programs, too.
            let is_code = |word: &&Word| word.raw.contains([' ', '(']);
            words.by_ref().filter(is_code).for_each(|word| check(name, language, word.plain(), walker));
            break;
        }
        if text == "-" {
            break;
        }
        if let Some(option) = language.text.iter().find(|option| holds(text, option)) {
            has_program = true;
            let attached = text.get(option.len()..).unwrap_or_default().trim_start_matches('=');
            let is_group = !text.starts_with(option);
            if is_group || attached.is_empty() {
                if let Some(code) = words.next() {
                    judge(name, language, code, walker);
                }
            } else {
                judge(name, language, word, walker);
            }
        } else if !text.starts_with('-') && !has_program {
            // An editor receives its commands after the file.
            if lower == "emacs" {
                continue;
            }
            // `deno run FILE`
            if text == "run" && language.programs.contains(&"deno") && words.peek().is_some() {
                continue;
            }
            has_program = true;
            if walker.fetched_in_words && word.literal().is_none() {
                walker.runs_download();
            }
            if ["/dev/fd/", "/dev/stdin", "/proc/"].iter().any(|input| text.starts_with(input)) {
                walker.runs_input(name);
            }
            walker.runs_file(word, Some(name));
            // Scripts such as `manage.py shell -c` take programs, too.
            if words.by_ref().filter(|word| word.raw.contains('(')).any(|word| destructive_calls::deletes(word.plain()))
            {
                walker.destroys("is given a program text that deletes", name);
            }
            break;
        }
    }
    if !has_program && language.reads {
        match &command.stdin {
            Stdin::Text(text) => check_known(name, language, text, walker),
            Stdin::Inherited if !walker.is_fed() => {}
            _ => walker.runs_input(name),
        }
    }
    true
}

/// Returns `true` if an option, or the last option in a group, is followed by a program.
fn holds(text: &str, option: &str) -> bool {
    let is_group = |letter: char| {
        text.len() > 2
            && !text.starts_with("--")
            && text.starts_with('-')
            && text.ends_with(letter)
            && text.chars().skip(1).all(|c| c.is_ascii_alphanumeric())
    };
    match option.strip_prefix('-').filter(|_| option.len() == 2).and_then(|letter| letter.chars().next()) {
        Some(letter) => text.starts_with(option) || is_group(letter),
        None => text == option || text.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
    }
}

fn judge(name: &str, language: &Language, code: &Word, walker: &mut Walker) {
    match code.literal() {
        Some(text) => check_known(name, language, text, walker),
        None if code.lead().is_empty() && code.raw.trim_start_matches('"').starts_with(['$', '`']) => {
            if walker.fetched_in_words {
                walker.runs_download();
            }
            walker.refuse(format!("`{name}` runs a program text that is unknown until run time; write it out"));
        }
        None => check(name, language, &code.raw, walker),
    }
}

/// Refuses a known program if it runs programs or deletes files. Strings that Python only searches for or prints are ignored.
fn check_known(name: &str, language: &Language, text: &str, walker: &mut Walker) {
    let bare = language.programs.contains(&"python").then(|| python::without_strings(text)).flatten();
    let is_harmless = |bare: String| {
        let lower = bare.to_ascii_lowercase();
        let runs = language.runs.iter().any(|pattern| contains(&lower, pattern));
        !runs && !scan::deletes(&bare) && !destructive_calls::deletes(&bare) && !destructive_calls::empties_a_file(text)
    };
    if !bare.is_some_and(is_harmless) {
        check(name, language, text, walker);
    }
}

fn check(name: &str, language: &Language, text: &str, walker: &mut Walker) {
    let lower = text.to_ascii_lowercase();
    if scan::deletes(text) || destructive_calls::deletes(text) {
        walker.destroys("runs a program text that deletes", name);
    } else if destructive_calls::empties_a_file(text) {
        walker.destroys("runs a program text that empties a file", name);
    }
    if let Some(found) = language.runs.iter().find(|pattern| contains(&lower, pattern)) {
        let found = found.trim_matches(['(', '.', ' ']);
        walker.refuse(format!("`{name}` is given a program text with `{found}`, which runs programs or deletes files"));
    }
}

/// Returns `true` if a text contains a pattern; a pattern that begins with a letter must start a word.
fn contains(text: &str, pattern: &str) -> bool {
    let begins_word = pattern.starts_with(|c: char| c.is_ascii_alphabetic());
    let ends_word = pattern.ends_with(|c: char| c.is_ascii_alphabetic()) && !pattern.contains('.');
    text.match_indices(pattern).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + pattern.len()..).and_then(|after| after.chars().next());
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        !(begins_word && is_letter(before) || ends_word && is_letter(after))
    })
}

/// Handles programs with their own commands that run programs.
fn tool(name: &str, command: &Command, walker: &mut Walker) -> bool {
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => awk(name, command, walker),
        "sed" | "gsed" => sed(name, command, walker),
        "vim" | "vi" | "nvim" | "ex" | "view" | "gvim" | "ed" => editor(name, command, walker),
        "sqlite3" | "psql" | "mysql" | "mariadb" | "gdb" | "lldb" | "dc" | "ftp" | "lftp" => {
            let runs =
                ["\\!", ".shell", ".system", "shell ", "system ", "to program", "from program", "load_extension"];
            let found = texts(command).find_map(|text| {
                let lower = text.to_ascii_lowercase();
                let is_escape = lower.lines().any(|line| line.trim_start().starts_with('!'));
                is_escape.then_some("!").or_else(|| runs.iter().find(|run| lower.contains(**run)).copied())
            });
            if let Some(found) = found {
                walker.refuse(format!("`{name}` runs another program (`{}`)", found.trim()));
            }
        }
        "make" | "gmake" => {
            let evaluates = command.texts().any(|text| text.starts_with("--eval") || text.starts_with("SHELL="));
            let reads = command.texts().any(|text| matches!(text, "-f-" | "--file=-" | "--makefile=-" | "/dev/stdin"))
                || pairs(command)
                    .any(|(option, value)| matches!(option, "-f" | "--file" | "--makefile") && value == "-");
            let files = pairs(command).filter(|(option, _)| matches!(*option, "-f" | "--file" | "--makefile"));
            let files = files.map(|(_, file)| base_name(file));
            let names: Vec<&str> = ["Makefile", "makefile", "GNUmakefile"].into_iter().chain(files).collect();
            walker.runs_rules(&names);
            let words = command.arguments();
            let is_substituted = words.iter().zip(words.iter().skip(1)).any(|(option, file)| {
                matches!(option.literal(), Some("-f" | "--file" | "--makefile")) && file.literal().is_none()
            });
            if is_substituted {
                if walker.fetched_in_words {
                    walker.runs_download();
                }
                walker.refuse(format!("`{name}` runs rules from a file that is unknown until run time"));
            }
            let values = command.texts().filter_map(|text| text.split_once('=')).map(|(_, value)| value);
            if values.into_iter().any(scan::deletes) {
                walker.destroys("is given a command that deletes", &command.source_text());
            }
            if evaluates || reads {
                walker.refuse(format!("`{name}` runs rules that are not in a file; write them to one"));
            }
        }
        "npm" | "yarn" | "pnpm" | "bun" => {
            walker.runs_project_scripts(command);
            walker.runs_rules(&["package.json"]);
        }
        "just" => walker.runs_rules(&["justfile", "Justfile", ".justfile"]),
        "rake" => walker.runs_rules(&["Rakefile"]),
        "tar" | "split" | "sort" | "man" => filters(name, command, walker),
        "less" | "more" | "most" if command.texts().any(|text| text.starts_with('+') && text.contains(['!', '|'])) => {
            walker.refuse(format!("`{name}` runs another program; run that program separately"));
        }
        "gcc" | "g++" | "cc" | "c++" | "clang" if command.texts().any(|text| text == "-wrapper") => {
            walker.refuse(format!("`{name}` runs a program that its options name; leave them out"));
        }
        "zip" if command.texts().any(|text| text.starts_with("-TT") || text.starts_with("--unzip-c")) => {
            walker.refuse("`zip` runs a program that its options name; leave them out");
        }
        _ => return false,
    }
    true
}

const FILTERS: [(&str, &[&str]); 4] = [
    (
        "tar",
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "-I",
            "--info-script",
            "-F",
            "--rsh-command",
            "--new-volume-script",
        ],
    ),
    ("split", &["--filter"]),
    ("sort", &["--compress-program"]),
    ("man", &["-P", "--pager"]),
];

fn filters(name: &str, command: &Command, walker: &mut Walker) {
    let options = FILTERS.iter().find(|(program, _)| *program == name).map_or(&[] as &[&str], |(_, options)| options);
    let mut words = command.arguments().iter();
    while let Some(word) = words.next() {
        let text = word.lead();
        let (option, value) = text.split_once('=').unwrap_or((text, ""));
        let is_long = option.starts_with("--") && option.len() > 4;
        if !options.iter().any(|known| option == *known || is_long && known.starts_with(option)) {
            continue;
        }
        let value =
            if text.contains('=') { word.literal().map(|_| value) } else { words.next().and_then(Word::literal) };
        match value.map(|value| value.strip_prefix("exec=").unwrap_or(value)) {
            Some("" | "dot" | "echo") => {}
            // A plain program is a compressor.
            Some(value) if name == "sort" && !value.contains(' ') => {}
            Some(value) => walker.script(value, Dialect::Sh),
            None => walker.refuse(format!("`{name}` runs a command that is unknown until run time; write it out")),
        }
    }
}

/// Returns each known argument with the next one.
fn pairs(command: &Command) -> impl Iterator<Item = (&str, &str)> {
    let words = command.arguments();
    words.iter().zip(words.iter().skip(1)).filter_map(|(a, b)| Some((a.literal()?, b.literal()?)))
}

/// Returns the arguments as known or written, and the standard input if known.
fn texts(command: &Command) -> impl Iterator<Item = &str> {
    let input = match &command.stdin {
        Stdin::Text(text) => Some(text.as_str()),
        _ => None,
    };
    command.arguments().iter().map(Word::plain).chain(input)
}

/// Maximum number of pipes and redirections in an `awk` program.
const OPERATORS: usize = 256;

fn awk(name: &str, command: &Command, walker: &mut Walker) {
    for text in texts(command) {
        if text.matches(['|', '>']).count() > OPERATORS {
            return walker.refuse(format!("the program text of `{name}` is too complex; write it to a file"));
        }
        for (at, _) in text.match_indices("system") {
            let rest = text.get(at + "system".len()..).unwrap_or_default().trim_start();
            let Some(argument) = rest.strip_prefix('(') else { continue };
            match quoted(argument.trim_start()).filter(|(_, after)| after.trim_start().starts_with(')')) {
                Some((inner, _)) => walker.script(inner, Dialect::Sh),
                None => walker.refuse(format!("`{name}` runs a command that is unknown until run time; write it out")),
            }
        }
        for (at, operator) in text.match_indices(['|', '>']) {
            let rest = text.get(at + operator.len()..).unwrap_or_default().trim_start_matches(['>', '&']).trim_start();
            match (operator, quoted(rest)) {
                ("|", Some((inner, _))) => walker.script(inner, Dialect::Sh),
                (">", Some((file, _))) => writes_over(name, file, walker),
                _ => {}
            }
        }
        let is_unknown = |(at, _): (usize, &str)| {
            let before = text.get(..at).unwrap_or_default();
            let after = text.get(at + 1..).unwrap_or_default().trim_start_matches('&').trim_start();
            let statement = before.rsplit([';', '{', '}', '\n']).next().unwrap_or_default().trim_start();
            let is_or = before.ends_with('|') || after.starts_with('|');
            let prints = statement.starts_with("print") && !statement.contains('/') && !after.starts_with('"');
            !is_or && (prints || after.starts_with("getline") && !before.trim_end().ends_with('"'))
        };
        if text.match_indices('|').any(is_unknown) {
            walker.refuse(format!("`{name}` runs a command that is unknown until run time; write it out"));
        }
        if text.contains("getline") && text.contains('|') {
            for (at, _) in text.match_indices('"') {
                // `"command" | getline`
                if let Some((inner, after)) = text.get(at..).and_then(quoted)
                    && after.trim_start().starts_with('|')
                {
                    walker.script(inner, Dialect::Sh);
                    break;
                }
            }
        }
    }
}

/// Returns the leading quoted text without escapes, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"').filter(|(inner, _)| !inner.contains('\\'))
}

/// Records a file that a program overwrites.
fn writes_over(name: &str, file: &str, walker: &mut Walker) {
    let file = Word::known(file);
    walker.write(&file);
    let files = walker.file_references([&file]);
    walker.may_lose("writes over a file", &format!("{name} … {}", file.raw), Exemption::New(files));
}

/// Finds `sed` commands and flags that run programs and write files.
fn sed(name: &str, command: &Command, walker: &mut Walker) {
    for script in super::sed::scripts(command) {
        for part in super::sed::effects(script) {
            match part {
                super::sed::SedEffect::Writes(file) => writes_over(name, file, walker),
                super::sed::SedEffect::Runs("") => walker.refuse(format!("`{name}` runs its input as a command")),
                super::sed::SedEffect::Runs(text) => walker.script(text, Dialect::Sh),
                super::sed::SedEffect::Empties => {}
            }
        }
    }
}

/// Finds editor commands that begin with `!`, in options and in the standard input.
fn editor(name: &str, command: &Command, walker: &mut Walker) {
    let runs = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains('!') && !text.trim_end().ends_with("q!") && !text.trim_end().ends_with("wq!")
            || ["system(", "delete(", "shell", "python", "lua ", "terminal", "libcall"]
                .iter()
                .any(|call| text.contains(call))
    };
    let is_command = |option: &str| option.starts_with('-') && option.ends_with('c');
    let options = pairs(command)
        .filter(|(option, _)| matches!(*option, "--cmd" | "-S" | "-s") || is_command(option))
        .map(|(_, text)| text);
    let plus = command.texts().filter(|text| text.starts_with('+') || text.starts_with("-c"));
    let input = match &command.stdin {
        Stdin::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let texts: Vec<&str> = options.chain(plus).chain(input).collect();
    if texts.iter().any(|text| runs(text)) {
        walker.refuse(format!("`{name}` runs a program or deletes something; do that separately"));
    }
    if texts.iter().any(|text| emptying::clears_buffer(text)) {
        walker.destroys("deletes all lines of a file", &command.source_text());
    }
    let reads_commands = name == "ed" || name == "ex" && texts.is_empty();
    if reads_commands && (walker.is_fed() || matches!(command.stdin, Stdin::Unknown)) {
        walker.runs_input(name);
    }
}
