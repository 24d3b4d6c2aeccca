//! Arguments that leave a program of development what it is: those that choose, show or repeat.
//!
//! An option that is not here may run a program, load code, or write, send or delete something. Its command has only its exact name.

/// Options that every tool may have.
const COMMON: &[&str] = &["-q", "--quiet", "-v", "-vv", "--verbose", "--version", "--help", "--color", "--no-color"];

const CARGO: &[&str] = &[
    "--lib",
    "--bins",
    "--bin",
    "--example",
    "--examples",
    "--test",
    "--tests",
    "--bench",
    "--benches",
    "--all-targets",
    "--all",
    "--workspace",
    "--exclude",
    "-p",
    "--package",
    "-r",
    "--release",
    "--profile",
    "--features",
    "-F",
    "--all-features",
    "--no-default-features",
    "--no-run",
    "--no-fail-fast",
    "--locked",
    "--offline",
    "--frozen",
    "--check",
    "--fix",
    "--allow-dirty",
    "--allow-staged",
    "--no-deps",
    "--doc",
    "--keep-going",
    "--dev",
    "--build",
    "--optional",
    "--message-format",
    "-i",
    "--invert",
    "-e",
    "--edges",
    "-d",
    "--duplicates",
    "--depth",
];

const GIT: &[&str] = &[
    "-A",
    "--all",
    "-a",
    "-am",
    "-m",
    "--message",
    "--amend",
    "--no-edit",
    "-b",
    "-c",
    "--create",
    "-u",
    "--stat",
    "--cached",
    "--staged",
    "--name-only",
    "--name-status",
    "--oneline",
    "-n",
    "--graph",
    "--decorate",
    "--no-ff",
    "--ff-only",
    "--squash",
    "--abort",
    "--continue",
    "--short",
    "--branch",
    "--porcelain",
    "-sb",
    "--prune",
    "-p",
    "--patch",
    "--tags",
    "-t",
    "--track",
    "--list",
    "--show-current",
    "--contains",
    "--include-untracked",
    "--allow-empty",
    "--signoff",
    "--pretty",
    "--since",
    "--until",
    "--author",
    "--set-upstream",
    "--follow-tags",
    "--dry-run",
    "--word-diff",
    "--no-pager",
];

const NODE: &[&str] = &[
    "--save-dev",
    "-D",
    "--save",
    "--save-exact",
    "-E",
    "--no-audit",
    "--no-fund",
    "--frozen-lockfile",
    "--immutable",
    "--silent",
    "--watch",
    "--coverage",
    "--run",
    "--runInBand",
    "--workspaces",
    "--if-present",
    "--fix",
    "--ci",
    "--ignore-scripts",
    "--legacy-peer-deps",
];

const PIP: &[&str] = &[
    "-r",
    "--requirement",
    "-e",
    "--editable",
    "-U",
    "--upgrade",
    "--no-deps",
    "--pre",
    "--no-cache-dir",
    "-c",
    "--constraint",
];

const PYTHON_PROJECT: &[&str] = &[
    "--dev",
    "--frozen",
    "--locked",
    "--all-extras",
    "--extra",
    "--group",
    "--with",
    "--without",
    "--no-interaction",
    "--no-root",
];

const GO: &[&str] = &[
    "-race",
    "-run",
    "-count",
    "-bench",
    "-benchmem",
    "-benchtime",
    "-short",
    "-timeout",
    "-cover",
    "-tags",
    "-u",
    "-json",
    "-x",
];

const JAVA: &[&str] = &["-B", "-DskipTests", "--info", "--stacktrace", "--no-daemon", "--offline", "-o"];

const CONTAINERS: &[&str] = &[
    "-t",
    "--tag",
    "--no-cache",
    "--target",
    "--pull",
    "--build-arg",
    "--progress",
    "-n",
    "--namespace",
    "-A",
    "--all-namespaces",
    "-l",
    "--selector",
    "--tail",
    "--since",
    "--previous",
    "-a",
];

const TERRAFORM: &[&str] = &["-check", "-recursive", "-diff", "-no-color", "-input"];

/// Options of programs that check, format or test files.
const TOOLS: &[&str] = &[
    "-x",
    "-s",
    "-k",
    "-m",
    "-n",
    "-l",
    "-w",
    "-d",
    "-rA",
    "-ra",
    "--fix",
    "--check",
    "--diff",
    "--write",
    "--noEmit",
    "--maxfail",
    "--tb",
    "--lf",
    "--last-failed",
    "--ff",
    "--no-header",
    "--no-cov",
    "--strict",
    "--watch",
    "--run",
    "--coverage",
    "--runInBand",
    "--silent",
    "--ext",
    "--max-warnings",
    "--bail",
    "--list",
    "--statistics",
    "--select",
    "--ignore",
    "--exclude",
    "--line-length",
    "--edition",
    "--force-exclude",
    "--ignore-missing-imports",
    "--show-error-codes",
    "--exit-zero",
    "--changed",
    "--all",
];

/// Returns `true` if the options of a program are ordinary, and no operand is an address or a place elsewhere.
pub(super) fn are_ordinary(name: &str, arguments: &[&str]) -> bool {
    let options = options_of(name);
    let is_operand = |word: &str| !word.contains("://") && !word.starts_with("git@") && !word.starts_with('+');
    let mut before = "";
    let mut own = arguments.iter().copied().take_while(|argument| *argument != "--");
    own.all(|word| {
        let is_text = is_message(name, before);
        before = word;
        is_text
            || match word.strip_prefix('-') {
                None => is_operand(word),
                Some("") => true,
                Some(option) => is_option(name, word, option, options),
            }
    }) && rest_is_ordinary(name, arguments)
}

