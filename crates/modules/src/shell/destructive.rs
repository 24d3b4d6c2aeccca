//! Destructive commands.

use super::command::{Command, Stdin};
use super::options::Arguments;
use super::word::Word;
use super::{database, git, readonly, sed, shells, verbs, wrappers, writes};

/// Programs that are destructive with any arguments, with the reason.
const ALWAYS: [(&str, &str); 40] = [
    ("passwd", "changes an account"),
    ("gpasswd", "changes an account"),
    ("chsh", "changes an account"),
    ("chpasswd", "changes accounts"),
    ("killall5", "stops every process"),
    ("skill", "stops processes"),
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
    ("pvremove", "deletes volumes"),
    ("gdisk", "changes partitions"),
    ("sgdisk", "changes partitions"),
    ("cfdisk", "changes partitions"),
    ("hdparm", "changes disks"),
    ("badblocks", "writes over a device"),
    ("swapoff", "takes memory away"),
    ("rimraf", "deletes recursively"),
    ("wipe", "overwrites files"),
    ("scrub", "overwrites files"),
    ("usermod", "changes an account"),
    ("delgroup", "deletes a group"),
];

/// Destructive subcommands, with the reason. All words have to be present.
const SUBCOMMANDS: [(&str, &[&str], &str); 27] = [
    ("docker", &["prune"], "deletes what containers left"),
    ("docker", &["rm"], "deletes containers"),
    ("docker", &["rmi"], "deletes images"),
    ("docker-compose", &["rm"], "deletes containers"),
    ("podman", &["prune"], "deletes what containers left"),
    ("podman", &["rm"], "deletes containers"),
    ("podman", &["rmi"], "deletes images"),
    ("docker", &["kill"], "stops a container at once"),
    ("docker", &["volume", "rm"], "deletes volumes"),
    ("kubectl", &["replace"], "replaces what is in a cluster"),
    ("kubectl", &["cordon"], "closes a node"),
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

pub(super) fn find_reason(name: &str, command: &Command, arguments: &Arguments) -> Option<&'static str> {
    if command.asks_for_help() || name == "shred" && command.arguments().is_empty() {
        return None;
    }
    if let Some((_, why)) = ALWAYS.iter().find(|(program, _)| *program == name) {
        return Some(why);
    }
    let has = |word: &str| command.texts().any(|text| text == word);
    let has_all = |words: &[&str]| words.iter().all(|word| has(word));
    if prints_help(command) {
        return None;
    }
    if let Some((.., why)) = SUBCOMMANDS.iter().find(|(program, words, _)| *program == name && has_all(words)) {
        return Some(why);
    }
    own_rules(name, command, arguments)
        .or_else(|| changes_device(name, arguments).then_some("changes a device"))
        .or_else(|| database::destroys(name, command))
        .or_else(|| verbs::destroys(name, command))
}

/// Returns `true` for programs that shrink or merge volumes.
fn changes_volume(name: &str) -> bool {
    let action = ["lv", "vg", "pv"].iter().find_map(|kind| name.strip_prefix(kind));
    matches!(action, Some("remove" | "reduce" | "convert" | "resize" | "split" | "merge" | "move"))
}

/// Returns `true` if a command only prints help, such as `kubectl delete --help`. Programs that run others may pass the option
/// on.
fn prints_help(command: &Command) -> bool {
    const RUN: [&str; 4] = ["run", "exec", "--", "compose"];
    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    let texts: Option<Vec<&str>> = command.arguments().iter().map(Word::literal).collect();
    match texts.as_deref() {
        Some([names @ .., "--help"]) if (1..=3).contains(&names.len()) => {
            names.iter().all(|text| is_name(text) && !text.starts_with('-') && !RUN.contains(text))
        }
        _ => false,
    }
}

