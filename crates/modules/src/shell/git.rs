//! `git`: which of its commands only read, which run programs, which lose work.

use super::command::Command;
use super::walk::Walker;
use super::word::Word;

/// Commands that only read with the options that are not in [`FORBIDDEN`].
const READS: [&str; 17] = [
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "cat-file",
    "blame",
    "shortlog",
    "describe",
    "rev-list",
    "merge-base",
    "grep",
    "name-rev",
    "for-each-ref",
    "count-objects",
];

/// Long options that write, or run what a configuration or the options name.
const FORBIDDEN: [&str; 15] = [
    "output",
    "ext-diff",
    "textconv",
    "filters",
    "open-files-in-pager",
    "show-signature",
    "upload-pack",
    "receive-pack",
    "exec",
    "output-directory",
    "paginate",
    "batch-command",
    "sq-quote",
    "parseopt",
    "help",
];

/// Settings that `-c` may give without a program being run.
const SETTINGS: [&str; 8] =
    ["user.", "color.", "advice.", "core.quotepath", "init.defaultbranch", "core.abbrev", "log.date", "safe.directory"];

/// Tells the walker what a `git` command does.
pub(super) fn inspect(command: &Command, walker: &mut Walker) {
    let (settings, rest) = split(command);
    if settings.iter().any(|word| !is_plain_setting(word)) {
        return walker.refuse("`git` is given settings that may run programs; leave them out");
    }
    // What stands before the command's name may become several words, settings among them.
    let global = command.arguments().len() - rest.len();
    let is_elsewhere = command.texts().take(global).any(|text| text == "-C");
    // Another folder may hold a repository that came with the files, and its settings name programs.
    if is_elsewhere || !settings.is_empty() || !command.arguments().iter().take(global).all(Word::is_certain) {
        walker.taint();
    }
    let rest = Command { words: rest, stdin: command.stdin.clone() };
    let name = rest.words.first().map(|word| word.literal().unwrap_or_default().to_owned());
    match name.as_deref() {
        // `git` alone prints its help.
        None | Some("--version" | "version") => return,
        Some("") => return walker.refuse("the command of `git` is the result of an expansion; write its name"),
        Some(name) if runs_programs(name, &rest) => {
            return walker.refuse(format!("`git {name}` runs a program that its arguments name; run it plainly"));
        }
        Some(_) => {}
    }
    if !only_reads(&rest) {
        walker.taint();
    }
}

/// The name of the command that `git` is given.
pub(super) fn subcommand(command: &Command) -> String {
    split(command).1.first().and_then(Word::literal).unwrap_or_default().to_owned()
}

/// The global options that are settings, and the words from the command's name on.
fn split(command: &Command) -> (Vec<Word>, Vec<Word>) {
    let mut settings = Vec::new();
    let mut at = 1;
    while let Some(word) = command.words.get(at) {
        match word.literal() {
            Some("-C") => at += 1,
            Some("--no-pager" | "--no-optional-locks" | "-P" | "--literal-pathspecs") => {}
            Some("-c") => {
                at += 1;
                settings.extend(command.words.get(at).cloned());
            }
            Some("--version") => break,
            _ if word.lead().starts_with('-') => settings.push(word.clone()),
            _ => break,
        }
        at += 1;
    }
    (settings, command.words.get(at..).unwrap_or_default().to_vec())
}

fn is_plain_setting(word: &Word) -> bool {
    if !word.is_certain() {
        return false;
    }
    let setting = word.lead().to_ascii_lowercase();
    SETTINGS.iter().any(|plain| setting.starts_with(plain))
        || matches!(setting.as_str(), "commit.gpgsign=false" | "--bare")
}

fn runs_programs(name: &str, rest: &Command) -> bool {
    let option = |names: &[&str]| rest.texts().any(|text| names.iter().any(|name| text.starts_with(name)));
    let transport = option(&["--upload-pack", "--receive-pack", "--exec", "--upl", "--rece"])
        || rest.texts().any(|text| text.contains("ext::"));
    let second = rest.texts().next().unwrap_or_default();
    match name {
        "clone" | "fetch" | "pull" | "push" | "ls-remote" | "archive" | "fetch-pack" | "send-pack" => {
            transport || name == "clone" && rest.has("uc", &["config", "template"])
        }
        "rebase" => rest.has("x", &["exec"]),
        "bisect" => second == "run",
        "submodule" => second == "foreach",
        "difftool" | "mergetool" | "filter-branch" | "for-each-repo" | "daemon" | "shell" | "hook" | "maintenance" => {
            true
        }
        "config" => is_program_key(rest),
        "grep" => rest.has("O", &["open-files-in-pager"]),
        _ => false,
    }
}

