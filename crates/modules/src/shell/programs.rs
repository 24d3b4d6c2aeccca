//! Programs of development, and the subcommands that stay in the workspace.
//!
//! A program that is not here is allowed only as the exact command: it may run others, or change something elsewhere.

use super::{ordinary, python_reads, queries, runners, sed_edits, sql};

/// A program with subcommands.
struct Program {
    name: &'static str,
    /// Subcommands that one rule for the program allows.
    ordinary: &'static [&'static str],
    /// Subcommands that need a rule of their own.
    own: &'static [&'static str],
    /// Subcommands that are followed by the name of a task of the project: `npm run build`.
    tasks: &'static [&'static str],
}

const fn program(
    name: &'static str,
    ordinary: &'static [&'static str],
    own: &'static [&'static str],
    tasks: &'static [&'static str],
) -> Program {
    Program { name, ordinary, own, tasks }
}

const NODE: &[&str] = &[
    "test", "t", "start", "install", "i", "ci", "add", "update", "up", "ls", "list", "outdated", "audit", "build",
    "lint", "why", "explain", "view", "info", "show", "fund", "dedupe", "rebuild",
];

#[rustfmt::skip]
const PROGRAMS: [Program; 42] = [
    program("cargo", &["build", "b", "check", "c", "test", "t", "clippy", "fmt", "doc", "bench", "run", "r", "add", "remove", "update", "fetch",
        "tree", "metadata", "nextest", "generate-lockfile", "machete", "deny", "audit"], &[], &[]),
    program("git", &["add", "commit", "status", "log", "diff", "show", "branch", "checkout", "switch", "fetch", "merge", "tag", "stash", "restore",
        "mv", "cherry-pick", "revert", "init", "notes", "stage"], &["push", "pull", "rebase", "reset"], &[]),
    program("npm", NODE, &[], &["run", "run-script"]),
    program("pnpm", NODE, &[], &["run"]),
    program("yarn", NODE, &[], &["run"]),
    program("bun", NODE, &[], &["run"]),
    program("go", &["build", "test", "vet", "fmt", "fix", "mod", "run", "get", "list", "doc", "env", "version", "work"], &["generate", "install"],
        &[]),
    program("pip", &["install", "list", "show", "check", "freeze", "download"], &[], &[]),
    program("uv", &["sync", "add", "remove", "lock", "venv", "tree", "pip", "build", "export", "version"], &[], &[]),
    program("poetry", &["install", "add", "remove", "lock", "check", "build", "show", "update", "version"], &[], &[]),
    program("bundle", &["install", "check", "update"], &[], &[]),
    program("composer", &["install", "require", "update", "validate"], &[], &[]),
    program("mvn", &["compile", "test", "package", "verify"], &["install"], &[]),
    program("gradle", &["build", "test", "check", "assemble"], &[], &[]),
    program("dotnet", &["build", "test", "restore", "format", "run", "add"], &[], &[]),
    program("swift", &["build", "test", "package"], &[], &[]),
    program("make", &[], &[], &[""]),
    program("just", &[], &[], &[""]),
    program("ninja", &[], &[], &[""]),
    program("task", &[], &[], &[""]),
    program("docker", &["build"], &["pull", "start", "stop", "restart", "tag"], &[]),
    program("docker compose", &["up", "build", "start", "stop", "restart", "pull", "create"], &["down"], &[]),
    program("playwright", &["test", "install"], &[], &[]),
    program("vite", &["build", "dev", "preview", "optimize"], &[], &[""]),
    program("next", &["build", "dev", "lint", "start", "info", "typegen"], &[], &[]),
    program("nuxt", &["build", "dev", "prepare", "typecheck", "preview"], &[], &[]),
    program("astro", &["build", "check", "dev", "preview", "sync"], &[], &[]),
    program("storybook", &["build", "dev"], &[], &[]),
    program("webpack", &["build"], &[], &[""]),
    program("turbo", &["build", "test", "lint", "typecheck", "check-types", "dev"], &[], &["run"]),
    program("nx", &["build", "test", "lint", "e2e", "graph", "show", "report", "affected", "run-many"], &[], &["run"]),
    program("prisma", &["generate", "validate", "format", "version"], &[], &[]),
    program("pre-commit", &["run", "install", "validate-config"], &[], &[]),
    program("coverage", &["run", "report", "html", "xml", "json", "combine"], &[], &[]),
    program("tox", &["run", "list", "config"], &[], &[""]),
    program("nox", &[], &[], &[""]),
    program("deno", &["test", "fmt", "lint", "check", "bench", "doc", "info", "cache", "run"], &[], &["task"]),
    program("flask", &["run", "routes"], &[], &[]),
    program("fastapi", &["run", "dev"], &[], &[]),
    program("streamlit", &["run"], &[], &[]),
    program("rustup", &[], &["show", "component", "target"], &[]),
    program("mdbook", &["build", "test"], &[], &[]),
];

