//! Arguments that leave a program of development what it is: those that choose, show or repeat.
//!
//! An option that is not here may run a program, load code, or write, send or delete something. Its command has only its exact name.

use super::tool_options;

/// Options that every tool may have.
const COMMON: &[&str] = &["-q", "--quiet", "-v", "-vv", "--verbose", "--version", "--help", "--color", "--no-color"];

const CARGO: &[&str] = &[
    "--lib",
    "--bins",
    "--bin",
    "--example",
    "--examples",
    "--test",
    "--tests",
    "--bench",
    "--benches",
    "--all-targets",
    "--all",
    "--workspace",
    "--exclude",
    "-p",
    "--package",
    "-r",
    "--release",
    "--profile",
    "--features",
    "-F",
    "--all-features",
    "--no-default-features",
    "--no-run",
    "--no-fail-fast",
    "--locked",
    "--offline",
    "--frozen",
    "--check",
    "--fix",
    "--allow-dirty",
    "--allow-staged",
    "--no-deps",
    "--doc",
    "--keep-going",
    "--dev",
    "--build",
    "--optional",
    "--message-format",
    "-i",
    "--invert",
    "-e",
    "--edges",
    "-d",
    "--duplicates",
    "--depth",
];

const GIT: &[&str] = &[
    "-A",
    "--all",
    "-a",
    "-am",
    "-m",
    "--message",
    "--amend",
    "--no-edit",
    "-b",
    "-c",
    "--create",
    "-u",
    "--stat",
    "--cached",
    "--staged",
    "--name-only",
    "--name-status",
    "--oneline",
    "-n",
    "--graph",
    "--decorate",
    "--no-ff",
    "--ff-only",
    "--squash",
    "--abort",
    "--continue",
    "--short",
    "--branch",
    "--porcelain",
    "-sb",
    "--prune",
    "-p",
    "--patch",
    "--tags",
    "-t",
    "--track",
    "--list",
    "--show-current",
    "--contains",
    "--include-untracked",
    "--allow-empty",
    "--signoff",
    "--pretty",
    "--since",
    "--until",
    "--author",
    "--set-upstream",
    "--follow-tags",
    "--dry-run",
    "--word-diff",
    "--no-pager",
];

const NODE: &[&str] = &[
    "--save-dev",
    "-D",
    "--save",
    "--save-exact",
    "-E",
    "--no-audit",
    "--no-fund",
    "--frozen-lockfile",
    "--immutable",
    "--silent",
    "--watch",
    "--coverage",
    "--run",
    "--runInBand",
    "--workspaces",
    "--if-present",
    "--fix",
    "--ci",
    "--ignore-scripts",
    "--legacy-peer-deps",
];

const PIP: &[&str] = &[
    "-r",
    "--requirement",
    "-e",
    "--editable",
    "-U",
    "--upgrade",
    "--no-deps",
    "--pre",
    "--no-cache-dir",
    "-c",
    "--constraint",
];

const PYTHON_PROJECT: &[&str] = &[
    "--dev",
    "--frozen",
    "--locked",
    "--all-extras",
    "--extra",
    "--group",
    "--with",
    "--without",
    "--no-interaction",
    "--no-root",
];

const GO: &[&str] = &[
    "-race",
    "-run",
    "-count",
    "-bench",
    "-benchmem",
    "-benchtime",
    "-short",
    "-timeout",
    "-cover",
    "-tags",
    "-u",
    "-json",
    "-x",
];

const JAVA: &[&str] = &["-B", "-DskipTests", "--info", "--stacktrace", "--no-daemon", "--offline", "-o"];

const CONTAINERS: &[&str] = &["-t", "--tag", "--no-cache", "--target", "--pull", "--build-arg", "--progress"];

