//! Commands of services, containers and the machine that only report something.
//!
//! Each has a list of its options. A command with another option is none of these.

use super::options::Syntax;
use super::{fetch, services};

/// Commands of a program with their options. `*` stands for any word; a word that ends in `-` is a prefix. After `.`, no word
/// follows: it could be a change.
struct Query {
    program: &'static str,
    commands: &'static [&'static str],
    syntax: Syntax,
}

const fn query(
    program: &'static str,
    commands: &'static [&'static str],
    short: &'static str,
    long: &'static str,
) -> Query {
    Query { program, commands, syntax: Syntax { short, long } }
}

const KUBERNETES: &str = "all-containers all-namespaces allow-missing-template-keys chunk-size: container: containers context: field-selector: \
    filename: follow for: ignore-not-found kustomize: label-columns: limit-bytes: max-log-requests: namespace: no-headers output: pod-running-timeout: \
    prefix previous recursive revision: selector: short show-events show-kind show-labels since: since-time: sort-by: tail: timeout: timestamps \
    types: verbs: watch watch-only";
const HELM: &str = "all all-namespaces api-versions: date debug deployed devel failed filter: include-crds kube-context: kube-version: max: \
    name-template: namespace: no-headers offset: output: pending regexp: revision: set: set-json: set-string: short show-only: skip-tests strict \
    superseded time-format: uninstalled values: version: versions";
const GITHUB: &str = "app: approved-by: archived assignee: author: author-date: base: body branch: cache: clean comments commit: commit-order \
    created: current-branch diff: draft event: exit-status fail-fast fork head: include interval: job: jq: json: label: language: limit: log log-failed \
    match: mention: merged merged-at: milestone: name-only no-archived order: owner: paginate patch preview repo: required review: \
    review-requested: reviewed-by: search: slurp sort: state: status: template: topic: updated: user: verbose visibility: watch workflow: yaml";
const AMAZON: &str = "all-available attribute-names: auto-scaling-group-names: bucket: cluster: clusters: color: db-instance-identifier: \
    end-time: filter: filter-pattern: filters: follow format: function-name: group-names: human-readable image-ids: include: instance-ids: \
    launch-type: limit: log-group-name: log-group-name-prefix: log-stream-name-prefix: max-items: max-results: name: names: no-cli-pager \
    no-paginate order-by: output: owner: owners: page-size: path: prefix: profile: query: queue-url: recursive region: repository-name: \
    resource: scope: service: service-name: services: since: sort-by: stack-name: start-time: status: summarize table-name: tasks: vpc-ids:";
const CLOUDS: &str = "all cluster: configuration: filter: flatten: format: freshness: instance: limit: location: name: no-user-output-enabled \
    order: output: page-size: project: query: region: resource-group: service: show-details sort-by: subscription: top: uri zone: zones:";
const TERRAFORM: &str = "check chdir: compact-warnings detailed-exitcode diff input: json lock: lock-timeout: module-depth: no-color parallelism: \
    recursive refresh: refresh-only target: type: var: var-file: verbose";
const DOCKER: &str = "all details digests filter: follow format: human last: latest no-stream no-trunc quiet size since: tail: timestamps tree type: until: \
    verbose";
const COMPOSE: &str = "all filter: follow format: hash: images no-color no-log-prefix no-trunc orphans profiles quiet services since: status: tail: \
    timestamps until: volumes";