/// Programs that check, format or test files of the workspace, with any arguments.
#[rustfmt::skip]
const TOOLS: [&str; 54] = [
    "pytest", "rustfmt", "eslint", "prettier", "tsc", "mypy", "pyright", "ruff", "black", "isort", "flake8", "pylint", "jest", "vitest", "mocha",
    "gofmt", "goimports", "golangci-lint", "staticcheck", "clang-format", "clang-tidy", "shellcheck", "shfmt", "ctest", "rspec", "rubocop", "phpunit",
    "phpstan", "ktlint", "swiftlint", "swiftformat", "stylelint", "markdownlint", "typos", "codespell", "yamllint", "hadolint", "taplo", "biome",
    "vue-tsc", "svelte-check", "oxlint", "knip", "depcheck", "cspell", "markdownlint-cli2", "bandit", "vulture", "gofumpt", "govulncheck",
    "actionlint", "uvicorn", "gunicorn", "hypercorn",
];

/// Programs whose effect is completely described by the files that they write.
pub(super) const WRITERS: [&str; 5] = ["mkdir", "touch", "tee", "sed", "chmod"];

/// Modules of Python that are programs: `python -m pytest`.
#[rustfmt::skip]
const MODULES: [&str; 16] = [
    "pytest", "unittest", "mypy", "ruff", "black", "isort", "flake8", "pip", "build", "venv", "compileall", "doctest", "pylint", "coverage",
    "json.tool", "uvicorn",
];

/// Scripts that projects usually have. A script of another name needs `run`.
#[rustfmt::skip]
const SCRIPTS: [&str; 30] = [
    "bench", "build", "check", "codegen", "compile", "coverage", "cov", "dev", "docs", "e2e", "fix", "fmt", "format", "generate", "lint", "preview",
    "serve", "start", "storybook", "test", "tests", "type", "typecheck", "types", "unit", "validate", "verify", "watch", "style", "snapshot",
];

/// Words in names of tasks that change something elsewhere, or delete.
#[rustfmt::skip]
const GRAVE: [&str; 20] = [
    "deploy", "publish", "release", "push", "upload", "prod", "clean", "destroy", "drop", "delete", "remove", "reset", "migrate", "seed", "purge",
    "rollback", "install", "wipe", "prune", "apply",
];

/// The widest name of a command: every program of development.
pub const ANY_PROGRAM: &str = "*";

/// Returns `true` for a command that one rule for all programs of development allows: it builds, tests, formats or commits, runs a script of the
/// workspace, or installs what the project lists. A package that is installed by its name needs a rule of its own. Expects a command with
/// [`allowed_names`].
pub(super) fn is_everyday(name: &str, arguments: &[&str]) -> bool {
    let (name, arguments) = runners::canonical(name, arguments);
    match (name, arguments.as_slice()) {
        (_, arguments) if queries::is_query(name, arguments) => true,
        ("python" | "python3", ["-m", "pip", rest @ ..]) | ("uv", ["pip", rest @ ..]) => is_everyday("pip", rest),
        ("python" | "python3", _) | ("node", _) => true,
        (_, [subcommand, rest @ ..])
            if INSTALLS.contains(subcommand) && !["git", "playwright", "pre-commit"].contains(&name) =>
        {
            !names_package(name, rest)
        }
        (_, [subcommand, ..]) => {
            let program = PROGRAMS.iter().find(|program| program.name == name);
            program.is_none_or(|program| !program.own.contains(subcommand))
        }
        (_, []) => true,
    }
}

