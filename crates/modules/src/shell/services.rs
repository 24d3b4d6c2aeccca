//! Command-line clients of services, and their commands that only read.

use super::command::Command;
use super::word::Word;

/// A service: its program, the options with a value before a command, and the commands that only read. `*` matches any word, a
/// word that ends in `-` matches a prefix, `**` matches words whose verbs all only read, and `***` the same after command
/// groups with names like verbs, as in `gcloud run services list`.
struct Service {
    program: &'static str,
    valued: &'static [&'static str],
    reads: &'static [&'static str],
}

const SERVICES: [Service; 26] = [
    Service {
        program: "gh",
        valued: &["-R", "--repo", "--hostname"],
        reads: &[
            "* list",
            "* ls",
            "* view",
            "* status",
            "* diff",
            "* checks",
            "* show",
            "status",
            "search *",
            "run watch",
            "run download",
            "release download",
            "repo clone",
            "auth status",
            "version",
            "help",
            "config get",
            "browse",
            "pr checkout",
            "completion",
            "project item-list",
            "project field-list",
            "variable get",
            "ruleset check",
        ],
    },
    Service {
        program: "glab",
        valued: &["-R", "--repo"],
        reads: &[
            "* list",
            "* view",
            "* show",
            "* diff",
            "* status",
            "* get",
            "* trace",
            "version",
            "help",
            "repo clone",
            "mr checkout",
            "auth status",
            "config get",
            "mr issues",
            "mr approvers",
        ],
    },
    Service {
        program: "kubectl",
        valued: &["-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s", "--server", "-v"],
        reads: &[
            "get",
            "describe",
            "logs",
            "top",
            "explain",
            "api-resources",
            "api-versions",
            "version",
            "cluster-info",
            "diff",
            "config view",
            "config get-contexts",
            "config current-context",
            "config get-clusters",
            "config use-context",
            "auth can-i",
            "auth whoami",
            "events",
            "wait",
            "rollout status",
            "rollout history",
            "port-forward",
            "kustomize",
            "completion",
            "options",
            "plugin list",
            "help",
        ],
    },
    Service {
        program: "aws",
        valued: &["--profile", "--region", "--output", "--endpoint-url", "--query", "--cli-read-timeout", "--color"],
        reads: &[
            "* describe-",
            "* list-",
            "* get-",
            "* head-",
            "* lookup-",
            "* search-",
            "* batch-get-",
            "* wait",
            "* help",
            "* scan",
            "* query",
            "* filter-log-events",
            "* receive-message",
            "* simulate-",
            "* validate-",
            "s3 ls",
            "s3 presign",
            "logs tail",
            "configure list",
            "help",
            "sts decode-authorization-message",
            "* preview-",
        ],
    },
    Service { program: "terraform", valued: &["-chdir"], reads: TERRAFORM },
    Service { program: "tofu", valued: &["-chdir"], reads: TERRAFORM },
    Service {
        program: "helm",
        valued: &["-n", "--namespace", "--kube-context", "--kubeconfig"],
        reads: &[
            "list",
            "ls",
            "status",
            "get",
            "history",
            "show",
            "search",
            "template",
            "lint",
            "version",
            "env",
            "repo list",
            "repo update",
            "repo add",
            "dependency",
            "dep",
            "pull",
            "diff",
            "verify",
            "inspect",
            "package",
            "plugin list",
            "create",
            "help",
            "completion",
        ],
    },
    Service {
        program: "brew",
        valued: &[],
        reads: &[
            "list",
            "ls",
            "info",
            "search",
            "outdated",
            "deps",
            "uses",
            "doctor",
            "config",
            "leaves",
            "cat",
            "desc",
            "home",
            "update",
            "services list",
            "help",
            "commands",
        ],
    },
    Service { program: "apt", valued: &["-o"], reads: APT },
    Service { program: "apt-get", valued: &["-o"], reads: APT },
    Service { program: "dnf", valued: &[], reads: &["list", "info", "search", "check-update", "repolist", "provides"] },
    Service { program: "yum", valued: &[], reads: &["list", "info", "search", "check-update", "repolist", "provides"] },
    Service { program: "apk", valued: &[], reads: &["info", "search", "list", "policy", "update"] },
    Service { program: "pacman", valued: &[], reads: &[] },
    Service {
        program: "rustup",
        valued: &[],
        reads: &[
            "show",
            "toolchain list",
            "target list",
            "component list",
            "which",
            "doc",
            "check",
            "update",
            "target add",
            "component add",
            "toolchain install",
            "default",
            "override set",
            "help",
            "completions",
        ],
    },
    Service {
        program: "rclone",
        valued: &["--config"],
        reads: &[
            "ls",
            "lsd",
            "lsl",
            "lsf",
            "lsjson",
            "md5sum",
            "sha1sum",
            "hashsum",
            "check",
            "size",
            "cat",
            "tree",
            "about",
            "version",
            "listremotes",
            "config show",
            "config file",
            "help",
        ],
    },
    Service {
        program: "gcloud",
        valued: &[
            "--project",
            "--account",
            "--format",
            "--region",
            "--zone",
            "--location",
            "--filter",
            "--limit",
            "--sort-by",
            "--service",
            "--cluster",
            "--instance",
        ],
        reads: &["***"],
    },
    Service { program: "az", valued: AZ, reads: &["***"] },
    Service { program: "gsutil", valued: &["-o"], reads: &["ls", "stat", "hash", "version", "cat", "du", "help"] },
    Service { program: "doctl", valued: &["--context", "-c"], reads: &["**"] },
    Service { program: "heroku", valued: &[], reads: &["**", "logs", "ps", "info", "apps", "config", "releases"] },
    Service { program: "flyctl", valued: &[], reads: &["**", "status", "logs", "info", "version"] },
    Service { program: "fly", valued: &[], reads: &["**", "status", "logs", "info", "version"] },
    Service { program: "s3cmd", valued: &[], reads: &["ls", "la", "info", "du"] },
    Service { program: "hub", valued: &[], reads: &["status", "issue", "pr list", "pr show", "ci-status", "browse"] },
    Service { program: "ansible", valued: &[], reads: &[] },
];

