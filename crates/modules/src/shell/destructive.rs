//! Commands after which something is gone.

use super::command::Command;
use super::options::Arguments;
use super::word::Word;
use super::{git, writes};

/// Programs that destroy whatever their arguments are, and what they do.
const ALWAYS: [(&str, &str); 22] = [
    ("shred", "overwrites files"),
    ("wipefs", "wipes a file system"),
    ("truncate", "cuts files off"),
    ("killall", "stops processes by name"),
    ("pkill", "stops processes by name"),
    ("shutdown", "stops the machine"),
    ("reboot", "stops the machine"),
    ("halt", "stops the machine"),
    ("poweroff", "stops the machine"),
    ("userdel", "deletes an account"),
    ("deluser", "deletes an account"),
    ("groupdel", "deletes a group"),
    ("fdisk", "changes partitions"),
    ("sfdisk", "changes partitions"),
    ("parted", "changes partitions"),
    ("mkswap", "writes over a device"),
    ("blkdiscard", "wipes a device"),
    ("cryptsetup", "changes encrypted devices"),
    ("lvremove", "deletes a volume"),
    ("dropdb", "deletes a database"),
    ("srm", "overwrites files"),
    ("vgremove", "deletes volumes"),
];

/// Programs with a subcommand that destroys. All words have to be there.
const SUBCOMMANDS: [(&str, &[&str], &str); 23] = [
    ("docker", &["prune"], "deletes what containers left"),
    ("docker", &["rm"], "deletes containers"),
    ("docker", &["rmi"], "deletes images"),
    ("docker-compose", &["rm"], "deletes containers"),
    ("podman", &["prune"], "deletes what containers left"),
    ("podman", &["rm"], "deletes containers"),
    ("podman", &["rmi"], "deletes images"),
    ("kubectl", &["delete"], "deletes from a cluster"),
    ("kubectl", &["drain"], "empties a node"),
    ("helm", &["uninstall"], "deletes a release"),
    ("helm", &["delete"], "deletes a release"),
    ("terraform", &["destroy"], "destroys infrastructure"),
    ("tofu", &["destroy"], "destroys infrastructure"),
    ("pulumi", &["destroy"], "destroys infrastructure"),
    ("aws", &["s3", "rm"], "deletes from a bucket"),
    ("aws", &["s3", "rb"], "deletes a bucket"),
    ("systemctl", &["poweroff"], "stops the machine"),
    ("systemctl", &["reboot"], "stops the machine"),
    ("gh", &["repo", "delete"], "deletes a repository"),
    ("zfs", &["destroy"], "deletes a file system"),
    ("npm", &["unpublish"], "withdraws a package"),
    ("redis-cli", &["FLUSHALL"], "empties a database"),
    ("redis-cli", &["flushall"], "empties a database"),
];

/// Why the command destroys something, if it does.
pub(super) fn why(name: &str, command: &Command, arguments: &Arguments) -> Option<&'static str> {
    if command.asks_for_help() {
        return None;
    }
    if let Some((_, why)) = ALWAYS.iter().find(|(program, _)| *program == name) {
        return Some(why);
    }
    let has = |word: &str| command.texts().any(|text| text == word);
    let has_all = |words: &[&str]| words.iter().all(|word| has(word));
    if let Some((.., why)) = SUBCOMMANDS.iter().find(|(program, words, _)| *program == name && has_all(words)) {
        return Some(why);
    }
    match name {
        "rm" => remove(command, arguments),
        "find" => has("-delete").then_some("deletes what it finds"),
        "dd" => writes::dd_output(command)
            .any(|file| file.literal() != Some("/dev/null"))
            .then_some("writes over a file or device"),
        "git" => git::destroys(command),
        "docker" | "docker-compose" | "podman" => {
            (has("down") && arguments.may_have("v", &["volumes"])).then_some("deletes volumes")
        }
        "terraform" | "tofu" => (has("apply") && has_flag(command, "destroy")).then_some("destroys infrastructure"),
        "chmod" | "chown" | "chgrp" => {
            arguments.may_have("R", &["recursive"]).then_some("changes permissions recursively")
        }
        "kill" => kill(command),
        "mv" => arguments.last().iter().any(|word| word.literal() == Some("/dev/null")).then_some("throws files away"),
        "cp" | "tee" => arguments.operands().any(|word| is_disk(word.lead())).then_some("writes over a device"),
        "crontab" => arguments.may_have("r", &[]).then_some("deletes scheduled commands"),
        "iptables" | "ip6tables" => {
            arguments.may_have("FX", &["flush", "delete-chain"]).then_some("deletes firewall rules")
        }
        "nft" => command.texts().any(|text| text.contains("flush")).then_some("deletes firewall rules"),
        "rsync" => arguments.may_have("", &RSYNC_DELETES).then_some("deletes while copying"),
        "init" | "telinit" => {
            let level = |word: &Word| matches!(word.literal(), Some("0" | "6"));
            arguments.first().flatten().any(level).then_some("stops the machine")
        }
        "psql" | "mysql" | "mariadb" | "sqlite3" | "sqlcmd" | "clickhouse-client" | "duckdb" => database(command),
        _ => name.starts_with("mkfs").then_some("makes a new file system"),
    }
}