/// Package managers for which a name with a slash is a repository elsewhere.
const NODE_MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// Subcommands that install packages.
const INSTALLS: [&str; 6] = ["install", "i", "add", "require", "get", "download"];

/// Returns `true` for the name of a toolchain: `+nightly`. A path would be a program.
pub(super) fn is_toolchain(word: &str) -> bool {
    word.strip_prefix('+').is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)))
}

/// Returns `true` for a path with a hidden file or folder.
fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') && !matches!(part, "." | ".."))
}

fn is_goal(word: &str, program: &Program) -> bool {
    word.starts_with('-') || program.ordinary.contains(&word)
}

/// Returns `true` for a package that is not in the registry: `user/repository`, `github:user/repository`.
fn is_elsewhere(word: &str) -> bool {
    let is_scoped = word.starts_with('@') && word.matches('/').count() == 1;
    word.contains(':') || word.contains('/') && !is_scoped && !word.starts_with("./") && !word.ends_with(".txt")
}

/// Returns `true` unless an installation takes its packages from files of the project.
fn names_package(name: &str, arguments: &[&str]) -> bool {
    let is_pip = name.starts_with("pip");
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-r" | "--requirement" | "-c" | "--constraint" if is_pip => _ = words.next(),
            "-e" | "--editable" | "." if is_pip => {}
            word if is_pip && word.starts_with("--requirement=") => {}
            "-q" | "-v" | "-U" | "--quiet" | "--upgrade" | "--frozen-lockfile" | "--immutable" | "--no-audit"
            | "--no-fund" | "--ignore-scripts" | "--legacy-peer-deps" | "--locked" | "--frozen"
            | "--prefer-offline" | "--offline" => {}
            // Another option may take a package as its value.
            _ => return true,
        }
    }
    false
}