const AZ: &[&str] = &[
    "--subscription",
    "-o",
    "--output",
    "-n",
    "--name",
    "-g",
    "--resource-group",
    "--query",
    "--command-id",
    "--vault-name",
    "--account-name",
];
const TERRAFORM: &[&str] = &[
    "fmt",
    "validate",
    "plan",
    "show",
    "output",
    "providers",
    "version",
    "graph",
    "init",
    "get",
    "state list",
    "state show",
    "state pull",
    "workspace list",
    "workspace show",
    "workspace select",
    "test",
    "help",
    "metadata",
];
const APT: &[&str] = &[
    "list",
    "show",
    "search",
    "policy",
    "update",
    "depends",
    "rdepends",
    "changelog",
    "download",
    "install",
    "check",
    "help",
];

const READS: &[&str] = &[
    "list",
    "show",
    "describe",
    "get",
    "info",
    "status",
    "version",
    "read",
    "view",
    "logs",
    "log",
    "tail",
    "history",
    "exists",
    "search",
    "query",
    "check",
    "validate",
    "download",
    "help",
    "ls",
    "inspect",
    "diff",
    "download-batch",
    "print-settings",
    "top",
];

/// Returns `true` if a program is in the table.
pub(super) fn is_known(name: &str) -> bool {
    SERVICES.iter().any(|service| service.program == name)
}