/// Returns the reason for a program with its own rules.
fn own_rules(name: &str, command: &Command, arguments: &Arguments) -> Option<&'static str> {
    let has = |word: &str| command.texts().any(|text| text == word);
    match name {
        "rm" => remove(command, arguments),
        "find" => find_deletes(command).then_some("deletes what it finds"),
        "dd" => writes::dd_output(command)
            .any(|file| file.literal() != Some("/dev/null"))
            .then_some("writes over a file or device"),
        "git" => git::destroys(command),
        "docker" | "docker-compose" | "podman" => {
            (has("down") && arguments.may_have("v", &["volumes"])).then_some("deletes volumes")
        }
        "terraform" | "tofu" => {
            let applies = has("apply") && (has_flag(command, "destroy") || has_flag(command, "auto-approve"));
            let state = has("state") && (has("rm") || has("mv")) || has("taint") || has("force-unlock");
            applies.then_some("destroys infrastructure").or(state.then_some("changes what infrastructure is known"))
        }
        "chmod" if command.texts().any(|text| !text.is_empty() && text.bytes().all(|b| b == b'0')) => {
            Some("takes permissions away")
        }
        "umount" => (arguments.operands().count() > 0).then_some("takes a file system away"),
        "mount" => arguments.may_have("BMR", &["bind", "move", "rbind"]).then_some("hides files"),
        "dpkg" | "rpm" => arguments
            .may_have(if name == "rpm" { "e" } else { "rP" }, &["remove", "purge", "erase"])
            .then_some("removes packages"),
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "chcon" | "setfattr" => {
            arguments.may_have("R", &["recursive"]).then_some("changes permissions recursively")
        }
        "kill" => kill(command),
        "mv" => moves_away(arguments),
        "cp" | "install" => has("/dev/null").then_some("empties a file"),
        "ln" => (has("/dev/null") && arguments.may_have("f", &["force"])).then_some("empties a file"),
        "sed" | "gsed" if arguments.may_have("iI", &["in-place"]) => {
            let is_quiet = arguments.surely_has("n", &["quiet", "silent"]);
            sed::empties(command, is_quiet).then_some("empties a file")
        }
        "crontab" => {
            let is_given = arguments.operands().count() > 0 || !matches!(command.stdin, Stdin::Inherited);
            let is_replaced = is_given && !arguments.may_have("l", &[]);
            let removes = arguments.may_have("r", &[]).then_some("deletes scheduled commands");
            removes.or_else(|| is_replaced.then_some("replaces scheduled commands"))
        }
        "patch" => arguments.may_have("R", &["reverse"]).then_some("discards changes"),
        "iptables" | "ip6tables" => {
            arguments.may_have("FX", &["flush", "delete-chain"]).then_some("deletes firewall rules")
        }
        "nft" => command.texts().any(|text| text.contains("flush")).then_some("deletes firewall rules"),
        "rsync" => {
            let is_dry = arguments.surely_has("n", &["dry-run"]);
            (arguments.may_have("", &RSYNC_DELETES) && !is_dry).then_some("deletes while copying")
        }
        "tar" => command
            .texts()
            .any(|text| text.starts_with("--remove-f"))
            .then_some("deletes what it archives")
            .or_else(|| command.texts().any(|text| text == "--delete").then_some("deletes from an archive")),
        "zip" => arguments
            .surely_has("m", &["move"])
            .then_some("deletes what it archives")
            .or_else(|| arguments.surely_has("d", &["delete"]).then_some("deletes from an archive")),
        "7z" | "7za" | "7zz" | "7zr" => has("-sdel").then_some("deletes what it archives"),
        "init" | "telinit" => {
            let level = |word: &Word| matches!(word.literal(), Some("0" | "6"));
            arguments.first().flatten().any(level).then_some("stops the machine")
        }
        "systemctl" | "service" | "launchctl" | "rc-service" | "ufw" => {
            const STOPS: [&str; 12] = [
                "stop",
                "disable",
                "mask",
                "kill",
                "isolate",
                "unload",
                "remove",
                "bootout",
                "reset",
                "halt",
                "emergency",
                "rescue",
            ];
            command.texts().any(|text| STOPS.contains(&text)).then_some("stops or removes a service")
        }
        "history" => arguments.may_have("cd", &[]).then_some("deletes the shell's history"),
        "diskutil" | "hdiutil" => command
            .texts()
            .any(|text| {
                text.to_ascii_lowercase().starts_with("erase") || text.contains("artition") || text == "secureErase"
            })
            .then_some("changes disks"),
        "npm" | "yarn" | "pnpm" | "bun" | "make" | "just" | "task" | "rake" => {
            let is_name = |text: &&str| !text.starts_with('-') && !text.contains(['/', '=']);
            let mut words = command.texts().filter(is_name);
            let runs =
                name == "make" || name == "just" || name == "task" || name == "rake" || words.next() == Some("run");
            (runs && words.take(3).any(verbs::is_destructive)).then_some("may destroy something, by its words")
        }
        "hg" => command.texts().any(|text| matches!(text, "--clean" | "-C" | "strip")).then_some("discards changes"),
        "ssh-add" => arguments.may_have("dD", &[]).then_some("removes keys"),
        "ssh-keygen" => arguments.may_have("R", &[]).then_some("removes keys"),
        "nginx" => command.texts().any(|text| matches!(text, "stop" | "quit")).then_some("stops or removes a service"),
        "nc" | "ncat" | "netcat" | "telnet" | "socat" => match &command.stdin {
            Stdin::Text(text) => verbs::is_request(text).then_some("asks a service to delete"),
            Stdin::Inherited | Stdin::Unknown => None,
        },
        "drop" | "delete" => database::deletes(&command.source_text()).then_some("deletes from a database"),
        _ if changes_volume(name) => Some("changes volumes"),
        _ if name.starts_with("mkfs") || name == "newfs" => Some("makes a new file system"),
        _ => None,
    }
}

