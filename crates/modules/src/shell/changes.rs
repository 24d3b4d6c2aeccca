//! Changes of files by known programs, and the programs whose changes are unknown.

use super::command::{Command, Stdin, base_name};
use super::effects::{ChangeExtent, FileReference, ProgramRun};
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::{destructive, downloads, exemption, readers, shells, writes};

/// Formatters: program, words of which one must be given, and the files that are changed.
const FORMATTERS: &[(&str, &[&str], &str)] = &[
    ("autoflake", &["-i", "--in-place"], "*.py"),
    ("autopep8", &["-i", "--in-place"], "*.py"),
    ("biome", &["--write", "--fix", "--apply"], "*"),
    ("black", &[], "*.py"),
    ("cargo", &["fmt", "fix"], "*.rs"),
    ("clang-format", &["-i"], "*"),
    ("codespell", &["-w", "--write-changes"], "*"),
    ("dprint", &["fmt"], "*"),
    ("eslint", &["--fix"], "*"),
    ("go", &["fmt", "fix"], "*.go"),
    ("gofmt", &["-w"], "*.go"),
    ("goimports", &["-w"], "*.go"),
    ("isort", &[], "*.py"),
    ("markdownlint", &["--fix"], "*.md"),
    ("prettier", &["--write", "-w"], "*"),
    ("rubocop", &["-a", "-A", "--autocorrect"], "*.rb"),
    ("ruff", &["format", "--fix"], "*.py"),
    ("rustfmt", &[], "*.rs"),
    ("shfmt", &["-w"], "*"),
    ("stylelint", &["--fix"], "*"),
    ("terraform", &["fmt"], "*.tf"),
    ("tofu", &["fmt"], "*.tf"),
];

/// Words with which a program only compares.
const COMPARES: &[&str] = &["-check", "--check", "--diff", "--dry-run", "-l", "--list-different"];

/// Records changes that affect more than the operands.
pub(super) fn note(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    let here = || vec![Word::known(".")];
    let folders = |short: &str, long: &[&str]| {
        let folders: Vec<Word> = arguments.values(short, long).cloned().collect();
        if folders.is_empty() { here() } else { folders }
    };
    match name {
        "rm" if arguments.may_have("rR", &["recursive"]) => existing(arguments.operands(), walker),
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" if arguments.may_have("R", &["recursive"]) => {
            existing(arguments.operands(), walker);
        }
        // Other names of the same files.
        "ln" | "link" => {
            existing(arguments.operands(), walker);
            linked(arguments, walker);
        }
        "mv" => {
            existing(arguments.operands(), walker);
            copies(arguments, walker);
        }
        "cp" | "install" => copies(arguments, walker),
        "scp" | "rsync" => {
            let targets: Vec<&Word> = arguments.last().into_iter().filter(|word| is_local(word)).collect();
            if arguments.may_have("", &destructive::RSYNC_DELETES) {
                existing(targets.iter().copied(), walker);
            }
            match arguments.operands().all(is_local) {
                true if !targets.is_empty() => copies(arguments, walker),
                _ => anything(targets, walker),
            }
        }
        "tar" | "bsdtar" | "gtar" => {
            let arguments = writes::tar_arguments(command);
            if arguments.may_have("x", &["extract", "get"]) {
                let given: Vec<Word> = arguments.values("C", &["directory", "one-top-level"]).cloned().collect();
                anything(&if given.is_empty() { here() } else { given }, walker);
            }
        }
        "unzip" if !arguments.may_have("ltvpZz", &[]) => anything(&folders("d", &[]), walker),
        "7z" | "7za" | "unrar" | "ar"
            if command.texts().next().is_some_and(|action| action.starts_with(['x', 'e'])) =>
        {
            let folder = command.texts().filter_map(|text| text.strip_prefix("-o")).map(Word::known).next();
            anything(&folder.map_or_else(here, |folder| vec![folder]), walker);
        }
        "cpio" | "unsquashfs" | "jar" => anything(&here(), walker),
        "patch" => match arguments.operands().next() {
            Some(file) => walker.write(&file.clone()),
            None => anything(&folders("d", &["directory"]), walker),
        },
        "find" if command.texts().any(|text| text == "-delete") => {
            let pattern = format!("**/{}", exemption::found_name(command).unwrap_or_else(|| "*".to_owned()));
            found(&exemption::find_starts(command), &pattern, walker);
        }
        "curl" if arguments.may_have("OJ", &["remote-name", "remote-name-all", "remote-header-name"]) => {
            let folder = arguments.values("", &["output-dir"]).next().cloned().unwrap_or_else(|| Word::known("."));
            named_downloads(&folder, arguments.may_have("J", &["remote-header-name"]), arguments, walker);
        }
        "wget" if !arguments.surely_has("O", &["output-document"]) => {
            let folders = folders("P", &["directory-prefix"]);
            if arguments.may_have("rmxp", &["recursive", "mirror", "force-directories", "page-requisites"]) {
                anything(&folders, walker);
            } else {
                folders.iter().for_each(|folder| named_downloads(folder, false, arguments, walker));
            }
        }
        "az" if downloads::is_azure_download(command) => match downloads::azure_target(command) {
            Some(target) if !target.lead().contains("://") => anything([&target], walker),
            Some(_) => {}
            None => anything(&here(), walker),
        },
        "degit" | "tiged" => anything([&downloads::template_target(arguments)], walker),
        "python" | "python3" if command.texts().any(|text| matches!(text, "zipfile" | "tarfile")) => {
            if command.texts().any(|text| matches!(text, "-e" | "--extract")) {
                anything(&here(), walker);
            }
        }
        _ if copies_from_elsewhere(name, command) => {
            // After the source, everything that is no address may be the target.
            let words = command.arguments().iter().skip_while(|word| !is_copy(name, word.plain())).skip(1);
            let targets: Vec<&Word> =
                words.filter(|word| !word.lead().starts_with('-')).skip(1).filter(|word| is_local(word)).collect();
            // `svn export URL` without a target writes here.
            if targets.is_empty() && name == "svn" { anything(&here(), walker) } else { anything(targets, walker) }
        }
        _ if changes_tree(name, command) => {
            for file in walker.file_references(&here()) {
                walker.changes(file, ChangeExtent::Repository);
            }
        }
        _ => formats(name, command, walker),
    }
}