/// Returns `true` if the command of a service only reads; `None` if the program is not in the table.
pub(super) fn only_reads(name: &str, command: &Command) -> Option<bool> {
    let service = SERVICES.iter().find(|service| service.program == name)?;
    let words: Option<Vec<&str>> = command.arguments().iter().map(Word::literal).collect();
    let Some(words) = words else { return Some(false) };
    // `@me` is the user of `gh`.
    let is_file = |word: &str| word.starts_with('@') && word != "@me";
    let sends_files = |word: &&&str| word.contains("file://") || word.contains("fileb://") || is_file(word);
    if words.iter().any(|word| sends_files(&word) || word.contains("=@")) {
        return Some(false);
    }
    if words.contains(&"--help") {
        return Some(true);
    }
    let operands = operands(service, &words);
    Some(match (name, operands.as_slice()) {
        (_, ["cp", from, to]) | (_, ["s3" | "storage", "cp", from, to]) => from.contains("://") && !to.contains("://"),
        ("gh" | "glab", ["api", ..]) => is_get(&words),
        (_, operands) => service.reads.iter().any(|reads| matches(reads, operands)),
    })
}

/// Returns the words that are not options, if no unknown option precedes the command.
fn operands<'a>(service: &Service, words: &[&'a str]) -> Vec<&'a str> {
    let mut operands = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            operands.push(*word);
        } else if service.valued.contains(word) {
            words.next();
        } else if operands.is_empty()
            && !word.contains('=')
            && !matches!(*word, "-y" | "-q" | "-v" | "--yes" | "--quiet" | "--no-cli-pager" | "--debug")
        {
            return Vec::new();
        }
    }
    operands
}

pub(super) fn matches(pattern: &str, operands: &[&str]) -> bool {
    if matches!(pattern, "**" | "***") {
        let operands = if pattern == "***" { without_groups(operands) } else { operands.to_vec() };
        let mut verbs = operands.into_iter().filter(|word| is_verb(word)).peekable();
        return verbs.peek().is_some() && verbs.all(is_reading);
    }
    let mut operands = operands.iter();
    pattern.split(' ').all(|part| {
        if part == "." {
            return operands.len() == 0;
        }
        operands.next().is_some_and(|word| match part {
            "*" => !word.starts_with('-'),
            part if part.ends_with('-') => word.starts_with(part),
            part => *word == part,
        })
    })
}

/// Removes command groups with names like verbs.
fn without_groups<'a>(operands: &[&'a str]) -> Vec<&'a str> {
    const FIRST: [&str; 2] = ["run", "deploy"];
    let is_preview = |word: &&&str| matches!(**word, "alpha" | "beta");
    let words = operands.iter().skip_while(is_preview).copied().enumerate();
    let words = words.filter(|(at, word)| !(*at == 0 && FIRST.contains(word) || *word == "run-command"));
    words.map(|(_, word)| word).collect()
}

fn is_reading(word: &str) -> bool {
    READS.contains(&word) || ["list-", "get-", "describe-", "show-", "check-"].iter().any(|verb| word.starts_with(verb))
}

/// Returns `true` if a word is a verb, either for reading or for changing something.
fn is_verb(word: &str) -> bool {
    const CHANGES: &[&str] = &[
        "delete", "create", "update", "add", "set", "remove", "deploy", "run", "ssh", "scp", "start", "stop",
        "restart", "reset", "resize", "import", "export", "submit", "apply", "patch", "edit", "login", "logout",
        "move", "copy", "cp", "mv", "rm", "sync", "upload", "enable", "disable", "attach", "detach", "invoke",
        "execute", "call", "send", "publish", "rotate", "purge", "destroy", "scale", "exec",
    ];
    is_reading(word) || CHANGES.iter().any(|verb| word.split('-').next() == Some(verb))
}

/// Returns `true` if `gh api` only reads.
fn is_get(words: &[&str]) -> bool {
    let sends = ["-f", "-F", "--field", "--raw-field", "--input"];
    let mut method = None;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "-X" | "--method" => method = words.get(at + 1).copied(),
            word if sends.iter().any(|option| word.split('=').next() == Some(option)) => {
                // Fields of a read request are part of its address.
                if method != Some("GET") && !words.contains(&"GET") {
                    return false;
                }
            }
            word => method = word.strip_prefix("--method=").or_else(|| word.strip_prefix("-X")).or(method),
        }
    }
    method.is_none_or(|method| method == "GET")
}
