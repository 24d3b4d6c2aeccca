//! Unknown programs, judged by the verbs in their first words.

use super::command::Command;
use super::{readonly, services, shells, wrappers};

/// Number of words that are checked: the program's name and the first operands.
const WORDS: usize = 4;

const DESTROY: &[&str] = &[
    "delete",
    "destroy",
    "purge",
    "prune",
    "remove",
    "drop",
    "rm",
    "forget",
    "wipe",
    "erase",
    "reset",
    "terminate",
    "uninstall",
    "truncate",
    "flush",
    "revoke",
    "unpublish",
    "nuke",
    "del",
    "rb",
    "rdelete",
    "unregister",
    "deregister",
    "expunge",
    "evict",
    "drain",
    "deprovision",
    "decommission",
    "teardown",
    "rollback",
    "disable",
    "unset",
    "clear",
    "obliterate",
    "flushall",
    "flushdb",
    "rmi",
    "shred",
    "empty",
    "recreate",
    "roll",
    "abandon",
    "revert",
    "downgrade",
    "fresh",
    "trash",
    "undo",
    "kill",
    "yank",
    "discard",
    "deprecate",
    "withdraw",
    "deactivate",
    "expire",
    "overwrite",
    "zap",
    "zero",
    "rmtree",
    "undefine",
    "cleanup",
    "suspend",
];

/// Verbs for mirroring or collecting garbage. In unknown programs, they delete everything that the source does not have.
const MIRROR: &[&str] = &["sync", "mirror", "compact", "gc", "garbage"];

/// Programs in which the words of [`MIRROR`] refer to packages, sources or the screen.
const MIRROR_EXEMPT: &[&str] = &[
    "uv",
    "pdm",
    "rye",
    "pipenv",
    "pip-sync",
    "pixi",
    "hatch",
    "repo",
    "cap",
    "capacitor",
    "gradle",
    "gradlew",
    "mvn",
    "west",
    "mise",
    "atuin",
    "dotnet",
    "tuist",
    "pod",
    "flutter",
    "dart",
    "melos",
    "nx",
    "turbo",
    "rush",
    "emerge",
    "python",
    "python3",
    "node",
    "deno",
    "ruby",
    "php",
    "perl",
    "sync",
    "fsync",
    "svelte-kit",
    "astro",
    "wrangler",
    "convex",
    "expo",
];

/// Tools that change the schema of a database, with its data.
const MIGRATIONS: &[&str] = &[
    "flyway",
    "liquibase",
    "goose",
    "dbmate",
    "migrate",
    "atlas",
    "sqitch",
    "alembic",
    "knex",
    "typeorm",
    "sequelize",
    "sequelize-cli",
    "drizzle-kit",
    "prisma",
    "diesel",
    "sqlx",
    "refinery",
    "rails",
    "rake",
    "mix",
    "yoyo",
    "migrate-mongo",
];

/// Commands of these tools that revert or start over.
const BACKWARDS: &[&str] = &["clean", "down", "revert", "redo", "zero", "load", "setup"];

const PUBLISH: &[&str] = &["publish", "deploy", "release", "upload", "promote", "undeploy", "push", "apply"];

const OPTIONS: &[&str] = &[
    "--delete",
    "--destroy",
    "--purge",
    "--wipe",
    "--erase",
    "--drop",
    "--remove",
    "--truncate",
    "--prune",
    "--nuke",
    "--remove-all",
    "--force-delete",
    "--delete-all",
    "--reset-offsets",
    "--force-reset",
    "--accept-data-loss",
    "--delete-destination",
    "--unsafe-allow-remove-all",
    "--cleanup",
    "--delete-data",
    "--hard",
    "--flush",
    "--discard-changes",
    "--zap",
    "-purge",
    "-delete",
    "-destroy",
];

/// Programs whose words are text, patterns or names instead of verbs, and programs with their own rules.
const EXEMPT: &[&str] = &[
    "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "fd", "find", "cat", "ls", "head", "tail", "wc",
    "man", "which", "type", "whereis", "apropos", "tldr", "test", "[", "git", "curl", "wget", "http", "https",
    "pytest", "jest", "vitest", "mocha", "tsc", "eslint", "prettier", "rm", "mv", "cp", "mkdir", "touch", "cd",
    "pushd", "popd", "rmdir", "pgrep", "pkill", "kill", "killall", "ps", "jq", "yq", "sed", "awk", "gawk", "tr",
    "sort", "cut", "diff", "dig", "host", "ping", "ssh", "scp", "rsync", "tar", "zip", "unzip", "vim", "vi", "nvim",
    "nano", "emacs", "code", "open", "xdg-open", "say", "export", "declare", "local", "typeset", "readonly", "unset",
    "set", "read", "return", "exit", "let", "trap", "alias", "source", ".", "ruff", "wait", "expr", "clear", "reset",
    "tput", "cmake", "ninja", "meson", "unittest", "venv", "chmod", "chown", "chgrp", "setfacl", "chattr", "chcon",
    "dd", "tee", "ln", "install", "history", "ssh-add", "make", "just", "task", "rake", "gsed", "pip", "pip3",
    "bundle", "crontab",
];

