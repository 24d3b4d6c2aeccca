//! Programs that use the network.

use super::command::Command;
use super::options::Arguments;
use super::walk::Walker;
use super::word::Word;
use super::{containers, fetch, git, packages, services, syntax, verbs};

const ALWAYS: [&str; 59] = [
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
    "nsupdate",
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
    "uvx",
    "bunx",
    "pnpx",
    "tofu",
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

/// Subcommands that use the network. Those that publish with `npm` and similar programs are in [`packages::NPM_SENDS`].
const SUBCOMMANDS: [(&str, &[&str]); 18] = [
    ("npm", &["install", "i", "ci", "add", "update", "audit", "view", "exec", "outdated", "x", "create", "init"]),
    ("yarn", &["", "install", "add", "upgrade", "dlx", "create"]),
    ("pnpm", &["install", "i", "add", "update", "dlx", "create"]),
    ("bun", &["install", "add", "update", "x", "create"]),
    ("pip", &["install", "download", "search"]),
    ("pip3", &["install", "download", "search"]),
    ("uv", &["pip", "add", "sync", "lock", "tool", "publish"]),
    ("poetry", &["install", "add", "update", "publish"]),
    ("cargo", &["install", "fetch", "update", "publish", "add", "search", "login", "yank", "owner"]),
    ("go", &["get", "install", "mod"]),
    ("gem", &["install", "update", "push", "fetch", "yank", "owner"]),
    ("bundle", &["install", "update"]),
    ("composer", &["install", "require", "update"]),
    ("docker", &["pull", "push", "login", "run", "build", "search", "compose"]),
    ("docker-compose", &["pull", "push", "build"]),
    ("podman", &["pull", "push", "login", "run", "build", "search"]),
    ("openssl", &["s_client", "s_server"]),
    ("twine", &["upload"]),
];

/// Records use of the network, and data that is sent.
pub(super) fn note(name: &str, command: &Command, arguments: &Arguments, is_dry_run: bool, walker: &mut Walker) {
    if matches!(name, "curl" | "wget" | "http" | "https" | "xh") {
        return note_fetch(name, command, arguments, walker);
    }
    let written = command.source_text();
    if !uses_network(name, command, arguments) {
        if !is_dry_run && verbs::publishes(name, command) {
            walker.sends("may publish something, by its words", &written);
        }
        return;
    }
    let hosts = command.texts().filter_map(address);
    let hosts: Vec<String> = hosts.collect();
    let is_local = !hosts.is_empty() && hosts.iter().all(|host| fetch::is_loopback(host));
    walker.network(hosts);
    let stays = is_local && matches!(name, "nc" | "ping" | "nmap" | "telnet");
    if !stays && !is_dry_run && !only_reads(name, command, arguments, walker) {
        walker.sends("sends data or changes something elsewhere", &written);
    }
}

fn note_fetch(name: &str, command: &Command, arguments: &Arguments, walker: &mut Walker) {
    if command.asks_for_help() {
        return;
    }
    let found = fetch::fetch(name, command, arguments, |word| walker.expand_address(word));
    let written = command.source_text();
    if found.deletes {
        walker.destroys("asks a service to delete", &written);
    }
    if found.is_local {
        // Requests to this machine do not use the network.
        return walker.taint();
    }
    walker.network(found.hosts);
    if found.reads {
        walker.downloads();
    } else {
        walker.sends("sends data, or uses an unknown address", &written);
        walker.downloads();
    }
}

/// Returns the host of a URL, or of an address such as `me@host:file`.
fn address(text: &str) -> Option<String> {
    let is_address = text.contains("://")
        || text.contains('@') && text.contains(':')
        || matches!(text, "localhost" | "127.0.0.1" | "::1");
    is_address.then(|| fetch::host(text)).flatten()
}

/// Returns `true` if a command that uses the network only reads, or fetches packages by name.
fn only_reads(name: &str, command: &Command, arguments: &Arguments, walker: &Walker) -> bool {
    if let Some(reads) = services::only_reads(name, command) {
        return reads && !(walker.is_elevated() && has_word(command, "install"));
    }
    match name {
        "git" => git::calls(command).iter().all(git::Call::only_fetches),
        // The command on the other machine, or in the container, is judged separately.
        "ssh" => true,
        "docker" | "podman" if containers::runs(command) => true,
        "npx" | "uvx" | "bunx" | "pnpx" => true,
        "psql" | "mysql" | "mariadb" | "redis-cli" | "mongo" | "mongosh" => {
            let mut hosts = arguments.values("h", &["host"]);
            hosts.all(|host| host.literal().is_some_and(fetch::is_loopback))
        }
        "scp" | "rsync" => {
            let is_remote = |word: &&Word| word.literal().is_none_or(|text| text.contains(':'));
            let last = arguments.last();
            command.texts().count() == command.arguments().len() && !last.iter().any(is_remote)
        }
        "python" | "python3" => {
            let words = command.arguments().iter().skip_while(|word| word.literal() != Some("pip"));
            let pip = Command { words: words.cloned().collect(), stdin: super::command::Stdin::default() };
            packages::only_fetches("pip", &pip).unwrap_or(false)
        }
        _ => packages::only_fetches(name, command).unwrap_or(false) && !walker.is_elevated(),
    }
}

fn has_word(command: &Command, word: &str) -> bool {
    command.texts().any(|text| text == word)
}

fn uses_network(name: &str, command: &Command, arguments: &Arguments) -> bool {
    let tells = |text: &str| matches!(text, "-V" | "-h" | "--version" | "--help");
    if command.asks_for_help() || matches!(name, "ssh" | "scp") && command.texts().any(tells) {
        return false;
    }
    match name {
        "git" => git::calls(command).iter().any(git::Call::uses_network),
        "psql" | "mysql" | "redis-cli" | "mongo" | "mongosh" => {
            let is_local =
                |word: &Word| word.literal().is_some_and(|host| fetch::is_loopback(host) || host.starts_with('/'));
            arguments.may_have("h", &["host"]) && !arguments.values("h", &["host"]).all(is_local)
        }
        // Without another machine, the program copies local files.
        "rsync" => command.arguments().iter().any(|word| word.literal().is_none_or(|text| text.contains(':'))),
        "python" | "python3" => {
            let is_pip = arguments.values("m", &[]).any(|module| module.literal() == Some("pip"));
            is_pip && has_subcommand("pip", arguments)
        }
        // The first argument may select the toolchain.
        "cargo" if command.arguments().first().is_some_and(|word| word.lead().starts_with('+')) => {
            let words = command.arguments().get(1..).unwrap_or_default();
            has_subcommand(name, &Arguments::read(syntax::for_program(name), words))
        }
        _ => ALWAYS.contains(&name) || has_subcommand(name, arguments),
    }
}

/// Returns `true` if the first operand may be a subcommand that uses the network.
fn has_subcommand(name: &str, arguments: &Arguments) -> bool {
    let Some((_, subcommands)) = SUBCOMMANDS.iter().find(|(program, _)| *program == name) else { return false };
    let sends = if packages::is_npm(name) { packages::NPM_SENDS } else { &[] };
    let fits = |word: &Word| word.may_be(subcommands) || word.may_be(sends);
    arguments.first().any(|word| word.map_or_else(|| subcommands.contains(&""), fits))
}

/// Returns `true` if `name` is in these tables.
pub(super) fn is_known(name: &str) -> bool {
    ALWAYS.contains(&name) || SUBCOMMANDS.iter().any(|(program, _)| *program == name)
}