/// Returns the names by which a rule may allow a program with these arguments, from narrow to wide.
pub(super) fn allowed_names(name: &str, arguments: &[&str]) -> Vec<String> {
    let (name, arguments) = runners::canonical(name, arguments);
    let arguments = arguments.as_slice();
    match (name, arguments) {
        ("python" | "python3", ["-m", module, rest @ ..]) if MODULES.contains(module) => {
            return module_names(name, module, rest);
        }
        ("python" | "python3", ["-m", module, ..]) if is_own_module(module) => {
            return vec![format!("{name} -m {module}")];
        }
        ("python" | "python3" | "node" | "tsx" | "ts-node" | "bun", [file, ..]) if is_file(file) => {
            return vec![format!("{name} {file}")];
        }
        ("bun", ["run", file, ..]) if is_file(file) => return vec![format!("{name} {file}")],
        ("pnpm" | "yarn", ["run", task, ..]) if is_task(task) => {
            return vec![format!("{name} run {task}"), name.to_owned()];
        }
        ("pnpm" | "yarn", [task, ..]) if is_script(task) => return vec![format!("{name} {task}"), name.to_owned()],
        // Without a script of this name, it is a tool of the project.
        ("pnpm" | "yarn", [tool, rest @ ..]) if TOOLS.contains(tool) || matches!(*tool, "turbo" | "nx") => {
            return allowed_names(tool, rest);
        }
        (_, [command, ..]) if queries::is_query(name, arguments) => {
            let command = is_subcommand(command).then(|| format!("{name} {command}"));
            return command.into_iter().chain([name.to_owned()]).collect();
        }
        _ if queries::is_query(name, arguments) || sql::is_query(name, arguments) => return vec![name.to_owned()],
        // Files elsewhere would be code for a container.
        ("docker" | "docker compose", words) if words.iter().any(|word| word.starts_with('/') || is_remote(word)) => {
            return Vec::new();
        }
        // A program there was written by anybody.
        (program, words) if RUN_FILES.contains(&program) && words.iter().any(|word| is_temporary(word)) => {
            return Vec::new();
        }
        // Packages of another registry.
        ("deno", words) if words.iter().any(|word| word.contains(':')) => return Vec::new(),
        _ => {}
    }
    if !ordinary::are_ordinary(name, arguments) {
        return Vec::new();
    }
    if TOOLS.contains(&name) {
        return vec![name.to_owned()];
    }
    let Some(program) = PROGRAMS.iter().find(|program| program.name == name || format!("{}3", program.name) == name)
    else {
        return Vec::new();
    };
    let whole = || name.to_owned();
    match arguments.split_first() {
        Some((&("--version" | "-V" | "version"), [])) => vec![whole()],
        // Without a task, the first one of the project runs.
        None if program.tasks.contains(&"") => vec![whole()],
        Some((task, rest))
            if program.tasks.contains(&"") && is_task(task) && rest.iter().all(|word| is_detail(word)) =>
        {
            vec![format!("{name} {task}"), whole()]
        }
        Some((run, [task, ..])) if program.tasks.contains(run) && is_task(task) => {
            vec![format!("{name} {run} {task}"), whole()]
        }
        // Each word may be a task.
        _ if matches!(name, "turbo" | "nx" | "tox" | "nox") && arguments.iter().any(|word| sounds_grave(word)) => {
            Vec::new()
        }
        // Each word is a goal.
        Some((_, rest)) if matches!(name, "mvn" | "gradle") && !rest.iter().all(|word| is_goal(word, program)) => {
            Vec::new()
        }
        Some((install, rest))
            if NODE_MANAGERS.contains(&name)
                && INSTALLS.contains(install)
                && rest.iter().any(|word| is_elsewhere(word)) =>
        {
            Vec::new()
        }
        // Without an option, it overwrites nothing.
        Some((&"mv", rest)) if name == "git" && rest.iter().any(|word| is_hidden(word)) => Vec::new(),
        // A version of a program elsewhere, which is downloaded.
        Some((&"run", rest)) if name == "go" && rest.iter().any(|word| word.contains('@')) => Vec::new(),
        Some((subcommand, _)) if program.ordinary.contains(subcommand) => vec![format!("{name} {subcommand}"), whole()],
        Some((subcommand, _)) if program.own.contains(subcommand) => vec![format!("{name} {subcommand}")],
        _ => Vec::new(),
    }
}

/// Returns the names of a program in Python that is given as text, and only reads files and prints.
pub(super) fn text_names(name: &str, arguments: &[&str], input: Option<&str>) -> Vec<String> {
    let text = match (name, arguments, input) {
        ("python" | "python3", ["-c", text], _) => Some(*text),
        ("python" | "python3", [] | ["-"], text) => text,
        _ => None,
    };
    let reads = text.is_some_and(python_reads::only_reads);
    reads.then(|| format!("{name} -c")).into_iter().collect()
}

/// Programs that run the files that they are given.
const RUN_FILES: [&str; 14] = [
    "bun",
    "coverage",
    "cypress",
    "deno",
    "go",
    "jest",
    "mocha",
    "node",
    "nox",
    "playwright",
    "pytest",
    "tox",
    "uv",
    "vitest",
];

fn is_temporary(word: &str) -> bool {
    ["/tmp/", "/var/tmp/", "/dev/shm/"].iter().any(|folder| word.starts_with(folder))
}

/// Returns `true` for the address of a repository, of which the scheme can be missing.
fn is_remote(word: &str) -> bool {
    word.contains("://") || word.contains("github.com") || word.starts_with("git@") || word.ends_with(".git")
}

fn module_names(python: &str, module: &str, rest: &[&str]) -> Vec<String> {
    match module {
        "pip" if allowed_names("pip", rest).is_empty() => Vec::new(),
        // A second file is written.
        "json.tool" if rest.iter().filter(|word| **word == "-" || !word.starts_with('-')).count() > 1 => Vec::new(),
        _ if rest.iter().any(|word| is_temporary(word)) || !ordinary::are_ordinary(module, rest) => Vec::new(),
        _ => vec![format!("{python} -m {module}")],
    }
}