/// Known programs, with their commands after which verbs have no meaning, or remove only things that are easy to restore.
const COMMANDS: &[(&str, &[&str])] = &[
    ("docker", CONTAINERS),
    ("podman", CONTAINERS),
    ("docker-compose", CONTAINERS),
    ("npm", PACKAGES),
    ("yarn", PACKAGES),
    ("pnpm", PACKAGES),
    ("bun", PACKAGES),
    ("uv", PACKAGES),
    ("poetry", PACKAGES),
    ("cargo", PACKAGES),
    ("go", PACKAGES),
    ("composer", PACKAGES),
];
const CONTAINERS: &[&str] = &[
    "run", "exec", "build", "buildx", "compose", "ps", "logs", "images", "inspect", "pull", "push", "tag", "start",
    "stop", "restart", "cp", "top", "stats", "port", "search", "login", "info", "version", "events", "diff", "history",
    "attach", "wait", "create", "rename", "commit", "up", "down", "config",
];
#[rustfmt::skip]
const PACKAGES: &[&str] = &[
    "uninstall", "remove", "rm", "un", "prune", "dedupe", "add", "install", "i", "ci", "run", "exec", "test", "build",
    "bench", "check", "clippy", "fmt", "doc", "tree", "search", "info", "view", "show", "why", "list", "ls", "init",
    "new", "get", "mod", "work", "tool", "vet", "generate", "env", "pip", "python", "sync", "lock", "update", "x",
    "dlx", "create", "start", "dev", "lint", "script", "fix", "rustc", "nextest", "clean", "pack", "version", "link",
    "set",
];

/// Words that make a verb harmless: the deleted data is created again automatically.
const CACHES: &[&str] = &["cache", "caches", "cached", "node_modules"];

/// Returns the reason if an unknown program is destructive, judged by its first words and its options.
pub(super) fn destroys(name: &str, command: &Command) -> Option<&'static str> {
    let by_option = || command.texts().any(|text| is_option(text, OPTIONS));
    let destroys = !is_exempt(name, command)
        && (any(name, command, DESTROY)
            || by_option()
            || is_destructive_name(name, command)
            || mirrors(name, command)
            || migrates_backwards(name, command)
            || restores_over(name, command));
    destroys.then_some("may destroy something, by its words")
}

/// Returns `true` if the program is installed and a part of its name is a verb, such as `kafka-delete-records.sh`.
fn is_destructive_name(name: &str, command: &Command) -> bool {
    let is_installed = command.words.first().is_some_and(|word| !word.lead().contains('/'));
    is_installed && name.split(['-', '_', '.']).any(|part| DESTROY.contains(&part))
}

/// Returns `true` if an installed program mirrors something, judged by its first word or its name.
fn mirrors(name: &str, command: &Command) -> bool {
    let is_installed = command.words.first().is_some_and(|word| !word.lead().contains('/'));
    let mut words = command.texts().filter(|text| !text.starts_with('-')).take(2);
    let is_named = name.split(['-', '_']).skip(1).any(|part| MIRROR.contains(&part));
    is_installed && !MIRROR_EXEMPT.contains(&name) && (is_named || words.any(|word| MIRROR.contains(&word)))
}

/// Returns `true` if a tool for database schemas reverts, or starts over.
fn migrates_backwards(name: &str, command: &Command) -> bool {
    let is_backwards = |word: &str| {
        let mut parts = word.split(':');
        let (first, last) = (parts.next().unwrap_or_default(), parts.next_back());
        // `rails` and `rake` have other words for everything else.
        let is_own = !matches!(name, "rails" | "rake" | "mix");
        last.map_or(is_own && BACKWARDS.contains(&first), |last| first == "db" && BACKWARDS.contains(&last))
    };
    MIGRATIONS.contains(&name) && command.texts().filter(|text| !text.starts_with('-')).take(WORDS).any(is_backwards)
}

/// Returns `true` if a program that restores a backup first drops the existing data.
fn restores_over(name: &str, command: &Command) -> bool {
    let has_part =
        |part: &str| command.texts().take(WORDS).any(|text| text.split([':', '-', '_']).any(|word| word == part));
    has_part("restore") && ["snapshot", "backup", "db", "database"].iter().any(|part| has_part(part))
        || name.contains("restore")
            && command.texts().any(|text| matches!(text, "--clean" | "-c" | "--drop" | "--overwrite"))
}

/// Returns `true` if a line of a request to a service begins with a verb, such as `flush_all`.
pub(super) fn is_request(text: &str) -> bool {
    text.lines().filter_map(|line| line.split_whitespace().next()).any(is_destructive)
}