/// Options of programs that check, format or test files.
const TOOLS: &[&str] = &[
    "-x",
    "-s",
    "-k",
    "-m",
    "-n",
    "-l",
    "-w",
    "-d",
    "-rA",
    "-ra",
    "--fix",
    "--check",
    "--diff",
    "--write",
    "--noEmit",
    "--maxfail",
    "--tb",
    "--lf",
    "--last-failed",
    "--ff",
    "--no-header",
    "--no-cov",
    "--strict",
    "--watch",
    "--run",
    "--coverage",
    "--runInBand",
    "--silent",
    "--ext",
    "--max-warnings",
    "--bail",
    "--list",
    "--statistics",
    "--select",
    "--ignore",
    "--exclude",
    "--line-length",
    "--edition",
    "--force-exclude",
    "--ignore-missing-imports",
    "--show-error-codes",
    "--exit-zero",
    "--changed",
    "--all",
];

/// Returns `true` if the options of a program are ordinary, and no operand is an address or a place elsewhere.
pub(super) fn are_ordinary(name: &str, arguments: &[&str]) -> bool {
    if arguments.iter().any(|word| tool_options::misleads(name, word)) {
        return false;
    }
    let options = options_of(name);
    let is_operand = |word: &str| !word.contains("://") && !word.starts_with("git@") && !word.starts_with('+');
    let mut before = "";
    let mut own = arguments.iter().copied().take_while(|argument| *argument != "--");
    own.all(|word| {
        let is_text = is_message(name, before);
        before = word;
        is_text
            || match word.strip_prefix('-') {
                None => is_operand(word),
                Some("") => true,
                Some(option) => is_option(name, word, option, options),
            }
    }) && rest_is_ordinary(name, arguments)
}

fn is_message(name: &str, option: &str) -> bool {
    name == "git" && matches!(option, "-m" | "-am" | "--message")
}

fn is_option(name: &str, word: &str, option: &str, options: &[&str]) -> bool {
    // The value of an option is an operand, or a number behind its letter.
    let (option_name, value) = word.split_once('=').unwrap_or((word, ""));
    // Go takes one or two hyphens.
    let single = format!("-{}", option_name.trim_start_matches('-'));
    let is_known =
        |wanted: &str| options.contains(&wanted) || COMMON.contains(&wanted) || tool_options::is_ordinary(name, wanted);
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_cluster = || {
        let letters = option_name.strip_prefix('-').unwrap_or_default();
        options == TOOLS && letters.len() <= 5 && !letters.is_empty() && letters.chars().all(|c| "qvxs".contains(c))
    };
    (is_known(option_name) || is_known(word) || name == "go" && is_known(&single) || is_cluster())
        && !value.contains("://")
        && !value.starts_with("git+")
        || is_count(option)
        || option.strip_prefix('j').is_some_and(|jobs| jobs.is_empty() || is_count(jobs))
}

/// Arguments after `--` go to a program of the workspace, except for `cargo clippy`, whose compiler reads them.
fn rest_is_ordinary(name: &str, arguments: &[&str]) -> bool {
    let rest = arguments.iter().skip_while(|argument| **argument != "--").skip(1);
    let is_lint = |word: &&str| {
        matches!(*word, "-D" | "-W" | "-A") || word.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c))
    };
    match (name, arguments.first()) {
        ("cargo", Some(&("clippy" | "check" | "build" | "doc" | "fmt"))) => {
            rest.into_iter().all(|word| is_lint(word) || *word == "--check")
        }
        // Behind `--` are files.
        ("git", _) => rest.into_iter().all(|word| !word.contains("://")),
        _ => true,
    }
}

fn options_of(name: &str) -> &'static [&'static str] {
    match name.trim_end_matches('3') {
        "cargo" => CARGO,
        "git" => GIT,
        "npm" | "pnpm" | "yarn" | "bun" => NODE,
        "pip" => PIP,
        "uv" | "poetry" | "bundle" | "composer" => PYTHON_PROJECT,
        "go" => GO,
        "mvn" | "gradle" => JAVA,
        "docker" | "docker compose" => CONTAINERS,
        "dotnet" | "swift" | "mdbook" | "rustup" | "coverage" | "playwright" | "vite" | "next" | "nuxt" | "astro"
        | "storybook" | "webpack" | "turbo" | "nx" | "prisma" | "pre-commit" | "tox" | "nox" | "deno" | "flask"
        | "fastapi" | "streamlit" => &[],
        _ => TOOLS,
    }
}