/// Options of `rsync` that delete here or there.
const RSYNC_DELETES: [&str; 9] = [
    "delete",
    "delete-after",
    "delete-before",
    "delete-delay",
    "delete-during",
    "delete-excluded",
    "delete-missing-args",
    "remove-source-files",
    "remove-sent-files",
];

/// Whether an option is given in the way of programs that write all of them with one hyphen or two.
fn has_flag(command: &Command, name: &str) -> bool {
    let flags = command.texts().filter(|text| text.starts_with('-'));
    flags.map(|text| text.trim_start_matches('-')).any(|text| text.split('=').next() == Some(name))
}

/// Whether `name` is in these tables.
pub(super) fn is_known(name: &str) -> bool {
    const OTHERS: [&str; 16] = [
        "rm",
        "dd",
        "kill",
        "crontab",
        "iptables",
        "ip6tables",
        "nft",
        "init",
        "telinit",
        "psql",
        "mysql",
        "mariadb",
        "sqlite3",
        "sqlcmd",
        "clickhouse-client",
        "duckdb",
    ];
    ALWAYS.iter().any(|(program, _)| *program == name)
        || SUBCOMMANDS.iter().any(|(program, ..)| *program == name)
        || OTHERS.contains(&name)
        || name.starts_with("mkfs")
}

/// Whether a path is a disk, a partition or memory.
pub(super) fn is_disk(path: &str) -> bool {
    const DISKS: [&str; 12] =
        ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "mem", "loop"];
    path.strip_prefix("/dev/").is_some_and(|device| DISKS.iter().any(|disk| device.starts_with(disk)))
}

fn remove(command: &Command, arguments: &Arguments) -> Option<&'static str> {
    if arguments.may_have("rR", &["recursive", "no-preserve-root"]) {
        return Some("deletes recursively");
    }
    let far = |word: &Word| {
        word.literal().is_none()
            || word.lead().starts_with('/')
            || word.raw.starts_with('~')
            || word.lead().contains("..")
    };
    let risky = arguments.operands().count() > 1 || arguments.operands().any(far) || !command.is_certain();
    (arguments.may_have("f", &["force"]) && risky).then_some("deletes by force").or_else(|| {
        // A pattern or an expansion may name anything.
        arguments.operands().any(|word| word.literal().is_none()).then_some("deletes what an expansion names")
    })
}

fn kill(command: &Command) -> Option<&'static str> {
    // The first argument that looks like -1 may be a signal; a later one is "every process".
    let everything = command.texts().skip(1).any(|text| text == "-1");
    everything.then_some("stops every process")
}

fn database(command: &Command) -> Option<&'static str> {
    let statements = || {
        command.arguments().iter().map(|word| word.raw.as_str()).chain(match &command.stdin {
            super::command::Stdin::Text(text) => Some(text.as_str()),
            _ => None,
        })
    };
    let destroys = |text: &str| {
        let words: Vec<String> = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        let has_condition = words.iter().any(|word| word == "where");
        words.windows(2).any(|pair| {
            pair[0] == "drop"
                && matches!(pair[1].as_str(), "table" | "database" | "schema" | "view" | "index" | "user" | "role")
                || pair[0] == "delete" && pair[1] == "from" && !has_condition
                || pair[0] == "truncate"
        })
    };
    statements().any(destroys).then_some("deletes from a database")
}