#[rustfmt::skip]
const QUERIES: [Query; 35] = [
    query(
        "kubectl",
        &["get", "describe", "top", "explain", "api-resources", "api-versions", "version", "cluster-info", "events", "wait", "diff",
            "rollout status", "rollout history", "config view", "config get-contexts", "config current-context", "config get-clusters", "auth can-i",
            "auth whoami"],
        "ALRn:o:l:wf:k:",
        KUBERNETES,
    ),
    query("kubectl", &["logs"], "c:fl:n:p", KUBERNETES),
    query(
        "helm",
        &["list", "ls", "status", "get", "history", "show", "search", "template", "lint", "version", "dependency list", "dep list", "repo list",
            "plugin list"],
        "Aadf:l:m:n:o:qrs:",
        HELM,
    ),
    query(
        "gh",
        &["pr list", "pr view", "pr status", "pr diff", "pr checks", "issue list", "issue view", "issue status", "run list", "run view", "run watch",
            "release list", "release view", "repo list", "repo view", "workflow list", "workflow view", "label list", "gist list", "gist view",
            "project list", "project view", "project item-list", "ruleset list", "ruleset view", "cache list", "variable list", "search", "status",
            "version", "api"],
        "A:B:H:L:R:S:a:b:ce:ij:l:m:o:q:r:s:t:vw:",
        GITHUB,
    ),
    query("gh", &["auth status"], "", "active"),
    query(
        "glab",
        &["mr list", "mr view", "mr diff", "issue list", "issue view", "ci status", "ci list", "ci view", "ci trace", "repo view", "release list"],
        "AF:P:R:cp:",
        "all assignee: author: branch: comments label: milestone: opened output: output-format: page: per-page: pipeline-id: repo: source-branch: state: target-branch:",
    ),
    query(
        "aws",
        &["* describe-", "* list-", "* lookup-", "s3 ls", "s3api head-", "sts get-caller-identity", "logs tail", "logs filter-log-events",
            "logs get-log-events", "lambda get-function-configuration", "cloudformation get-template", "configure list"],
        "",
        AMAZON,
    ),
    query(
        "gcloud",
        &["* list", "* describe", "* * list", "* * describe", "* * * list", "config get-value", "config get", "logging read", "auth list", "info"],
        "",
        CLOUDS,
    ),
    query("az", &["* list", "* show", "* * list", "* * show", "* * * list"], "g:n:o:", CLOUDS),
    query("gsutil", &["ls", "du", "stat"], "hlrs", ""),
    query(
        "terraform",
        &["fmt", "validate", "plan", "show", "providers .", "version", "graph", "state list", "workspace list", "workspace show", "init", "get"],
        "",
        TERRAFORM,
    ),
    query(
        "tofu",
        &["fmt", "validate", "plan", "show", "providers .", "version", "graph", "state list", "workspace list", "workspace show", "init", "get"],
        "",
        TERRAFORM,
    ),
    query("docker", &["ps", "container ls", "container list", "images", "image ls", "image list"], "af:ln:qs", DOCKER),
    query("docker", &["logs", "container logs"], "fn:t", DOCKER),
    query(
        "docker",
        &["inspect", "image inspect", "container inspect", "network inspect", "volume inspect", "context inspect", "buildx inspect"],
        "f:s",
        DOCKER,
    ),
    query("docker", &["history", "image history"], "Hq", DOCKER),
    query(
        "docker",
        &["stats", "top", "port", "diff", "version", "info", "system df", "system info", "network ls", "volume ls", "context ls", "context show",
            "buildx ls", "container stats", "container top", "container port", "manifest inspect"],
        "af:qv",
        DOCKER,
    ),
    query("podman", &["ps", "images", "image ls", "container ls"], "af:ln:qs", DOCKER),
    query("podman", &["logs"], "fn:t", DOCKER),
    query(
        "podman",
        &["inspect", "stats", "top", "port", "version", "info", "network ls", "volume ls", "pod ps"],
        "af:q",
        DOCKER,
    ),
    query(
        "docker compose",
        &["ps", "ls", "images", "top", "port", "version", "config", "convert", "volumes", "stats"],
        "aq",
        COMPOSE,
    ),
    query("docker compose", &["logs"], "fn:t", COMPOSE),
    query(
        "systemctl",
        &["status", "is-active", "is-enabled", "is-failed", "list-units", "list-timers", "list-unit-files", "show", "cat"],
        "aln:p:t:",
        "all failed full lines: no-legend no-pager output: plain property: state: type: user",
    ),
    query(
        "journalctl",
        &[""],
        "b::efkn:o:p:rt:u:x",
        "boot:: catalog dmesg follow grep: identifier: lines: no-hostname no-pager output: priority: reverse since: unit: until: user utc",
    ),
    query("lsof", &["", "*"], "Paci:lnp:s:tu:", ""),
    query("ss", &["", "*"], "46aHlmnoprstuwx", "all listening numeric processes tcp udp unix"),
    query("netstat", &[""], "46aeilnoprstuvwx", "all inet listening numeric programs tcp udp"),
    query(
        "ip",
        &["addr .", "address .", "a .", "route .", "r .", "link .", "addr show", "route show", "link show"],
        "46bcjo",
        "brief color json",
    ),
    query("pm2", &["list", "ls", "status", "show", "describe", "jlist"], "", ""),
    query(
        "yq",
        &["*"],
        "MNPcCeI:jno:p:r",
        "colors compact-output exit-status indent: input-format: no-colors no-doc null-input output-format: prettyPrint raw-output unwrapScalar",
    ),
    query(
        "rustup",
        &["show", "toolchain list", "target list", "component list", "which", "check"],
        "v",
        "installed toolchain: verbose",
    ),
    query(
        "brew",
        &["list", "ls", "info", "search", "outdated", "deps", "uses", "leaves", "services list"],
        "1",
        "cask casks formula formulae json: tree versions",
    ),
    query("pg_isready", &["", "*"], "d:h:p:qt:U:", "dbname: host: port: quiet timeout: username:"),
    query(
        "git",
        &["remote show", "ls-remote", "check-ignore", "worktree list", "stash show", "submodule status", "lfs ls-files", "cherry"],
        "pv",
        "cached heads name-only name-status patch refs stat symref tags verbose",
    ),
    query("prisma", &["migrate status"], "", "schema:"),
];