fn is_message(name: &str, option: &str) -> bool {
    name == "git" && matches!(option, "-m" | "-am" | "--message")
}

fn is_option(name: &str, word: &str, option: &str, options: &[&str]) -> bool {
    // The value of an option is an operand, or a number behind its letter.
    let (option_name, value) = word.split_once('=').unwrap_or((word, ""));
    // Go takes one or two hyphens.
    let single = format!("-{}", option_name.trim_start_matches('-'));
    let is_known = |wanted: &str| options.contains(&wanted) || COMMON.contains(&wanted);
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_cluster = || {
        let letters = option_name.strip_prefix('-').unwrap_or_default();
        options == TOOLS && letters.len() <= 5 && !letters.is_empty() && letters.chars().all(|c| "qvxs".contains(c))
    };
    (is_known(option_name) || name == "go" && is_known(&single) || is_cluster())
        && !value.contains("://")
        && !value.starts_with("git+")
        || is_count(option)
        || option.strip_prefix('j').is_some_and(|jobs| jobs.is_empty() || is_count(jobs))
}

/// Arguments after `--` go to a program of the workspace, except for `cargo clippy`, whose compiler reads them.
fn rest_is_ordinary(name: &str, arguments: &[&str]) -> bool {
    let rest = arguments.iter().skip_while(|argument| **argument != "--").skip(1);
    let is_lint = |word: &&str| {
        matches!(*word, "-D" | "-W" | "-A") || word.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c))
    };
    match (name, arguments.first()) {
        ("cargo", Some(&("clippy" | "check" | "build" | "doc" | "fmt"))) => {
            rest.into_iter().all(|word| is_lint(word) || *word == "--check")
        }
        // Behind `--` are files.
        ("git", _) => rest.into_iter().all(|word| !word.contains("://")),
        _ => true,
    }
}

fn options_of(name: &str) -> &'static [&'static str] {
    match name.trim_end_matches('3') {
        "cargo" => CARGO,
        "git" => GIT,
        "npm" | "pnpm" | "yarn" | "bun" => NODE,
        "pip" => PIP,
        "uv" | "poetry" | "bundle" | "composer" => PYTHON_PROJECT,
        "go" => GO,
        "mvn" | "gradle" => JAVA,
        "docker" | "kubectl" => CONTAINERS,
        "terraform" => TERRAFORM,
        "dotnet" | "swift" | "mdbook" | "rustup" => &[],
        _ => TOOLS,
    }
}

/// Returns `true` for an in-place edit that only substitutes, deletes or prints lines.
pub(super) fn is_plain_edit(arguments: &[&str]) -> bool {
    let (mut scripts, mut operands, mut words) = (Vec::new(), Vec::new(), arguments.iter());
    while let Some(word) = words.next() {
        match *word {
            "-i" | "-E" | "-r" | "-n" | "-s" | "-z" => {}
            "-e" => match words.next() {
                Some(script) => scripts.push(*script),
                None => return false,
            },
            word if word.starts_with('-') => return false,
            word => operands.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first().copied());
    }
    !scripts.is_empty() && scripts.into_iter().all(is_plain_script)
}

/// Returns `true` for a script of `sed` with only `s`, `d` and `p`, which run and write nothing.
fn is_plain_script(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        if rest.is_empty() {
            return true;
        }
        let Some(command) = after_address(rest) else { return false };
        let Some(after) = after_command(command) else { return false };
        rest = after.trim_start_matches(' ');
        if !(rest.is_empty() || rest.starts_with([';', '\n'])) {
            return false;
        }
    }
}

fn after_address(script: &str) -> Option<&str> {
    let one = |text: &'_ str| -> Option<usize> {
        if let Some(pattern) = text.strip_prefix('/') {
            return after_pattern(pattern, '/').map(|after| text.len() - after.len());
        }
        Some(text.find(|c: char| !c.is_ascii_digit() && c != '$').unwrap_or(text.len()))
    };
    let first = script.get(one(script)?..)?;
    let second = match first.strip_prefix(',') {
        Some(text) => text.get(one(text)?..)?,
        None => first,
    };
    Some(second.strip_prefix('!').unwrap_or(second).trim_start_matches(' '))
}

fn after_command(command: &str) -> Option<&str> {
    let mut letters = command.chars();
    match letters.next()? {
        'd' | 'p' => Some(letters.as_str()),
        's' => {
            let delimiter = letters.next().filter(|c| !c.is_alphanumeric() && !"\\\n ;".contains(*c))?;
            let replacement = after_pattern(letters.as_str(), delimiter)?;
            let flags = after_replacement(replacement, delimiter)?;
            Some(flags.trim_start_matches(|c: char| c.is_ascii_digit() || "gpIi".contains(c)))
        }
        _ => None,
    }
}

/// Returns the text after a pattern; `None` if a bracket contains the delimiter, which implementations read differently.
fn after_pattern(text: &str, delimiter: char) -> Option<&str> {
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => drop(letters.next()?),
            '\n' => return None,
            '[' => {
                let mut is_first = true;
                loop {
                    match letters.next()? {
                        '^' if is_first => continue,
                        ']' if !is_first => break,
                        '\n' | '\\' | '[' => return None,
                        c if c == delimiter => return None,
                        _ => is_first = false,
                    }
                }
            }
            c if c == delimiter => return Some(letters.as_str()),
            _ => {}
        }
    }
    None
}

fn after_replacement(text: &str, delimiter: char) -> Option<&str> {
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => drop(letters.next()?),
            '\n' => return None,
            c if c == delimiter => return Some(letters.as_str()),
            _ => {}
        }
    }
    None
}
