//! Programs that run a tool of the project: `npx eslint`, `pnpm --filter x test`.

use super::{packages, programs};

/// Returns the program and its arguments without the options that choose a folder or a package of the workspace.
pub(super) fn canonical<'a>(name: &'a str, arguments: &[&'a str]) -> (&'a str, Vec<&'a str>) {
    // Options with a value, and those without.
    let (valued, plain): (&[&str], &[&str]) = match name {
        "cargo" => match arguments.split_first() {
            Some((toolchain, rest)) if programs::is_toolchain(toolchain) => return (name, rest.to_vec()),
            _ => (&[], &[]),
        },
        "git" => (&["-C"], &["--no-pager"]),
        "npm" => (&["--prefix", "-C", "-w", "--workspace"], &["-s", "--silent", "-ws", "--workspaces", "--if-present"]),
        "pnpm" => (
            &["-C", "--dir", "-F", "--filter"],
            &[
                "-r",
                "--recursive",
                "-w",
                "--workspace-root",
                "-s",
                "--silent",
                "--parallel",
                "--stream",
                "--if-present",
            ],
        ),
        "yarn" => (&["--cwd", "workspace"], &["-s", "--silent"]),
        "bun" => (&["--cwd", "-F", "--filter"], &["--silent"]),
        "make" => (&["-C", "--directory"], &["-s", "--silent", "--no-print-directory"]),
        "docker" if arguments.first() == Some(&"compose") => {
            let (_, rest) = canonical("docker-compose", arguments.get(1..).unwrap_or_default());
            return ("docker compose", rest);
        }
        "docker" if arguments.starts_with(&["buildx", "build"]) => {
            return (name, arguments.get(1..).unwrap_or_default().to_vec());
        }
        "docker-compose" => (
            &[
                "-f",
                "--file",
                "-p",
                "--project-name",
                "--profile",
                "--env-file",
                "--project-directory",
                "--ansi",
                "--progress",
            ],
            &[],
        ),
        "uv" => (&["--directory", "--project"], &["-q", "--quiet"]),
        "tox" | "nox" => (&["-e", "-s"], &[]),
        _ => (&[], &[]),
    };
    let mut rest = arguments;
    // A folder elsewhere is left where it is.
    let is_here = |value: &str| !value.starts_with(['/', '~']);
    while let [option, after @ ..] = rest {
        rest = match (option.split_once('='), after) {
            // The name of an environment of `tox` is a task.
            _ if matches!(name, "tox" | "nox") && valued.contains(option) => return (name, after.to_vec()),
            (None, _) if plain.contains(option) => after,
            (None, [value, after @ ..]) if valued.contains(option) && is_here(value) => after,
            (Some((option, value)), _) if option.starts_with("--") && valued.contains(&option) && is_here(value) => {
                after
            }
            _ => break,
        };
    }
    (if name == "docker-compose" { "docker compose" } else { name }, rest.to_vec())
}

/// Programs that run another one, and nothing of their own.
pub(super) const WRAPPERS: [&str; 6] = ["timeout", "time", "nice", "stdbuf", "ionice", "nohup"];

/// Returns `true` for a program that only runs another one, which is a part of its own.
pub(super) fn passes_through(name: &str, arguments: &[&str]) -> bool {
    let is_plain = |program: &str| !program.starts_with('-');
    let (name, arguments) = canonical(name, arguments);
    match (name, arguments.as_slice()) {
        (wrapper, _) if WRAPPERS.contains(&wrapper) => true,
        ("uv" | "poetry" | "pdm" | "pipenv", ["run", program, ..]) => is_plain(program),
        ("bundle" | "pnpm" | "yarn", ["exec", program, ..]) => is_plain(program),
        ("docker compose", ["run" | "exec", rest @ ..]) | ("docker" | "podman", ["exec", rest @ ..]) => {
            is_service(rest)
        }
        ("npx" | "bunx" | "pnpx" | "uvx", rest)
        | ("npm", ["exec" | "x", "--", rest @ ..] | ["exec" | "x", rest @ ..])
        | ("pnpm" | "yarn", ["dlx", rest @ ..])
        | ("bun", ["x", rest @ ..])
        | ("uv", ["tool", "run", rest @ ..]) => is_common_tool(rest),
        _ => false,
    }
}

/// Returns `true` if a downloaded tool is one that projects commonly run so, in the version of the project or the newest.
fn is_common_tool(arguments: &[&str]) -> bool {
    const OPTIONS: [&str; 8] =
        ["-y", "--yes", "--no", "--no-install", "-q", "--quiet", "--offline", "--prefer-offline"];
    let mut words = arguments.iter().skip_while(|word| OPTIONS.contains(word));
    words.next().is_some_and(|tool| packages::COMMON.contains(tool))
}

/// Returns `true` if the options before a container, or a service, give the program in it nothing more.
fn is_service(arguments: &[&str]) -> bool {
    const OPTIONS: [&str; 8] = ["-T", "-i", "-t", "-it", "--rm", "--no-deps", "--no-TTY", "-d"];
    let mut words = arguments.iter().skip_while(|word| OPTIONS.contains(word));
    words.next().is_some_and(|service| !service.starts_with('-'))
        && words.next().is_some_and(|program| !program.starts_with('-'))
}
