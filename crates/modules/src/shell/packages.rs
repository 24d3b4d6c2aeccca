//! Package managers: commands that fetch dependencies, and commands that publish or run unknown code.

use super::command::Command;
use super::word::Word;

/// Subcommands that publish, or change accounts or the whole machine.
const SENDS: [(&str, &[&str]); 18] = [
    ("npm", NPM_SENDS),
    ("pnpm", NPM_SENDS),
    ("yarn", NPM_SENDS),
    ("bun", NPM_SENDS),
    ("pip", &["config"]),
    ("pip3", &["config"]),
    ("uv", &["publish"]),
    ("poetry", &["publish"]),
    ("cargo", &["publish", "yank", "login", "logout", "owner", "install"]),
    ("go", &["install"]),
    ("gem", &["push", "install", "update", "yank", "owner", "signin"]),
    ("bundle", &["release"]),
    ("composer", &["global"]),
    ("docker", &["push", "login", "run", "swarm", "plugin"]),
    ("docker-compose", &["push"]),
    ("podman", &["push", "login", "run"]),
    ("openssl", &["s_client", "s_server"]),
    ("twine", &["upload"]),
];

/// Subcommands of `npm` and similar programs that publish, or change accounts.
pub(super) const NPM_SENDS: &[&str] = &[
    "publish",
    "unpublish",
    "login",
    "logout",
    "adduser",
    "token",
    "owner",
    "access",
    "dist-tag",
    "deprecate",
    "team",
    "org",
    "hook",
    "star",
    "profile",
    "global",
    "npm",
    "trust",
];

/// Options that install from another source than the configured registry, or for the whole machine.
const ELSEWHERE: &[&str] = &[
    "-g",
    "--global",
    "--location=global",
    "--registry",
    "--index-url",
    "--extra-index-url",
    "-i",
    "--find-links",
    "--git",
    "--trusted-host",
    "--index",
    "--default-index",
    "--source",
    "--repository",
    "--proxy",
    "--userconfig",
    "--root",
];

/// Tools that projects commonly run without installing them.
pub(super) const COMMON: &[&str] = &[
    "tsc",
    "eslint",
    "prettier",
    "jest",
    "vitest",
    "playwright",
    "@playwright/test",
    "next",
    "vite",
    "webpack",
    "rollup",
    "mocha",
    "ava",
    "tap",
    "c8",
    "nyc",
    "tsx",
    "ts-node",
    "esbuild",
    "swc",
    "babel",
    "turbo",
    "nx",
    "lerna",
    "storybook",
    "tailwindcss",
    "postcss",
    "stylelint",
    "biome",
    "@biomejs/biome",
    "oxlint",
    "cypress",
    "jsdoc",
    "typedoc",
    "husky",
    "lint-staged",
    "commitlint",
    "prisma",
    "drizzle-kit",
    "nodemon",
    "concurrently",
    "serve",
    "http-server",
    "rimraf",
    "cross-env",
    "depcheck",
    "knip",
    "madge",
    "astro",
    "svelte-check",
    "vue-tsc",
    "nuxt",
    "ng",
    "expo",
    "remix",
    "gatsby",
    "create-vite",
    "create-next-app",
    "create-react-app",
    "sort-package-json",
    "npm-check-updates",
    "markdownlint",
    "markdownlint-cli",
    "markdownlint-cli2",
    "cspell",
    "ruff",
    "black",
    "mypy",
    "pytest",
    "pyright",
    "pre-commit",
    "isort",
    "flake8",
    "httpie",
    "shadcn",
    "typescript",
];

/// Returns `true` if a program has the subcommands of `npm`.
pub(super) fn is_npm(name: &str) -> bool {
    matches!(name, "npm" | "pnpm" | "yarn" | "bun")
}

/// Returns `true` if a command that uses the network only fetches packages by name; `None` if the program is not a package
/// manager.
pub(super) fn only_fetches(name: &str, command: &Command) -> Option<bool> {
    let name = name.trim_end_matches(".exe");
    let words: Option<Vec<&str>> = command.arguments().iter().map(Word::literal).collect();
    let (_, sends) = SENDS.iter().find(|(program, _)| *program == name)?;
    let Some(words) = words else { return Some(false) };
    let mut operands = words.iter().filter(|word| !word.starts_with(['-', '+'])).copied();
    let subcommand = operands.next().unwrap_or_default();
    let is_local_install =
        matches!((name, subcommand), ("go", "install")) && operands.clone().all(|word| word.starts_with('.'));
    if sends.contains(&subcommand) && !is_local_install && !words.contains(&"--list") {
        return Some(false);
    }
    let is_docker = matches!(name, "docker" | "docker-compose" | "podman");
    let elsewhere = |word: &&str| {
        let option = word.split('=').next().unwrap_or(word);
        ELSEWHERE.contains(word) || word.contains('=') && option.starts_with("--") && ELSEWHERE.contains(&option)
    };
    if !is_docker && words.iter().any(elsewhere) {
        return Some(false);
    }
    let is_npm = is_npm(name);
    let is_plain = |word: &str| {
        let is_shorthand = is_npm && word.contains('/') && !word.starts_with(['@', '.']);
        let is_address = word.contains("://") || word.starts_with("git+") || word.starts_with("git@");
        is_docker || !is_address && !is_shorthand && !word.starts_with("github:") && !word.starts_with("gist:")
    };
    let installs =
        matches!(subcommand, "install" | "i" | "add" | "get" | "require" | "pip" | "download" | "update" | "upgrade");
    Some(!installs || operands.all(is_plain) && words.iter().all(|word| !word.contains("://") || is_docker))
}

