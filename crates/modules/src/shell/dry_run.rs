//! Dry runs: commands that only print their effects.

use super::command::Command;
use super::options::Arguments;

/// Programs that support `--dry-run`, with the equivalent letters and other long options.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("ansible-playbook", "C", &["check"]),
    ("apt", "s", APT),
    ("apt-get", "s", APT),
    ("argocd", "", &[]),
    ("aws", "", &["dryrun"]),
    ("brew", "n", &[]),
    ("cargo", "n", &[]),
    ("certbot", "", &[]),
    ("dnf", "", &["assumeno"]),
    ("docker-compose", "", &[]),
    ("firebase", "", &[]),
    ("flux", "", &[]),
    ("gcloud", "", &[]),
    ("gmake", "n", MAKE),
    ("gradle", "m", &[]),
    ("gradlew", "m", &[]),
    ("helm", "", &[]),
    ("kubectl", "", &[]),
    ("make", "n", MAKE),
    ("ninja", "n", &[]),
    ("npm", "", &[]),
    ("oc", "", &[]),
    ("patch", "", &[]),
    ("pip", "", &[]),
    ("pip3", "", &[]),
    ("pnpm", "", &[]),
    ("poetry", "", &[]),
    ("rclone", "n", &[]),
    ("release-it", "", &[]),
    ("rename", "n", &["just-print", "no-act"]),
    ("rsync", "n", &[]),
    ("semantic-release", "d", &[]),
    ("stow", "n", &["no", "simulate"]),
    ("uv", "", &[]),
    ("wrangler", "", &[]),
    ("yarn", "", &[]),
    ("yum", "", &["assumeno"]),
];
const APT: &[&str] = &["simulate", "just-print", "recon", "no-act"];
const MAKE: &[&str] = &["just-print", "recon"];

/// Subcommands that pass their arguments to a program that may not support the option.
const RUNS: &[&str] = &["exec", "run", "x", "dlx", "create", "debug", "test", "start"];

/// Returns `true` if a command is certainly a dry run.
pub(super) fn is_dry_run(name: &str, command: &Command, arguments: &Arguments) -> bool {
    if matches!(name, "docker" | "podman") {
        return command.texts().take(2).eq(["compose", "--dry-run"]);
    }
    let Some((_, letters, names)) = PROGRAMS.iter().find(|(program, ..)| *program == name) else { return false };
    let texts: Vec<&str> = command.texts().take_while(|text| *text != "--").collect();
    let is_flag = |text: &str| {
        let (option, value) = text.split_once('=').unwrap_or((text, "true"));
        let name = option.strip_prefix("--").unwrap_or_default();
        (name == "dry-run" || names.contains(&name)) && matches!(value, "true" | "client" | "server")
    };
    let is_off = |text: &str| matches!(text, "false" | "none" | "no" | "0");
    let takes_back = |text: &str| text.starts_with("--no-dry") || text.strip_prefix("--dry-run=").is_some_and(is_off);
    // `kubectl run` only creates a manifest; other programs run something else.
    let runs = texts.first().is_some_and(|first| RUNS.contains(first) && !(name == "kubectl" && *first != "exec"));
    let by_name =
        texts.iter().enumerate().any(|(at, text)| is_flag(text) && !texts.get(at + 1).is_some_and(|next| is_off(next)));
    !runs
        && command.is_certain()
        && !texts.iter().any(|text| takes_back(text))
        && (by_name || !letters.is_empty() && arguments.surely_has(letters, &[]))
}
