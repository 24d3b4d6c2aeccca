//! `git`: commands that only read, run programs, or lose work.

use super::command::Command;
use super::effects::Exemption;
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::{syntax, verbs};

/// Commands that only read, except with the options in [`FORBIDDEN`].
pub(super) const READS: [&str; 17] = [
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

const NETWORK: [&str; 13] = [
    "fetch",
    "pull",
    "push",
    "clone",
    "ls-remote",
    "submodule",
    "send-email",
    "archive",
    "fetch-pack",
    "send-pack",
    "http-fetch",
    "http-push",
    "imap-send",
];

/// Long options that write, or run programs from the configuration or the options.
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

/// Global options that run no program.
const PLAIN: [&str; 8] =
    ["-C", "-P", "-v", "--no-pager", "--no-optional-locks", "--literal-pathspecs", "--bare", "--version"];

/// Settings for `-c` that run no program.
const SETTINGS: [&str; 8] =
    ["user.", "color.", "advice.", "core.quotepath", "init.defaultbranch", "core.abbrev", "log.date", "safe.directory"];

/// A `git` command, without the global options.
pub(super) struct Call {
    /// The name; empty if it is the result of an expansion.
    pub(super) name: String,
    pub(super) words: Vec<Word>,
    pub(super) arguments: Arguments,
}

/// Maximum number of positions at which the command of `git` may begin. The rest of the line is analysed for each.
pub(super) const STARTS: usize = 4;

/// Returns all possible commands of `git`: unknown options and expansions may precede the command.
pub(super) fn calls(command: &Command) -> Vec<Call> {
    let starts = Arguments::read(syntax::for_program("git"), command.arguments());
    let rests = starts.first_at().take(STARTS).filter_map(|at| command.arguments().get(at..)?.split_first());
    rests.map(|(name, words)| Call::new(name.literal().unwrap_or_default(), words)).collect()
}

impl Call {
    pub(super) fn new(name: &str, words: &[Word]) -> Self {
        let arguments = Arguments::read(syntax::for_program(&format!("git {name}")), words);
        Self { name: name.to_owned(), words: words.to_vec(), arguments }
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(Word::literal)
    }

    pub(super) fn may_have(&self, short: &str, long: &[&str]) -> bool {
        self.arguments.may_have(short, long)
    }

    /// Returns `true` if an option is certainly given, and not revoked, as by `--no-dry-run`.
    pub(super) fn surely_has(&self, short: &str, long: &str) -> bool {
        self.arguments.surely_has(short, &[long]) && !self.may_have("", &[&format!("no-{long}")])
    }

    /// Returns `true` if the first operand, a subcommand, may be one of these.
    pub(super) fn then(&self, names: &[&str]) -> bool {
        self.arguments.first().flatten().any(|word| word.may_be(names))
    }

    pub(super) fn outputs(&self) -> impl Iterator<Item = &Word> {
        let short = if matches!(&*self.name, "archive" | "format-patch") { "o" } else { "" };
        // No option of `git bundle create` before the file has a value.
        let bundle = self.words.split_first().filter(|(action, _)| self.name == "bundle" && action.may_be(&["create"]));
        let bundle = bundle.and_then(|(_, words)| words.iter().find(|word| !word.lead().starts_with('-')));
        self.arguments.values(short, &["output", "output-directory"]).chain(bundle)
    }

    pub(super) fn uses_network(&self) -> bool {
        match &*self.name {
            "remote" => {
                self.then(&["update", "show", "prune"])
                    || self.then(&["add"]) && self.may_have("f", &["fetch"])
                    || self.then(&["set-head"]) && self.may_have("a", &["auto"])
            }
            "lfs" => self.then(&["fetch", "pull", "push", "clone", "lock", "locks", "unlock"]),
            name => NETWORK.contains(&name),
        }
    }
}

impl Call {
    /// Returns `true` if the command fetches, or pushes to a configured remote without a URL.
    pub(super) fn only_fetches(&self) -> bool {
        match &*self.name {
            "send-email" | "imap-send" | "http-push" | "send-pack" | "archive" => false,
            "push" => self
                .texts()
                .all(|text| !text.contains("://") && !text.contains('@') && !text.starts_with(['/', '.', '~'])),
            "clone" | "fetch" | "pull" | "ls-remote" => self.words.iter().all(|word| word.literal().is_some()),
            _ => true,
        }
    }

    /// Returns `true` if the command sets the target of pushes.
    pub(super) fn sets_remote(&self) -> bool {
        self.name == "remote" && self.then(&["add", "set-url", "rename"])
            || self.name == "config" && self.texts().any(|text| text.contains("remote.") || text.contains("pushurl"))
    }

    /// Returns the folders that a clone may fill; `None` if unknown. Without a name, a clone is named after its address.
    pub(super) fn clone_folders(&self) -> Option<Vec<Word>> {
        let operands: Vec<&Word> = self.arguments.operands().collect();
        let name = |address: &&Word| {
            let name = address.literal()?.trim_end_matches('/').rsplit(['/', ':']).next()?;
            Some(Word::known(name.trim_end_matches(".git")))
        };
        match operands.as_slice() {
            [address] => name(address).map(|name| vec![name]),
            [_, folder] => Some(vec![(*folder).clone()]),
            // An option may be unknown.
            _ => operands.iter().map(name).chain(operands.iter().map(|word| Some((*word).clone()))).collect(),
        }
    }

    pub(super) fn pushes(&self) -> bool {
        self.name == "push"
    }

    /// Returns `true` if the command certainly only prints its effects.
    pub(super) fn is_dry_run(&self) -> bool {
        self.surely_has("n", "dry-run")
    }

    /// Returns `true` if a push overwrites or deletes remote branches.
    pub(super) fn overwrites(&self) -> bool {
        self.name == "push" && loses(self).is_some()
    }

    /// Returns the operands that `git checkout` may read as files.
    pub(super) fn possible_files(&self) -> Vec<&Word> {
        let names_branch = self.arguments.surely_has("bB", &["orphan"]);
        if self.name != "checkout" || names_branch { Vec::new() } else { self.arguments.operands().collect() }
    }
}

/// Records the effects of a `git` command on files and remotes.
pub(super) fn note(command: &Command, walker: &mut Walker) {
    for call in calls(command) {
        walker.sets_remote |= call.sets_remote();
        walker.pushes |= call.pushes();
        let files = call.possible_files();
        if !files.is_empty() && loses(&call).is_none() {
            let files = walker.file_references(files);
            walker.may_lose("discards changes", &command.source_text(), Exemption::NoFile(files));
        }
    }
}

/// Returns `true` if git itself refuses to lose work, such as `worktree remove` without `--force`.
pub(super) fn keeps_work(command: &Command) -> bool {
    calls(command)
        .iter()
        .all(|call| call.name == "worktree" && !call.may_have("f", &["force"]) || loses(call).is_none())
}

/// Analyses a `git` command: the programs that it runs, and its options.
pub(super) fn inspect(command: &Command, walker: &mut Walker) {
    if matches!(command.arguments(), [word] if matches!(word.literal(), Some("--help" | "-h"))) {
        return walker.taint();
    }
    let words = command.arguments();
    let arguments = Arguments::read(syntax::for_program("git"), words);
    if arguments.first_at().nth(STARTS).is_some() {
        return walker.refuse("the command of `git` cannot be determined; leave out the global options");
    }
    let begin = arguments.first_at().next().unwrap_or(words.len());
    let global = Arguments::read(syntax::for_program("git"), words.get(..begin).unwrap_or_default());
    let is_plain = |(name, values): (String, &[Word])| match &*name {
        "-c" => values.iter().all(is_plain_setting),
        name => PLAIN.contains(&name),
    };
    if !global.options().all(is_plain) {
        return walker.refuse("`git` is given settings that may run programs; leave them out");
    }
    // Another folder may contain a repository from elsewhere, and its configuration names programs.
    // Words before the command's name may expand to several words, such as settings.
    if global.may_have("cC", &["bare"]) || !words.iter().take(begin).all(Word::is_certain) {
        walker.taint();
    }
    let calls = calls(command);
    let Some(call) = calls.first() else {
        // `git` alone prints its help.
        return;
    };
    match &*call.name {
        "version" => {}
        "" => walker.refuse("the command of `git` is the result of an expansion; write its name"),
        name if runs_programs(call) => {
            walker.refuse(format!("`git {name}` runs a program that its arguments name; run it plainly"));
        }
        _ if !only_reads(call) => walker.taint(),
        _ => {}
    }
}

fn is_plain_setting(word: &Word) -> bool {
    let setting = word.lead().to_ascii_lowercase();
    word.is_certain() && (SETTINGS.iter().any(|plain| setting.starts_with(plain)) || setting == "commit.gpgsign=false")
}

fn runs_programs(call: &Call) -> bool {
    let transport =
        call.may_have("", &["upload-pack", "receive-pack", "exec"]) || call.texts().any(|text| text.contains("ext::"));
    match &*call.name {
        "clone" | "fetch" | "pull" | "push" | "ls-remote" | "archive" | "fetch-pack" | "send-pack" => {
            transport || call.name == "clone" && call.may_have("uc", &["config", "template"])
        }
        "rebase" => call.may_have("x", &["exec"]),
        "bisect" => call.then(&["run"]),
        "submodule" => call.then(&["foreach"]),
        "difftool" | "mergetool" | "filter-branch" | "for-each-repo" | "daemon" | "shell" | "hook" | "maintenance" => {
            true
        }
        "config" => is_program_key(call),
        "grep" => call.may_have("O", &["open-files-in-pager"]),
        _ => false,
    }
}

/// Returns `true` if `git config` sets something that runs later.
fn is_program_key(call: &Call) -> bool {
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
    (call.arguments.operands().count() > 1 || call.arguments.operands().any(Word::is_many))
        && call.texts().any(|text| {
            let text = text.to_ascii_lowercase();
            keys.iter().any(|key| text.starts_with(key))
        })
        && !is_plain_alias(call)
}

/// Returns `true` if `git config` defines an alias of a command that only reads.
fn is_plain_alias(call: &Call) -> bool {
    let operands: Option<Vec<&str>> = call.arguments.operands().map(Word::literal).collect();
    match operands.as_deref() {
        Some([key, value]) if key.to_ascii_lowercase().starts_with("alias.") => {
            let mut words = value.split_whitespace();
            words.next().is_some_and(|name| READS.contains(&name)) && !value.contains("--output")
        }
        _ => false,
    }
}

fn only_reads(call: &Call) -> bool {
    // `%G` and `%(signature)` in a format run the program that checks signatures.
    let checks = |text: &str| text.contains("%G") || text.contains("signature");
    let signature = call.words.iter().any(|word| checks(&word.raw) || checks(word.lead()));
    let is_certain = call.words.iter().all(Word::is_certain);
    if signature || !is_certain || call.may_have("", &FORBIDDEN) || names_forbidden(call) {
        return false;
    }
    let texts: Option<Vec<&str>> = call.words.iter().map(Word::literal).collect();
    let listed = |options: &[&str]| texts.as_ref().is_some_and(|texts| texts.iter().all(|text| options.contains(text)));
    // The first word decides, even if it is unknown.
    let first = call.words.first().map(|word| word.literal().unwrap_or_default());
    match &*call.name {
        "branch" => listed(&["-a", "-r", "-v", "-vv", "-av", "-avv", "--list", "--show-current", "--all", "--remotes"]),
        "tag" => listed(&["-l", "--list", "-n"]),
        "remote" => listed(&["-v"]) || first == Some("get-url"),
        "stash" | "worktree" => first == Some("list") && texts.is_some(),
        "reflog" => matches!(first, None | Some("show")),
        "config" => {
            matches!(first, Some("--get" | "--get-all" | "--list" | "-l")) && !call.may_have("e", &WRITES_CONFIG)
        }
        name => READS.contains(&name),
    }
}

/// Options of `git config` that write.
const WRITES_CONFIG: [&str; 7] =
    ["add", "edit", "remove-section", "rename-section", "replace-all", "unset", "unset-all"];

/// Returns `true` if a forbidden option occurs anywhere: some commands pass their arguments on without the `--` that ended the
/// options.
fn names_forbidden(call: &Call) -> bool {
    call.words.iter().filter_map(|word| word.lead().strip_prefix("--")).any(|text| {
        let name = text.split('=').next().unwrap_or(text);
        !name.is_empty() && FORBIDDEN.iter().any(|option| option.starts_with(name))
    })
}

/// Returns the reason if a `git` command loses work.
pub(super) fn destroys(command: &Command) -> Option<&'static str> {
    calls(command).iter().find_map(loses)
}