/// Subcommands of project managers that run programs, such as `uv run pytest`: the program, its subcommand, and the options
/// with a value before the command.
const RUNNERS: [(&str, &[&str], &[&str]); 28] = [
    (
        "uv",
        &["run"],
        &["--with", "--extra", "--group", "--python", "-p", "--project", "--directory", "--env-file", "--package"],
    ),
    ("poetry", &["run"], &[]),
    ("pipenv", &["run"], &[]),
    ("pdm", &["run"], &[]),
    ("rye", &["run"], &[]),
    ("hatch", &["run"], &[]),
    ("conda", &["run"], &["-n", "--name", "-p", "--prefix"]),
    ("bundle", &["exec"], &[]),
    ("pnpm", &["exec"], &["--filter", "-F", "-C", "--dir"]),
    ("yarn", &["exec"], &[]),
    ("rbenv", &["exec"], &[]),
    ("pyenv", &["exec"], &[]),
    ("asdf", &["exec"], &[]),
    ("mise", &["exec"], &[]),
    ("direnv", &["exec"], &[]),
    ("dotenv", &["run"], &["-e", "-f"]),
    ("doppler", &["run"], &["-p", "-c"]),
    ("op", &["run"], &["--env-file"]),
    ("aws-vault", &["exec"], &[]),
    ("rustup", &["run"], &[]),
    ("docker", &["exec"], &["-e", "--env", "-u", "--user", "-w", "--workdir", "--env-file"]),
    ("podman", &["exec"], &["-e", "--env", "-u", "--user", "-w", "--workdir"]),
    ("docker", &["compose", "exec"], &["-e", "--env", "-u", "--user", "-w", "--workdir", "--index"]),
    ("docker", &["compose", "run"], &["-e", "--env", "-u", "--user", "-w", "--workdir", "-v", "--volume", "--name"]),
    ("docker-compose", &["exec"], &["-e", "--env", "-u", "--user", "-w", "--workdir", "--index"]),
    ("docker-compose", &["run"], &["-e", "--env", "-u", "--user", "-w", "--workdir", "-v", "--volume", "--name"]),
    ("kubectl", &["exec"], &["-n", "--namespace", "-c", "--container", "--context"]),
    ("heroku", &["run"], &["-a", "--app"]),
];

/// Returns the index of the command that a project manager runs.
pub(super) fn run_at(name: &str, words: &[Word]) -> Option<usize> {
    let operands = |valued: &'static [&'static str]| {
        let mut skips = false;
        words.iter().enumerate().skip(1).filter(move |(_, word)| {
            let is_value = std::mem::take(&mut skips);
            skips = !is_value && valued.contains(&word.lead());
            !is_value && !word.lead().starts_with('-')
        })
    };
    RUNNERS.iter().filter(|(program, ..)| *program == name).find_map(|(_, subcommands, valued)| {
        let mut operands = operands(valued);
        let fits =
            subcommands.iter().all(|subcommand| operands.next().is_some_and(|(_, word)| word.lead() == *subcommand));
        // A container or an environment precedes the command.
        let is_placed = subcommands.contains(&"exec")
            && matches!(name, "docker" | "podman" | "docker-compose" | "kubectl" | "direnv" | "aws-vault")
            || *subcommands == ["compose", "run"]
            || name == "docker-compose"
            || name == "rustup";
        fits.then(|| operands.nth(usize::from(is_placed))).flatten().map(|(at, _)| at)
    })
}

/// Returns the index of the tool that a program downloads and runs, such as `npx`. The value of `-p` is downloaded, too.
pub(super) fn tool_at(name: &str, words: &[Word]) -> Option<usize> {
    let skipped: &[&str] = match (name, words.get(1).map(Word::lead)) {
        ("npx" | "bunx" | "uvx" | "pnpx", _) => &[],
        ("npm", Some("exec" | "x")) | ("pnpm" | "yarn", Some("dlx")) | ("bun", Some("x")) | ("pipx", Some("run")) => {
            &["x"]
        }
        ("uv", Some("tool")) if words.get(2).map(Word::lead) == Some("run") => &["x", "run"],
        _ => return None,
    };
    let valued = ["-p", "--package", "--from", "--with", "--python"];
    let mut at = 1 + skipped.len();
    while let Some(word) = words.get(at) {
        if valued.contains(&word.lead()) {
            at += 1;
        } else if !word.lead().starts_with('-') {
            return Some(at);
        }
        at += 1;
    }
    None
}

pub(super) fn without_version(package: &str) -> &str {
    let begin = usize::from(package.starts_with('@'));
    let end = package.get(begin..).and_then(|rest| rest.find('@')).map_or(package.len(), |at| at + begin);
    package.get(..end).unwrap_or(package)
}