/// Whether `git config` sets something that runs later.
fn is_program_key(rest: &Command) -> bool {
    let keys = [
        "alias.",
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "core.hookspath",
        "core.fsmonitor",
        "filter.",
        "diff.",
        "credential.",
    ];
    rest.operands().count() > 1
        && rest.texts().any(|text| {
            let text = text.to_ascii_lowercase();
            keys.iter().any(|key| text.starts_with(key))
        })
}

fn only_reads(rest: &Command) -> bool {
    let Some(name) = rest.words.first().and_then(Word::literal) else { return false };
    // `%G` in a format runs the program that checks signatures.
    let signature = rest.arguments().iter().any(|word| word.raw.contains("%G"));
    if signature || !rest.is_certain() || rest.has("", &FORBIDDEN) {
        return false;
    }
    let texts: Vec<&str> = rest.texts().collect();
    let listed =
        |options: &[&str]| texts.len() == rest.arguments().len() && texts.iter().all(|text| options.contains(text));
    match name {
        "branch" => listed(&["-a", "-r", "-v", "-vv", "-av", "-avv", "--list", "--show-current", "--all", "--remotes"]),
        "tag" => listed(&["-l", "--list", "-n"]),
        "remote" => listed(&["-v"]) || texts.first() == Some(&"get-url"),
        "stash" | "worktree" => matches!(texts.first(), Some(&"list")) && texts.len() == rest.arguments().len(),
        "reflog" => texts.is_empty() || texts.first() == Some(&"show"),
        "config" => matches!(texts.first(), Some(&("--get" | "--get-all" | "--list" | "-l"))),
        _ => READS.contains(&name),
    }
}

/// Why a `git` command loses work, if it does.
pub(super) fn destroys(command: &Command) -> Option<&'static str> {
    let rest = Command { words: split(command).1, stdin: command.stdin.clone() };
    let texts = || rest.texts();
    let whole_tree = || texts().any(|text| matches!(text, "." | ":/" | "*" | "./" | ":/*"));
    match rest.words.first()?.literal()? {
        "reset" => rest.has("", &["hard", "merge"]).then_some("discards changes"),
        "clean" => (rest.has("f", &["force"]) && !rest.has("n", &["dry-run"])).then_some("deletes untracked files"),
        "push" => {
            let refspec = texts().any(|text| text.starts_with('+') || text.starts_with(':'));
            let forced = texts().any(|text| text.starts_with("--force"))
                || rest.has("fd", &["force", "mirror", "delete", "prune"]);
            (forced || refspec).then_some("overwrites or deletes remote history")
        }
        "checkout" => (whole_tree() || texts().any(|text| text == "--") || rest.has("f", &["force"]))
            .then_some("discards changes"),
        "restore" => (whole_tree() && (rest.has("W", &["worktree"]) || !rest.has("S", &["staged"])))
            .then_some("discards changes"),
        "switch" => rest.has("fC", &["force", "discard-changes", "force-create"]).then_some("discards changes"),
        "branch" => (rest.has("D", &[]) || rest.has("d", &["delete"]) && rest.has("f", &["force"]))
            .then_some("deletes a branch"),
        "tag" => rest.has("d", &["delete"]).then_some("deletes a tag"),
        "stash" => matches!(texts().next(), Some("drop" | "clear")).then_some("deletes stashed changes"),
        "reflog" => matches!(texts().next(), Some("expire" | "delete")).then_some("deletes history"),
        "filter-branch" | "filter-repo" => Some("rewrites history"),
        "update-ref" => rest.has("d", &[]).then_some("deletes a reference"),
        "gc" => texts().any(|text| text.starts_with("--prune")).then_some("deletes history"),
        "worktree" => (texts().next() == Some("remove")).then_some("deletes a working tree"),
        "rm" => rest.has("rf", &["force"]).then_some("deletes files"),
        _ => None,
    }
}
