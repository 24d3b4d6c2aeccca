//! Packages that are installed or run by their addresses, and builds of downloaded projects.

use super::command::Command;
use super::walk::Walker;
use super::word::Word;
use super::{packages, readers, services, writes};

/// Programs that install or run packages, and the words after which they do; without words, always.
const INSTALLERS: &[(&str, &[&str])] = &[
    ("ansible-pull", &[]),
    ("asdf", &["plugin", "plugin-add"]),
    ("brew", &["install", "reinstall"]),
    ("bun", &["add", "create", "install", "i", "x"]),
    ("bunx", &[]),
    ("cargo", &["binstall", "generate", "install"]),
    ("cookiecutter", &[]),
    ("copier", &["copy", "update"]),
    ("cruft", &["create"]),
    ("deno", &["bench", "compile", "install", "run", "serve", "test", "x"]),
    ("docker", &["build"]),
    ("easy_install", &[]),
    ("gem", &["install"]),
    ("go", &["install", "run"]),
    ("mise", &["plugin", "plugins"]),
    ("nix", &["build", "develop", "install", "profile", "run", "shell"]),
    ("nix-build", &[]),
    ("nix-env", &[]),
    ("nix-shell", &[]),
    ("npm", &["add", "create", "install", "i", "init", "exec", "ci", "x"]),
    ("npx", &[]),
    ("pdm", &["add"]),
    ("pip", &["install", "wheel"]),
    ("pipenv", &["install"]),
    ("pipx", &["install", "run"]),
    ("pixi", &["add"]),
    ("pnpm", &["add", "create", "install", "i", "dlx"]),
    ("pnpx", &[]),
    ("podman", &["build"]),
    ("poetry", &["add"]),
    ("pre-commit", &["try-repo"]),
    ("python", &["install"]),
    ("rye", &["add", "install"]),
    ("uv", &["add", "install", "run", "x"]),
    ("uvx", &[]),
    ("yarn", &["add", "create", "dlx"]),
];

/// Installers for which `user/repository` is an address on GitHub.
const NODE: &[&str] = &["bun", "bunx", "npm", "npx", "pnpm", "pnpx", "yarn"];

#[rustfmt::skip]
const ADDRESSES: &[&str] = &[
    "http://", "https://", "git+", "git://", "git@", "ssh://", "bb:", "bitbucket:", "gh:", "gist:", "github:", "gitlab:", "gl:", "sourcehut:",
];

/// Options whose value is the address of a registry or a proxy, not of a package.
#[rustfmt::skip]
const REGISTRIES: &[&str] = &[
    "--build-arg", "--cache-from", "--cache-to", "--default-index", "--extra-index-url", "--find-links", "--index", "--index-url",
    "--label", "--proxy", "--registry", "--source",
];

/// Programs that build or test the project in a folder that they are given.
#[rustfmt::skip]
const BUILDERS: &[&str] = &[
    "ansible-playbook", "ant", "bazel", "bundle", "bun", "cargo", "cmake", "composer", "deno", "docker", "docker-compose", "dotnet", "gmake", "go",
    "gradle", "jest", "just", "make", "meson", "mvn", "ninja", "node", "npm", "pip", "pip3", "pipx", "pnpm", "podman", "poetry", "pytest", "rake",
    "scons", "swift", "terraform", "tox", "uv", "vitest", "yarn", "zig",
];

pub(super) fn is_installer(name: &str) -> bool {
    INSTALLERS.iter().any(|(program, _)| *program == name)
}

