//! Exemptions for destructive commands, which depend on the files.

use super::command::Command;
use super::effects::Exemption;
use super::git;
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::writes;

/// Leftovers of programs, as patterns for `find -name`.
const LITTER: &[&str] = &[
    "*.pyc",
    "*.pyo",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    ".DS_Store",
    "*.o",
    "*.obj",
    "*.class",
    "*.log",
    "*.tmp",
    "*.temp",
    "*.bak",
    "*.orig",
    "*.swp",
    "*.swo",
    "*~",
    "*.egg-info",
    "*.gcda",
    "Thumbs.db",
];

/// Modes that keep the owner's permissions.
const MODES: &[&str] = &["644", "755", "775", "700", "750", "600", "664", "660", "0755", "0644"];

/// Returns the exemption for a destructive command.
pub(super) fn for_command(name: &str, command: &Command, arguments: &Arguments, walker: &Walker) -> Exemption {
    match name {
        "rm" => {
            let files = walker.file_references(arguments.operands());
            let is_found = |word: &Word| matches!(word.raw.as_str(), "{}" | "…") || walker.listing(word).is_some();
            if arguments.may_have("", &["no-preserve-root"]) || arguments.operands().count() == 0 {
                return Exemption::Never;
            }
            let recursive = arguments.may_have("rR", &["recursive"]);
            let finds = arguments.operands().any(is_found);
            let is_litter = |word: &Word| is_found(word) && walker.listing(word).is_none();
            let is_inside = if finds { walker.finds_litter && arguments.operands().all(is_litter) } else { !recursive };
            if is_inside { Exemption::Inside(files) } else { Exemption::Outputs(files) }
        }
        "find" => {
            let files = walker.file_references(find_starts(command).iter());
            if is_litter(command) { Exemption::Inside(files) } else { Exemption::Outputs(files) }
        }
        "mv" if !arguments.operands().any(|word| matches!(word.raw.as_str(), "*" | "./*" | ".*" | "/dev/null")) => {
            Exemption::Workspace(walker.file_references(arguments.last()))
        }
        "dd" => Exemption::New(writes::dd_output(command).map(|word| walker.file_reference(&word)).collect()),
        "truncate" => Exemption::New(walker.file_references(arguments.operands())),
        "cp" | "install" | "ln" => Exemption::New(walker.file_references(arguments.last())),
        "sed" | "gsed" => {
            let scripts = usize::from(!arguments.may_have("ef", &["expression", "file"]));
            Exemption::New(walker.file_references(arguments.operands().skip(scripts)))
        }
        // A user, an attribute or a context among the operands counts as a file in the working folder.
        "setfacl" | "chattr" | "chcon" | "setfattr" => {
            Exemption::Workspace(walker.file_references(arguments.operands()))
        }
        "chmod" => {
            let mode = arguments.operands().next().and_then(Word::literal).unwrap_or_default();
            let is_kind = mode.contains('+') && !mode.contains(['-', '=']) || MODES.contains(&mode);
            if is_kind {
                Exemption::Inside(walker.file_references(arguments.operands().skip(1)))
            } else {
                Exemption::Never
            }
        }
        // A program that is stopped by name can be started again; its saved files remain.
        "pkill" | "killall" if stops_named(arguments) => Exemption::Inside(Vec::new()),
        "git" if git::keeps_work(command) => Exemption::Inside(Vec::new()),
        _ => Exemption::Never,
    }
}

fn stops_named(arguments: &Arguments) -> bool {
    const SYSTEM: &[&str] = &[
        "init",
        "systemd",
        "sshd",
        "launchd",
        "dbus",
        "Xorg",
        "gnome",
        "kernel",
        "loginwindow",
        "bash",
        "zsh",
        "login",
    ];
    let operands: Vec<Option<&str>> = arguments.operands().map(Word::literal).collect();
    let is_name = |text: &str| {
        text.chars().filter(|c| c.is_ascii_alphanumeric()).count() > 2
            && !SYSTEM.iter().any(|name| text.starts_with(name))
    };
    let by_owner = arguments.may_have("uUGgtv", &["euid", "uid", "user", "inverse"]);
    !by_owner && !operands.is_empty() && operands.iter().all(|text| text.is_some_and(is_name))
}

/// Returns the starting points of `find`.
pub(super) fn find_starts(command: &Command) -> Vec<Word> {
    let is_expression = |word: &&Word| word.lead().starts_with('-') || matches!(word.literal(), Some("(" | "!"));
    let mut starts: Vec<Word> = command.arguments().iter().take_while(|word| !is_expression(word)).cloned().collect();
    if starts.is_empty() {
        starts.push(Word::known("."));
    }
    starts
}

/// Returns `true` if `find` matches only leftovers of programs, or empty folders.
pub(super) fn is_litter(command: &Command) -> bool {
    let words = command.arguments();
    let count = |names: &[&str]| words.iter().filter(|word| is_one(word, names)).count();
    let names = words.iter().zip(words.iter().skip(1)).filter(|(test, _)| is_one(test, &["-name", "-iname"]));
    let names: Vec<&Word> = names.map(|(_, name)| name).collect();
    if count(&["!", "-not", "-regex", "-path", ",", "-follow", "-L"]) > 0 {
        return false;
    }
    // With `-o`, each part needs a name.
    let is_named =
        !names.is_empty() && names.len() > count(&["-o", "-or"]) && names.iter().all(|name| is_one(name, LITTER));
    is_named || count(&["-empty"]) > 0 && count(&["-o", "-or"]) == 0
}

/// Returns the pattern for the names of the files that `find` finds, if there is exactly one.
pub(super) fn found_name(command: &Command) -> Option<String> {
    let words = command.arguments();
    let is_alternative = |word: &Word| is_one(word, &["-o", "-or", ",", "!", "-not"]);
    let names = words.iter().zip(words.iter().skip(1)).filter(|(test, _)| is_one(test, &["-name"]));
    let names: Vec<&Word> = names.map(|(_, name)| name).collect();
    match names.as_slice() {
        [name] if !words.iter().any(is_alternative) => name.literal().map(str::to_owned),
        _ => None,
    }
}

fn is_one(word: &Word, texts: &[&str]) -> bool {
    word.literal().is_some_and(|text| texts.contains(&text))
}

/// Returns `true` if the last part of a pattern matches only leftovers of programs.
pub(crate) fn is_litter_name(name: &str) -> bool {
    LITTER.contains(&name)
}

/// Returns `true` if a file has the name of a leftover.
pub(crate) fn is_litter_file(name: &str) -> bool {
    LITTER.iter().any(|pattern| pattern.strip_prefix('*').map_or(name == *pattern, |end| name.ends_with(end)))
}
