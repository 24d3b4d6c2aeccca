//! Programs that use the network.

use super::command::Command;
use super::options::Arguments;
use super::{git, syntax};

const ALWAYS: [&str; 54] = [
    "curl",
    "wget",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "nc",
    "ncat",
    "netcat",
    "telnet",
    "ftp",
    "tftp",
    "ping",
    "ping6",
    "dig",
    "nslookup",
    "host",
    "whois",
    "traceroute",
    "nmap",
    "socat",
    "aria2c",
    "http",
    "https",
    "xh",
    "gh",
    "glab",
    "hub",
    "aws",
    "gcloud",
    "gsutil",
    "az",
    "kubectl",
    "helm",
    "terraform",
    "npx",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "brew",
    "apk",
    "pacman",
    "rustup",
    "rclone",
    "lynx",
    "w3m",
    "mosh",
    "ansible",
    "ansible-playbook",
    "doctl",
    "flyctl",
    "heroku",
    "s3cmd",
];

/// Programs whose subcommands use the network.
const SUBCOMMANDS: [(&str, &[&str]); 17] = [
    ("npm", &["install", "i", "ci", "add", "update", "publish", "audit", "view", "login", "exec", "outdated"]),
    ("yarn", &["", "install", "add", "upgrade", "publish", "dlx"]),
    ("pnpm", &["install", "i", "add", "update", "publish", "dlx"]),
    ("bun", &["install", "add", "update", "x"]),
    ("pip", &["install", "download", "search"]),
    ("pip3", &["install", "download", "search"]),
    ("uv", &["pip", "add", "sync", "lock", "tool"]),
    ("poetry", &["install", "add", "update", "publish"]),
    ("cargo", &["install", "fetch", "update", "publish", "add", "search", "login", "yank"]),
    ("go", &["get", "install", "mod"]),
    ("gem", &["install", "update", "push", "fetch"]),
    ("bundle", &["install", "update"]),
    ("composer", &["install", "require", "update"]),
    ("docker", &["pull", "push", "login", "run", "build", "search", "compose"]),
    ("docker-compose", &["pull", "push", "build"]),
    ("podman", &["pull", "push", "login", "run", "build", "search"]),
    ("openssl", &["s_client", "s_server"]),
];

/// Whether the command is known for using the network.
pub(super) fn uses(name: &str, command: &Command, arguments: &Arguments) -> bool {
    if command.asks_for_help() {
        return false;
    }
    match name {
        "git" => git::calls(command).iter().any(git::Call::uses_network),
        "psql" | "mysql" | "redis-cli" | "mongo" | "mongosh" => arguments.may_have("h", &["host"]),
        "python" | "python3" => {
            let is_pip = arguments.values("m", &[]).any(|module| module.literal() == Some("pip"));
            is_pip && has_subcommand("pip", arguments)
        }
        // The first argument may say with which toolchain it runs.
        "cargo" if command.arguments().first().is_some_and(|word| word.lead().starts_with('+')) => {
            let words = command.arguments().get(1..).unwrap_or_default();
            has_subcommand(name, &Arguments::read(syntax::of(name), words))
        }
        _ => ALWAYS.contains(&name) || has_subcommand(name, arguments),
    }
}

/// Whether the first operand may be a subcommand that uses the network.
fn has_subcommand(name: &str, arguments: &Arguments) -> bool {
    let Some((_, subcommands)) = SUBCOMMANDS.iter().find(|(program, _)| *program == name) else { return false };
    arguments.first().any(|word| word.map_or_else(|| subcommands.contains(&""), |word| word.may_be(subcommands)))
}

/// Whether `name` is in these tables.
pub(super) fn is_known(name: &str) -> bool {
    ALWAYS.contains(&name) || SUBCOMMANDS.iter().any(|(program, _)| *program == name)
}