/// Returns `true` if a package manager installs or runs something by its address.
pub(super) fn is_from_address(name: &str, command: &Command) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if name == "deno" && command.texts().next().is_some_and(is_address) {
        return true;
    }
    let Some((_, actions)) = INSTALLERS.iter().find(|(program, _)| *program == name) else { return false };
    if !actions.is_empty() && !command.texts().take(4).any(|text| actions.contains(&text)) {
        return false;
    }
    if name == "cargo" && command.texts().any(|text| text == "--git" || text.starts_with("--git=")) {
        return true;
    }
    let words = command.arguments();
    let before = std::iter::once(None).chain(words.iter().map(Some));
    let is_installed = |(word, before): (&Word, Option<&Word>)| {
        let (option, value) = word.lead().split_once('=').filter(|(name, _)| name.starts_with("--")).unzip();
        let option = option.or(before.and_then(Word::literal));
        let is_pip = matches!(name, "pip" | "pipx" | "uv" | "uvx");
        let is_registry = |option| REGISTRIES.contains(&option) || is_pip && matches!(option, "-f" | "-i");
        !option.is_some_and(is_registry) && is_package_address(value.unwrap_or(word.lead()))
    };
    words.iter().zip(before).any(is_installed)
        || name == "go" && command.texts().any(is_module_version)
        || NODE.contains(&name) && names_repository(name, command)
}

fn is_address(text: &str) -> bool {
    ADDRESSES.iter().any(|scheme| text.starts_with(scheme))
}

/// Returns `true` for an address, also in `name @ address`, `name@address` and `-eaddress`.
fn is_package_address(text: &str) -> bool {
    let named = text.split_once(" @ ").or_else(|| text.split_once('@')).map_or("", |(_, address)| address);
    let is_named = named.contains("://") || named.starts_with("github:");
    is_address(text) || is_named && is_address(named.trim_start()) || text.strip_prefix("-e").is_some_and(is_address)
}

/// Returns `true` for a module at a version: `example.com/tool@latest`.
fn is_module_version(text: &str) -> bool {
    let Some((path, _)) = text.split_once('@') else { return false };
    path.split_once('/').is_some_and(|(host, _)| host.contains('.') && !host.starts_with(['.', '-']))
}

/// Returns `true` if a package is named as `user/repository`.
fn names_repository(name: &str, command: &Command) -> bool {
    if let Some(at) = packages::tool_at(name, &command.words) {
        // The words behind the tool are its own.
        let texts: Vec<&str> = command.words.iter().take(at + 1).skip(1).filter_map(Word::literal).collect();
        return texts.iter().any(|text| is_repository(text.strip_prefix("--package=").unwrap_or(text)));
    }
    let mut operands = command.texts().filter(|text| !text.starts_with('-'));
    let creates = operands.next().is_some_and(|action| matches!(action, "create" | "init"));
    operands.take(if creates { 1 } else { usize::MAX }).any(is_repository)
}

fn is_repository(text: &str) -> bool {
    let path = text.split('#').next().unwrap_or(text);
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    path.split_once('/').is_some_and(|(user, repository)| is_name(user) && is_name(repository))
}

/// Returns `true` if a program builds a downloaded project that its arguments name.
pub(super) fn names_download(name: &str, command: &Command, walker: &Walker) -> bool {
    let values = |word: &Word| {
        let text = word.lead();
        let value = text.split_once('=').filter(|(option, _)| option.starts_with('-')).map(|(_, value)| value);
        let attached = text.strip_prefix('-').and_then(|option| option.get(1..)).filter(|_| !text.starts_with("--"));
        [Some(text), value, attached].into_iter().flatten().any(|path| !path.is_empty() && walker.is_in_download(path))
    };
    BUILDERS.contains(&name) && command.arguments().iter().any(values)
}

/// Returns `true` if a program runs in a downloaded project, and is not known to only read and write files there.
pub(super) fn runs_in_download(name: &str, command: &Command, walker: &Walker) -> bool {
    let is_harmless = writes::records_all(name)
        || readers::only_reads_files(name, command) && !readers::loads_code(name, command)
        || services::is_known(name) && !BUILDERS.contains(&name)
        || matches!(name, "sed" | "gsed" | "test" | "[" | "date" | "hostname" | "read" | "printf");
    !is_harmless && walker.is_within_download()
}