fn loses(call: &Call) -> Option<&'static str> {
    let texts = || call.texts();
    let asks_for_help = || texts().any(|text| matches!(text, "-h" | "--help")) && !texts().any(|text| text == "--");
    if matches!(&*call.name, "restore" | "checkout") && call.words.len() == 1 && asks_for_help() {
        return None;
    }
    let knows_dry_run = matches!(&*call.name, "clean" | "push" | "fetch" | "rm" | "filter-repo" | "prune");
    if knows_dry_run && call.surely_has(if call.name == "fetch" { "" } else { "n" }, "dry-run") {
        return None;
    }
    match &*call.name {
        "reset" => call.may_have("", &["hard", "merge"]).then_some("discards changes"),
        "clean" => call.may_have("f", &["force"]).then_some("deletes untracked files"),
        "push" => {
            let forced = call.may_have("fd", &["force-with-lease", "force-if-includes", "mirror", "delete", "prune"]);
            let refspec = call.words.iter().any(|word| is_forced_refspec(word) || word.lead().starts_with(':'));
            (forced || refspec).then_some("overwrites or deletes remote history")
        }
        "fetch" | "pull" => {
            let is_forced = |word: &Word| is_forced_refspec(word) || call.may_have("f", &["force"]);
            let moves = |word: &Word| is_forced(word) && updates_branch(word.plain());
            call.words.iter().any(moves).then_some("moves a branch")
        }
        "apply" => call.may_have("R", &["reverse"]).then_some("discards changes"),
        "symbolic-ref" => call.may_have("d", &["delete"]).then_some("deletes a reference"),
        "remote" => call.then(&["remove", "rm"]).then_some("removes a remote"),
        "lfs" => call.then(&["prune"]).then_some("deletes history"),
        "checkout" => checkout(call).then_some("discards changes"),
        "restore" => {
            (call.may_have("W", &["worktree"]) || !call.surely_has("S", "staged")).then_some("discards changes")
        }
        "switch" => call.may_have("fC", &["force-create", "discard-changes"]).then_some("discards changes"),
        "branch" if call.may_have("D", &[]) => Some("deletes a branch"),
        "branch" if call.may_have("fMC", &["force"]) => {
            Some(if call.may_have("d", &["delete"]) { "deletes a branch" } else { "moves a branch" })
        }
        "tag" if call.may_have("f", &["force"]) => Some("moves a tag"),
        "tag" => call.may_have("d", &["delete"]).then_some("deletes a tag"),
        "config" => {
            let removes = call.may_have("", &["unset-all", "unset", "remove-section"]);
            let is_remote = texts().any(|text| text.starts_with("remote.") || text.starts_with("branch."));
            (removes && is_remote).then_some("removes a remote")
        }
        "stash" => call.then(&["drop", "clear"]).then_some("deletes stashed changes"),
        "reflog" => call.then(&["expire", "delete"]).then_some("deletes history"),
        "merge" | "rebase" | "cherry-pick" | "revert" | "am" => {
            call.may_have("", &["abort", "quit"]).then_some("discards changes")
        }
        "filter-branch" | "filter-repo" => Some("rewrites history"),
        "update-ref" => Some("moves or deletes a reference"),
        "gc" => call.may_have("", &["prune"]).then_some("deletes history"),
        "prune" | "prune-packed" => Some("deletes history"),
        "checkout-index" => call.may_have("f", &["force"]).then_some("discards changes"),
        "read-tree" => call.may_have("u", &["reset"]).then_some("discards changes"),
        "worktree" => (call.then(&["remove"])).then_some("deletes a working tree"),
        "submodule" => {
            (call.then(&["deinit", "update"]) && call.may_have("f", &["force"])).then_some("discards changes")
        }
        "notes" | "replace" => {
            (call.then(&["remove", "prune"]) || call.may_have("d", &["delete"])).then_some("deletes notes")
        }
        "rm" => (call.may_have("rf", &["force"]) && !call.surely_has("", "cached")).then_some("deletes files"),
        _ => None,
    }
}

