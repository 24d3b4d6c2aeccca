//! Files that `git` changes in the working tree.

use super::command::Command;
use super::effects::{ChangeExtent, FileReference};
use super::git::{self, Call};
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::{syntax, verbs};

/// Commands that change no file of the working tree, besides those that only read.
const UNCHANGING: &[&str] = &[
    "add",
    "archive",
    "branch",
    "check-attr",
    "check-ignore",
    "cherry",
    "commit",
    "commit-graph",
    "commit-tree",
    "diff-index",
    "diff-tree",
    "fetch",
    "fetch-pack",
    "fsck",
    "gc",
    "hash-object",
    "help",
    "ls-remote",
    "maintenance",
    "merge-tree",
    "mktree",
    "notes",
    "pack-refs",
    "prune",
    "push",
    "range-diff",
    "reflog",
    "remote",
    "repack",
    "rerere",
    "send-email",
    "send-pack",
    "show-branch",
    "show-ref",
    "stage",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-tag",
    "version",
    "whatchanged",
    "write-tree",
];

/// Records the files of the working tree that a `git` command may change.
pub(super) fn note(command: &Command, walker: &mut Walker) {
    let words = command.arguments();
    let global = Arguments::read(syntax::for_program("git"), words);
    let begin = global.first_at().next().unwrap_or(words.len());
    let global = Arguments::read(syntax::for_program("git"), words.get(..begin).unwrap_or_default());
    let folders = walker.folders.clone();
    if global.may_have("C", &["git-dir", "work-tree"]) {
        let mut given = global.values("C", &["git-dir", "work-tree"]).cloned();
        let (first, second) = (given.next(), given.next());
        walker.enters(first.filter(|_| second.is_none() && !global.may_have("", &["git-dir", "work-tree"])).as_ref());
    }
    for call in git::calls(command) {
        note_call(&call, walker);
    }
    walker.folders = folders;
}

fn note_call(call: &Call, walker: &mut Walker) {
    let name = &*call.name;
    let has_operands = || call.arguments.operands().count() > 0;
    match name {
        "config" => configures(call, walker),
        _ if call.texts().any(|text| text == "--help") || git::READS.contains(&name) || UNCHANGING.contains(&name) => {}
        "stash" if call.surely_then(&["list", "show", "drop", "clear", "create", "store"]) => {}
        "worktree" if call.surely_then(&["list", "lock", "unlock", "prune", "repair"]) => {}
        "worktree" => {
            let is_plain = !call.words.iter().any(|word| word.lead().starts_with('-'));
            let operands: Vec<Word> = call.arguments.operands().skip(1).cloned().collect();
            let named = if is_plain { operands.get(..1).unwrap_or_default() } else { &operands };
            record_paths(named, &ChangeExtent::Anything, walker);
        }
        "init" => paths(call, ChangeExtent::Anything, walker),
        "bisect" if call.surely_then(&["log", "visualize", "view", "terms", "help"]) => {}
        // The archive is recorded with the outputs.
        "bundle" => {}
        "interpret-trailers" if !call.may_have("", &["in-place"]) => {}
        "interpret-trailers" => paths(call, ChangeExtent::File, walker),
        "lfs" if call.surely_then(&["track", "untrack"]) => {
            record(&[Word::known(".gitattributes")], ChangeExtent::File, walker);
        }
        "submodule" if call.surely_then(&["status", "summary"]) => {}
        "lfs" if call.surely_then(&["fetch", "push", "ls-files", "env", "status", "locks", "lock", "unlock"]) => {}
        "sparse-checkout" if call.surely_then(&["list"]) => {}
        "reset"
            if !call.may_have("", &["hard", "merge", "keep"]) && !call.words.iter().any(|word| !word.is_certain()) => {}
        "apply"
            if call.may_have("", &["check", "stat", "numstat", "summary", "cached"])
                && !call.may_have("", &["apply", "index"]) => {}
        "clean" if call.surely_has("n", "dry-run") => {}
        "clean" if !has_operands() => record(&[Word::known(".")], ChangeExtent::Existing, walker),
        "rm" if call.surely_has("", "cached") || call.surely_has("n", "dry-run") => {}
        "clean" | "rm" => paths(call, ChangeExtent::Existing, walker),
        "restore" if call.surely_has("S", "staged") && !call.may_have("W", &["worktree"]) => {}
        "restore" if !call.may_have("", &["pathspec-from-file"]) && has_operands() => {
            paths(call, ChangeExtent::Anything, walker);
        }
        "checkout" | "switch" => checkout(call, walker),
        "mv" => {
            paths(call, ChangeExtent::Existing, walker);
            paths(call, ChangeExtent::Anything, walker);
        }
        "clone" => match call.clone_folders() {
            Some(folders) => record(&folders, ChangeExtent::Anything, walker),
            None => {
                let unknown = FileReference { written: "…".to_owned(), paths: None, found: None };
                walker.changes(unknown, ChangeExtent::Anything);
            }
        },
        "format-patch" => record(&[Word::known("*.patch")], ChangeExtent::File, walker),
        "mergetool" | "difftool" if call.texts().any(|text| text == "--tool-help") => {}
        _ => record(&[Word::known(".")], ChangeExtent::Repository, walker),
    }
}