/// Programs that copy files from a container or a service, with their words for it.
const COPIERS: [(&str, &[&str]); 13] = [
    ("aws", &["cp", "mv", "sync"]),
    ("azcopy", &["copy", "cp", "sync"]),
    ("docker", &["cp"]),
    ("gcloud", &["cp", "mv", "rsync"]),
    ("gsutil", &["cp", "mv", "rsync"]),
    ("kubectl", &["cp"]),
    ("mc", &["cp", "mirror", "mv"]),
    ("nerdctl", &["cp"]),
    ("oc", &["cp", "rsync"]),
    ("podman", &["cp"]),
    ("rclone", &["bisync", "copy", "copyto", "move", "moveto", "sync"]),
    ("s5cmd", &["cp", "mv", "sync"]),
    ("svn", &["export"]),
];

/// Returns `true` unless a word is an address, with a colon before its first slash.
fn is_local(word: &Word) -> bool {
    !word.lead().split('/').next().unwrap_or_default().contains(':')
}

fn is_copy(name: &str, word: &str) -> bool {
    COPIERS.iter().any(|(program, words)| *program == name && words.contains(&word))
}

/// Returns `true` if a program copies files from a container or a service. The word for it comes before the addresses.
fn copies_from_elsewhere(name: &str, command: &Command) -> bool {
    command.texts().take(6).any(|text| is_copy(name, text))
}

/// Returns `true` if a program changes the working tree of a repository, as `git checkout` does.
fn changes_tree(name: &str, command: &Command) -> bool {
    const OTHERS: &[(&str, &[&str])] = &[
        ("gh", &["checkout", "sync"]),
        ("glab", &["checkout"]),
        (
            "hg",
            &[
                "checkout", "co", "graft", "import", "merge", "pull", "purge", "rebase", "revert", "shelve",
                "unshelve", "up", "update",
            ],
        ),
        ("hub", &["am", "checkout", "cherry-pick", "merge", "pull"]),
        ("jj", &["abandon", "edit", "new", "rebase", "restore", "squash", "undo"]),
        ("svn", &["checkout", "co", "merge", "patch", "revert", "sw", "switch", "up", "update"]),
    ];
    let words = OTHERS.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, words)| words);
    command.texts().take(3).any(|text| words.contains(&text))
}

fn existing<'a>(words: impl IntoIterator<Item = &'a Word>, walker: &mut Walker) {
    for file in walker.file_references(words) {
        walker.changes(file, ChangeExtent::Existing);
    }
}

fn anything<'a>(words: impl IntoIterator<Item = &'a Word>, walker: &mut Walker) {
    walker.taint();
    for file in walker.file_references(words) {
        walker.changes(file, ChangeExtent::Anything);
    }
}

fn found(starts: &[Word], pattern: &str, walker: &mut Walker) {
    for file in walker.file_references(starts) {
        walker.changes(FileReference { found: Some(pattern.to_owned()), ..file }, ChangeExtent::Existing);
    }
}

/// Records the targets of symbolic links, which count from the folder of the link.
fn linked(arguments: &Arguments, walker: &mut Walker) {
    let operands: Vec<&Word> = arguments.operands().collect();
    let [sources @ .., link] = operands.as_slice() else { return };
    for source in sources.iter().filter(|source| !source.lead().starts_with('/')) {
        for folder in [link.lead(), link.lead().rsplit_once('/').map_or(".", |(folder, _)| folder)] {
            existing([&Word::known(&format!("{folder}/{}", source.plain()))], walker);
        }
    }
}