/// Returns `true` if an operand is a disk, unless the program only reads it or runs another program.
fn changes_device(name: &str, arguments: &Arguments) -> bool {
    const READ: [&str; 20] = [
        "lsblk", "blkid", "smartctl", "findmnt", "udevadm", "mount", "umount", "sync", "test", "[", "printf", "rg",
        "awk", "sed", "xxd", "blockdev", "dmesg", "lsof", "fuser", "iostat",
    ];
    arguments.operands().any(|word| is_disk(word.lead()))
        && !READ.contains(&name)
        && !readonly::is_reader(name)
        && !wrappers::is_known(name)
        && !shells::is_known(name)
}

/// Returns `true` if `find` deletes. The word after a test is an argument, not an action.
fn find_deletes(command: &Command) -> bool {
    const TAKES: [&str; 34] = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-lname",
        "-ilname",
        "-type",
        "-xtype",
        "-size",
        "-mtime",
        "-atime",
        "-ctime",
        "-mmin",
        "-amin",
        "-cmin",
        "-newer",
        "-anewer",
        "-cnewer",
        "-perm",
        "-user",
        "-group",
        "-uid",
        "-gid",
        "-inum",
        "-links",
        "-samefile",
        "-fstype",
        "-maxdepth",
        "-mindepth",
        "-printf",
    ];
    let mut words = command.arguments().iter();
    while let Some(word) = words.next() {
        match word.literal() {
            Some("-delete") => return true,
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                // The command that follows is analysed separately.
                words.by_ref().find(|word| matches!(word.literal(), Some(";" | "+")));
            }
            Some(test) if TAKES.contains(&test) => drop(words.next()),
            _ => {}
        }
    }
    false
}

/// Returns the reason if `mv` loses files, or moves all files at once.
fn moves_away(arguments: &Arguments) -> Option<&'static str> {
    let last = arguments.last();
    let is_temporary = |word: &Word| ["/tmp", "/var/tmp"].iter().any(|folder| word.lead().starts_with(folder));
    if last.iter().any(|word| word.literal() == Some("/dev/null")) {
        return Some("throws files away");
    }
    if arguments.operands().any(|word| matches!(word.raw.as_str(), "*" | "./*" | ".*")) {
        return Some("moves everything away");
    }
    let is_away = last.iter().any(|word| is_temporary(word)) && !arguments.operands().all(is_temporary);
    is_away.then_some("moves files to a temporary folder")
}

/// Options of `rsync` that delete files on either side.
pub(super) const RSYNC_DELETES: [&str; 9] = [
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

/// Checks for an option of programs that accept one hyphen or two.
fn has_flag(command: &Command, name: &str) -> bool {
    let flags = command.texts().filter(|text| text.starts_with('-'));
    flags.map(|text| text.trim_start_matches('-')).any(|text| text.split('=').next() == Some(name))
}

/// Returns `true` if `name` is in these tables.
pub(super) fn is_known(name: &str) -> bool {
    const OTHERS: [&str; 24] = [
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
        "cp",
        "mv",
        "tar",
        "chmod",
        "chown",
        "systemctl",
        "mongo",
        "mongosh",
    ];
    ALWAYS.iter().any(|(program, _)| *program == name)
        || SUBCOMMANDS.iter().any(|(program, ..)| *program == name)
        || OTHERS.contains(&name)
        || name.starts_with("mkfs")
}

/// Returns `true` if a path is a disk, a partition or memory.
pub(super) fn is_disk(path: &str) -> bool {
    const DISKS: [&str; 24] = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "md", "mem", "loop", "dm-", "zd", "nbd", "rbd",
        "dasd", "pmem", "ram", "sr", "mtd", "ubd", "bcache", "drbd", "zram",
    ];
    // Folders of other devices; all others belong to volumes.
    const OTHERS: [&str; 16] = [
        "fd", "pts", "shm", "snd", "dri", "input", "bus", "net", "tcp", "udp", "mqueue", "serial", "char", "v4l",
        "vfio", "cpu",
    ];
    path.strip_prefix("/dev/").is_some_and(|device| {
        let folder = device.split_once('/').map(|(folder, _)| folder);
        DISKS.iter().any(|disk| device.starts_with(disk)) || folder.is_some_and(|folder| !OTHERS.contains(&folder))
    })
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
    // A first argument such as -1 may be a signal; a later one means "every process".
    let everything = command.texts().skip(1).any(|text| text == "-1");
    let first = command.texts().any(|text| text == "1");
    everything.then_some("stops every process").or_else(|| first.then_some("stops the machine"))
}