/// Returns `true` if the word is the name of a task that does not sound grave.
fn is_task(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_:.".contains(c);
    !word.starts_with('-') && word.chars().all(plain) && !sounds_grave(word)
}

fn sounds_grave(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    GRAVE.iter().any(|grave| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == *grave))
}

fn is_script(word: &str) -> bool {
    let first = word.split(['-', '_', ':', '.']).next().unwrap_or(word);
    is_task(word) && SCRIPTS.contains(&first)
}

/// Returns `true` for a module in a package of the workspace: `service.report`. The packages of Python itself have other names.
fn is_own_module(module: &str) -> bool {
    const OTHERS: [&str; 31] = [
        "ansible",
        "asyncio",
        "awscli",
        "celery",
        "concurrent",
        "ctypes",
        "curses",
        "distutils",
        "django",
        "email",
        "encodings",
        "ensurepip",
        "google",
        "http",
        "idlelib",
        "importlib",
        "json",
        "lib2to3",
        "logging",
        "multiprocessing",
        "os",
        "pip",
        "setuptools",
        "site",
        "tkinter",
        "twine",
        "unittest",
        "urllib",
        "wsgiref",
        "xml",
        "xmlrpc",
    ];
    let mut parts = module.split('.');
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    module.contains('.')
        && module.split('.').all(is_name)
        && !sounds_grave(module)
        && parts.next().is_some_and(|package| !OTHERS.contains(&package))
}

/// Returns `true` for a further task, or an option that only changes how tasks run.
fn is_detail(word: &str) -> bool {
    let jobs = word.strip_prefix("-j").is_some_and(|jobs| jobs.bytes().all(|b| b.is_ascii_digit()));
    is_task(word) || jobs || ["-k", "-s", "-B"].contains(&word)
}

/// Returns `true` if the word can be a subcommand.
pub(super) fn is_subcommand(word: &str) -> bool {
    !word.starts_with('-') && !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Returns `true` for a script of the workspace.
fn is_file(word: &str) -> bool {
    let is_script = [".py", ".js", ".mjs", ".cjs", ".ts"].iter().any(|ending| word.ends_with(ending));
    is_script && !word.starts_with(['-', '/', '~']) && !word.contains(['*', '…', ' '])
}

/// Returns `true` for a push to a remote by its name that overwrites and deletes nothing.
pub(super) fn is_plain_push(name: &str, arguments: &[&str]) -> bool {
    const OPTIONS: [&str; 8] =
        ["-u", "--set-upstream", "--tags", "--follow-tags", "-v", "--verbose", "-q", "--dry-run"];
    let plain =
        |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) && !word.contains("..");
    let [subcommand, rest @ ..] = arguments else { return false };
    let mut operands = rest.iter().filter(|word| !word.starts_with('-'));
    let remote = operands.next().is_none_or(|remote| plain(remote) && !remote.contains(['/', '.']));
    name == "git"
        && *subcommand == "push"
        && rest.iter().filter(|word| word.starts_with('-')).all(|option| OPTIONS.contains(option))
        && remote
        && operands.all(|reference| plain(reference))
}

/// Returns `true` for a program of [`WRITERS`] that only writes the files that its arguments name.
pub(super) fn is_plain_writer(name: &str, arguments: &[&str]) -> bool {
    let only = |known: &[&str]| arguments.iter().all(|word| !word.starts_with('-') || known.contains(word));
    match name {
        "sed" => sed_edits::is_plain_edit(arguments),
        "chmod" => {
            matches!(arguments, ["+x" | "-x" | "u+x" | "a+x" | "755" | "644", files @ ..] if !files.is_empty() && files.iter().all(|file| !file.starts_with('-')))
        }
        "tee" => only(&["-a", "--append"]),
        "touch" => only(&["-c", "--no-create"]),
        _ => true,
    }
}

/// Returns `true` for `mkdir` without a mode.
pub(super) fn only_creates(name: &str, arguments: &[&str]) -> bool {
    name == "mkdir" && arguments.iter().all(|word| !word.starts_with('-') || matches!(*word, "-p" | "-v" | "--parents"))
}