/// Records copies of the operands: of each to the last one, and into it.
fn copies(arguments: &Arguments, walker: &mut Walker) {
    let operands: Vec<&Word> = arguments.operands().collect();
    let given: Vec<&Word> = arguments.values("t", &["target-directory"]).collect();
    let (sources, targets) = match (given.is_empty(), operands.as_slice()) {
        (true, [sources @ .., _]) => (sources, arguments.last()),
        _ => (operands.as_slice(), given),
    };
    for target in targets {
        let to = walker.file_reference(target);
        let is_folder = sources.len() > 1 || matches!(target.lead(), "." | ".." | "./") || target.lead().ends_with('/');
        for source in sources {
            let from = walker.file_reference(source);
            let names: Option<Vec<&str>> = from
                .paths
                .as_ref()
                .map(|paths| paths.iter().map(|path| base_name(path.trim_end_matches('/'))).collect());
            let into = |name: &&str| {
                let paths = to.paths.iter().flatten().map(|path| format!("{}/{name}", path.trim_end_matches('/')));
                paths.collect::<Vec<String>>()
            };
            let paths = names.filter(|_| to.paths.is_some()).map(|names| names.iter().flat_map(into).collect());
            let within = FileReference { paths, ..to.clone() };
            walker.changes(within, ChangeExtent::Copy(from.clone()));
            // With a slash at its end, or with `-T`, a folder may be copied without its name.
            if !is_folder || arguments.may_have("T", &["no-target-directory"]) || source.lead().ends_with(['/', '.']) {
                walker.changes(to.clone(), ChangeExtent::Copy(from));
            }
        }
    }
}

/// Records downloads to files named after their addresses.
fn named_downloads(folder: &Word, is_named_by_server: bool, arguments: &Arguments, walker: &mut Walker) {
    for address in arguments.operands().cloned().collect::<Vec<Word>>() {
        let address = address.literal().and_then(|text| text.split(['?', '#']).next());
        let name = address.filter(|_| !is_named_by_server).map_or("*", base_name);
        let name = if name.is_empty() { "index.html" } else { name };
        let file = walker.file_reference(folder);
        let paths = file.paths.map(|paths| paths.iter().map(|path| format!("{path}/{name}")).collect());
        walker.changes(FileReference { paths, ..file }, ChangeExtent::File);
    }
}

/// Records the files that a formatter changes.
fn formats(name: &str, command: &Command, walker: &mut Walker) {
    let Some((_, needed, pattern)) = FORMATTERS.iter().find(|(program, ..)| *program == name) else { return };
    let has = |words: &[&str]| command.texts().any(|text| words.contains(&text));
    if !needed.is_empty() && !has(needed) || has(COMPARES) {
        return;
    }
    let is_file =
        |word: &&Word| !word.lead().starts_with('-') && !word.literal().is_some_and(|text| needed.contains(&text));
    let mut files: Vec<Word> = command.arguments().iter().filter(is_file).cloned().collect();
    if files.is_empty() || matches!(name, "cargo" | "go") {
        files = vec![Word::known(".")];
    }
    found(&files, &format!("**/{pattern}"), walker);
}

/// Records the files and folders that variables name for a program, as in `COVERAGE_FILE=x pytest`.
fn note_settings(walker: &mut Walker) {
    for value in walker.settings.clone() {
        let files = [Word::known(&value), Word::known(&format!("{}/x", value.trim_end_matches('/')))];
        for file in walker.file_references(&files) {
            walker.changes(file, ChangeExtent::File);
        }
    }
}

/// Records a program of which only its name and its arguments are known.
pub(super) fn note_unknown(name: &str, command: &Command, walker: &mut Walker) {
    note_settings(walker);
    let only_reads = readers::only_reads_files(name, command);
    if readers::records_all(name, command) || only_reads && !readers::loads_code(name, command) {
        return;
    }
    let mut texts: Vec<String> = command.words.iter().map(|word| word.plain().to_owned()).collect();
    if let Stdin::Text(text) = &command.stdin {
        texts.push(text.clone());
    }
    let files = walker.file_references(&command.words);
    let folders = walker.folders.join(".");
    let run = ProgramRun { texts, files, folders };
    let runs = if only_reads { &mut walker.effects.code_loaders } else { &mut walker.effects.unknown_programs };
    runs.push(run);
}

/// Records a program that `uv` or `poetry` runs in another folder.
pub(super) fn note_folder(name: &str, command: &Command, walker: &mut Walker) {
    if !matches!(name, "uv" | "poetry") {
        return;
    }
    let words = command.arguments();
    let given = words.iter().zip(words.iter().skip(1).map(Some).chain([None])).find_map(|(word, next)| {
        match (word.literal(), word.lead().starts_with("--directory=")) {
            (Some("--directory"), _) => next.cloned(),
            (_, true) => Some(word.tail("--directory=".len())),
            _ => None,
        }
    });
    if let Some(folder) = given {
        let folders = walker.folders.clone();
        walker.enters(Some(&folder));
        note_unknown(name, command, walker);
        walker.folders = folders;
    }
}

/// Records a script that a shell runs. The text of `-c` is analysed instead.
pub(super) fn note_script(name: &str, command: &Command, walker: &mut Walker) {
    let is_text = |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains('c');
    if (shells::is_shell(name) || matches!(name, "source" | "."))
        && !command.texts().any(is_text)
        && !command.arguments().is_empty()
    {
        note_unknown(name, command, walker);
    }
}