/// Records the file that `git config` writes instead of the settings of the repository.
fn configures(call: &Call, walker: &mut Walker) {
    const READS: &[&str] = &["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "get", "list"];
    if call.words.iter().any(|word| word.literal().is_some_and(|text| READS.contains(&text))) {
        return;
    }
    let mut words = call.words.iter();
    while let Some(word) = words.next() {
        let lead = word.lead();
        let at = ["--file=", "-f"].iter().find(|option| lead.starts_with(**option)).map(|option| option.len());
        match (word.literal(), at) {
            (Some("-f" | "--file"), _) => {
                record(words.as_slice().get(..1).unwrap_or_default(), ChangeExtent::File, walker)
            }
            (_, Some(at)) => record(&[word.tail(at)], ChangeExtent::File, walker),
            _ => {}
        }
    }
}

impl Call {
    /// Returns `true` if the first operand, a subcommand, is certainly one of these.
    fn surely_then(&self, names: &[&str]) -> bool {
        self.words.first().and_then(Word::literal).is_some_and(|word| names.contains(&word))
    }
}

fn record(words: &[Word], extent: ChangeExtent, walker: &mut Walker) {
    for file in walker.file_references(words) {
        walker.changes(file, extent.clone());
    }
}

/// Records the operands as files. A pathspec with its own syntax may be any file.
fn paths(call: &Call, extent: ChangeExtent, walker: &mut Walker) {
    let operands: Vec<Word> = call.arguments.operands().cloned().collect();
    record_paths(&operands, &extent, walker);
}

fn record_paths(words: &[Word], extent: &ChangeExtent, walker: &mut Walker) {
    for word in words {
        match word.literal() {
            Some(text) if text.starts_with(':') => record(&[Word::known(".")], extent.clone(), walker),
            Some(text) if verbs::is_file(text) => record(std::slice::from_ref(word), ChangeExtent::File, walker),
            _ => record(std::slice::from_ref(word), extent.clone(), walker),
        }
    }
}

/// Records the files of `checkout` and `switch`: those named, or all that differ in another commit.
fn checkout(call: &Call, walker: &mut Walker) {
    let operands: Vec<Word> = call.arguments.operands().cloned().collect();
    let is_certain = call.words.iter().all(Word::is_certain);
    let creates =
        call.surely_has("bBcC", "create") || call.surely_has("", "orphan") || call.surely_has("", "force-create");
    let keeps = !call.may_have("f", &["force", "discard-changes", "orphan"]);
    if is_certain && creates && keeps && operands.is_empty() {
        // A new branch at the current commit.
        return;
    }
    let named = call.words.iter().position(|word| word.literal() == Some("--"));
    let files: Option<Vec<Word>> = match named {
        Some(at) => call.words.get(at + 1..).map(<[Word]>::to_vec),
        None if call.name == "checkout" && !creates && !call.may_have("", &["pathspec-from-file"]) => {
            // The first operand may be a commit.
            let is_file = |word: &Word| word.literal().is_some_and(verbs::is_file);
            operands.split_first().and_then(|(first, rest)| match (is_file(first), rest.is_empty()) {
                (true, _) => Some(operands.clone()),
                (false, false) => Some(rest.to_vec()),
                (false, true) => None,
            })
        }
        None => None,
    };
    match files.filter(|files| !files.is_empty()) {
        Some(files) => record_paths(&files, &ChangeExtent::Anything, walker),
        None => record(&[Word::known(".")], ChangeExtent::Repository, walker),
    }
}