/// Returns `true` for a command that only reports something, with options that are all known.
pub(super) fn is_query(name: &str, arguments: &[&str]) -> bool {
    if name == "curl" || name == "wget" {
        return reads_this_machine(name, arguments);
    }
    let is_one = |query: &Query| {
        query.program == name
            && operands(query, arguments).is_some_and(|operands| {
                query.commands.iter().any(|command| match *command {
                    "" => operands.is_empty(),
                    command => services::matches(command, &operands),
                })
            })
    };
    let reveals = |word: &str| {
        word.to_ascii_lowercase().contains("secret") || word.contains("file://") || word.contains("fileb://")
    };
    let is_elsewhere = |word: &&str| word.contains("://") || word.starts_with("git@");
    QUERIES.iter().any(is_one)
        && !(name == "git" && arguments.iter().any(is_elsewhere))
        && !arguments.iter().any(|word| reveals(word) || word.starts_with('@') && *word != "@me")
}

/// Returns the words that are neither options nor their values; `None` if an option is unknown.
fn operands<'a>(query: &Query, arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    // Terraform takes one hyphen or two.
    let is_single = matches!(query.program, "terraform" | "tofu");
    let (mut operands, mut words) = (Vec::new(), arguments.iter());
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            None | Some("") => operands.push(*word),
            Some("-") => return None,
            Some(option) if is_single => {
                let long = format!("--{}", option.trim_start_matches('-'));
                if query.syntax.takes_next(&long)? {
                    words.next()?;
                }
            }
            Some(_) => {
                if query.syntax.takes_next(word)? {
                    words.next()?;
                }
            }
        }
    }
    Some(operands)
}

const CURL: Syntax = Syntax {
    short: "46fgGH:iIkm:NsSvw:",
    long: "compressed connect-timeout: fail fail-with-body globoff head header: http1.1 http2 include insecure ipv4 ipv6 max-time: \
           no-buffer no-progress-meter retry: retry-all-errors retry-connrefused retry-delay: retry-max-time: show-error silent verbose write-out:",
};
const WGET: Syntax = Syntax {
    short: "46qSt:T:",
    long: "header: no-verbose quiet server-response spider timeout: tries: waitretry: retry-connrefused",
};

/// Returns `true` for a plain request to a service on this machine, with the answer printed or thrown away.
fn reads_this_machine(name: &str, arguments: &[&str]) -> bool {
    let syntax = if name == "curl" { CURL } else { WGET };
    let (mut has_address, mut prints, mut words) = (false, name == "curl", arguments.iter());
    while let Some(word) = words.next() {
        let is_address = |word: &str| {
            let scheme = word.split_once("://").map_or("http", |(scheme, _)| scheme);
            matches!(scheme, "http" | "https") && fetch::host(word).is_some_and(|host| fetch::is_loopback(&host))
        };
        let allowed = match (name, *word) {
            ("curl", "-o" | "--output") => words.next() == Some(&"/dev/null"),
            ("curl", "-so" | "-sSo" | "-sfo") => words.next() == Some(&"/dev/null"),
            ("curl", "-X" | "--request") => matches!(words.next(), Some(&("GET" | "HEAD" | "OPTIONS"))),
            ("curl", "-XGET" | "-XHEAD") => true,
            ("wget", "-O" | "--output-document") => {
                prints = matches!(words.next(), Some(&("-" | "/dev/null")));
                prints
            }
            ("wget", "-qO-" | "-O-" | "--spider") => {
                prints = true;
                true
            }
            (_, word) if word.starts_with('-') => match syntax.takes_next(word) {
                // A header or a format may be in a file, and a format may write one.
                Some(true) => words.next().is_some_and(|value| !value.starts_with('@') && !value.contains("%output")),
                Some(false) => !word.contains(['@']) && !word.contains("%output"),
                None => false,
            },
            (_, word) => {
                has_address = true;
                is_address(word)
            }
        };
        if !allowed {
            return false;
        }
    }
    has_address && prints
}