/// Returns `true` if the name of a project script is destructive, such as `db:reset`.
pub(super) fn is_destructive(script: &str) -> bool {
    is_verb(script, DESTROY)
}

/// Returns `true` if the words of a program are text, or the program has its own rules.
pub(super) fn has_own_rules(name: &str) -> bool {
    EXEMPT.contains(&name) || COMMANDS.iter().any(|(program, _)| *program == name) || services::is_known(name)
}

/// Returns `true` if an unknown program publishes something, judged by its first words.
pub(super) fn publishes(name: &str, command: &Command) -> bool {
    // In a build script, "release" names the thing that is built.
    let builds = ["build", "compile", "test", "run", "bench"].iter().any(|verb| name.contains(verb));
    let is_verb = |word: &str| {
        PUBLISH.contains(&word.split(':').next().unwrap_or(word)) && !(builds && matches!(word, "release" | "deploy"))
    };
    let words = || command.texts().filter(|text| !text.starts_with('-') && !is_file(text));
    !is_exempt(name, command) && words().take(WORDS - 1).any(is_verb)
}

fn is_exempt(name: &str, command: &Command) -> bool {
    let runs_others = wrappers::is_known(name) || shells::is_known(name) || readonly::is_reader(name);
    let mut words = command.texts();
    let is_module = name.starts_with("python") && words.any(|word| word == "-m");
    if is_module && words.next().is_some_and(|module| EXEMPT.contains(&module)) {
        return true;
    }
    let is_harmless = |(program, commands): &(&str, &[&str])| {
        *program == name
            && command.texts().find(|text| !text.starts_with('-')).is_none_or(|first| commands.contains(&first))
    };
    runs_others
        || EXEMPT.contains(&name)
        || COMMANDS.iter().any(is_harmless)
        || services::only_reads(name, command) == Some(true)
        || command.asks_for_help()
        || command.texts().any(|text| matches!(text, "--help" | "--dry-run"))
}

fn is_option(text: &str, options: &[&str]) -> bool {
    const VERBS: [&str; 6] = ["delete", "destroy", "purge", "wipe", "erase", "unregister"];
    let verb = text.strip_prefix("--").and_then(|name| name.split(['-', '=']).next());
    options.contains(&text.split('=').next().unwrap_or(text)) || verb.is_some_and(|verb| VERBS.contains(&verb))
}

fn any(name: &str, command: &Command, verbs: &[&str]) -> bool {
    let words = command.texts().filter(|text| !text.starts_with('-'));
    // A verb is one word in lower case, unlike paths and sentences.
    let words = words.filter(|word| !word.contains(['/', ' ', '\n', '=', '@', '*']) && !is_file(word));
    let words: Vec<&str> = words.take(WORDS - 1).chain(Some(name).filter(|name| !is_file(name))).collect();
    let parts = || words.iter().flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric()));
    let lower = |part: &str| part.to_ascii_lowercase();
    words.iter().any(|word| is_verb(word, verbs)) && !parts().any(|part| CACHES.contains(&lower(part).as_str()))
}

/// Returns `true` if a word is a verb, possibly with its object, such as `delete-job`, `db:drop`, `force_reset`.
fn is_verb(word: &str, verbs: &[&str]) -> bool {
    let word = word.to_ascii_lowercase();
    let is_one = |part: &str| verbs.contains(&part) && part != "clear";
    if verbs.contains(&word.as_str()) {
        return true;
    }
    // `deleteall`, `deletelocalsnapshots`
    let object = word.strip_prefix("delete").filter(|_| verbs.contains(&"delete"));
    if object.is_some_and(|object| object.len() > 2 && object.bytes().all(|b| b.is_ascii_lowercase())) {
        return true;
    }
    // Tasks have words before and after the verb, as in `db:migrate:undo:all`.
    if word.split(':').any(is_one) {
        return true;
    }
    let mut parts = word.split(['-', '_', ':', '.']);
    let (first, last) = (parts.next().unwrap_or_default(), parts.next_back().unwrap_or_default());
    word.len() <= 40 && (is_one(first) || is_one(last) && !first.starts_with("test"))
}

/// Returns `true` if a word is the name of a file, such as `reset.css`.
pub(super) fn is_file(word: &str) -> bool {
    let extension = word.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| {
        const EXTENSIONS: &[&str] = &[
            "py", "js", "ts", "tsx", "jsx", "mjs", "cjs", "sh", "bash", "rb", "pl", "php", "lua", "go", "rs", "c", "h",
            "cpp", "java", "css", "html", "md", "txt", "json", "yaml", "yml", "toml", "sql", "csv", "xml", "exe",
            "jar", "log", "img",
        ];
        EXTENSIONS.contains(&extension)
    })
}