/// Returns `true` if a refspec allows a non-fast-forward update: `+` may precede either side.
fn is_forced_refspec(word: &Word) -> bool {
    word.lead().starts_with('+') || word.plain().contains(":+")
}

/// Returns `true` if a refspec of `git fetch` updates something other than remote-tracking branches and tags.
fn updates_branch(refspec: &str) -> bool {
    let target = refspec.split_once(':').map(|(_, target)| target.trim_matches(['+', '"', '\'']));
    let is_kept = |target: &str| ["refs/remotes/", "refs/tags/"].iter().any(|prefix| target.starts_with(prefix));
    target.is_some_and(|target| !target.is_empty() && !target.contains("//") && !is_kept(target))
}

/// Returns `true` if `git checkout` overwrites files, judged by its words alone.
fn checkout(call: &Call) -> bool {
    if call.arguments.surely_has("b", &["orphan"]) && !call.may_have("f", &["force"]) {
        return false;
    }
    let is_pathspec = |word: &Word| {
        word.literal().is_none_or(|text| {
            text.starts_with(':') || text.contains(['*', '?']) || text == "." || verbs::is_file(text)
        })
    };
    call.texts().any(|text| text == "--")
        || call.may_have("fBp", &["force", "pathspec-from-file", "patch", "ours", "theirs", "merge"])
        || call.arguments.operands().count() > 1
        || call.arguments.operands().any(is_pathspec)
}
