//! Programs that use the network.

use super::command::Command;
use super::git;

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
    ("git", &["fetch", "pull", "push", "clone", "ls-remote", "submodule", "send-email", "archive"]),
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
    ("podman", &["pull", "push", "login", "run", "build", "search"]),
    ("openssl", &["s_client", "s_server"]),
];

/// Whether the command is known for using the network.
pub(super) fn uses(name: &str, command: &Command) -> bool {
    if command.asks_for_help() {
        return false;
    }
    ALWAYS.contains(&name)
        || SUBCOMMANDS
            .iter()
            .any(|(program, subcommands)| *program == name && subcommands.contains(&subcommand(name, command).as_str()))
        || matches!(name, "psql" | "mysql" | "redis-cli" | "mongo" | "mongosh") && command.has("h", &["host"])
}

fn subcommand(name: &str, command: &Command) -> String {
    if name == "git" { git::subcommand(command) } else { command.subcommand().to_owned() }
}

/// Whether `name` is in these tables.
pub(super) fn is_known(name: &str) -> bool {
    ALWAYS.contains(&name) || SUBCOMMANDS.iter().any(|(program, _)| *program == name)
}
